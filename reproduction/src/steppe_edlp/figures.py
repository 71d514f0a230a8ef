"""Figures of experiments: `draw(results)` of a module here returns matplotlib figures by key."""

import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from steppe.errors import StorageError
from steppe.report import style
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# By the name of the experiment: the module that draws it.
FIGURES = {
    "bernoulli": "steppe_edlp.bernoulli.figures",
    "eta": "steppe_edlp.eta.figures",
    "flatness": "steppe_edlp.flatness.figures",
    "theory": "steppe_edlp.theory.figures",
    "tsp": "steppe_edlp.tsp.figures",
    "rbm": "steppe_edlp.rbm.figures",
    "bnn": "steppe_edlp.bnn.figures",
    "runtime": "steppe_edlp.runtime.figures",
}
DIRECTORY = "figures"


def draw(results: Results) -> dict[str, "Figure"]:
    """Draw every figure that results name; none for an experiment without drawings.

    Parameters
    ----------
    results
        What an experiment found.
    """
    if results.name not in FIGURES:
        return {}
    make: Callable[[Results], dict[str, Figure]] = importlib.import_module(FIGURES[results.name]).draw
    with style.applied():
        return make(results)


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
