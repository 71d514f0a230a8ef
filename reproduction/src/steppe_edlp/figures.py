"""Figures of experiments as files; `draw(results)` of `NAME/figures.py` makes them."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from steppe.errors import StorageError
from steppe.report import style
from steppe.results import Results
from steppe_edlp.experiment import EXPERIMENTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIRECTORY = "figures"


def draw(results: Results) -> dict[str, "Figure"]:
    """Draw every figure that results name; none for results without figures.

    Parameters
    ----------
    results
        What an experiment found.
    """
    if not results.figures:
        return {}
    with style.apply():
        return dict(EXPERIMENTS[results.name].draw(results))


def write_figures(results: Results, directory: Path) -> list[Path]:
    """Write every figure as `directory/figures/KEY.svg` and `.png`, all of them or none.

    Parameters
    ----------
    results
        What an experiment found.
    directory
        The directory of its `results.json`.
    """
    final, draft = directory / DIRECTORY, directory / f".{DIRECTORY}.partial"
    try:
        shutil.rmtree(draft, ignore_errors=True)
        paths = [path for key, figure in draw(results).items() for path in style.save(figure, draft / key)]
        if not paths:
            return []
        shutil.rmtree(final, ignore_errors=True)
        draft.replace(final)
    except OSError as error:
        raise StorageError(f"Could not write figures to {directory}: {error.strerror or error}.") from error
    return [final / path.name for path in paths]
