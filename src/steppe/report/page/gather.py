"""What there is to show in a directory: results, pictures beside them, and what is damaged."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from steppe.errors import RunError, SteppeError, StorageError
from steppe.report.run_results import is_run, results_of_run
from steppe.results import FILE_NAME, Results, read_results

FIGURES = "figures"
# A drawing with more marks than this is shown as pixels where both exist: it loads and scrolls faster.
MAX_DRAWING_BYTES = 1_000_000
PNG_BEGINS = b"\x89PNG\r\n\x1a\n"


class Picture(NamedTuple):
    """A figure as a data URI, or the sentence that says why it cannot be shown."""

    uri: str | None
    problem: str = ""


class Section(NamedTuple):
    """One results file and its pictures, by the key of the figure."""

    results: Results
    pictures: Mapping[str, Picture]


class Gathered(NamedTuple):
    """Everything a page shows, and a sentence for every file that it cannot show."""

    sections: list[Section]
    problems: list[str]


def gather(directory: Path) -> Gathered:
    """Read the results in a directory and its direct subdirectories, or the run that it holds.

    Raises `RunError` if there is nothing to show, with the first damage if there is any.
    """
    sections: list[Section] = []
    problems: list[str] = []
    for path in _results_files(directory):
        try:
            results = read_results(path)
        except SteppeError as error:
            # Relative: a page is passed on, and says nothing about the machine it was made on.
            problems.append(str(error).replace(str(path), str(path.relative_to(directory))))
        else:
            sections.append(Section(results, _pictures(results, path.parent / FIGURES)))
    if is_run(directory):
        run = results_of_run(directory)
        sections.append(Section(run.results, {key: drawing(svg) for key, svg in run.drawings.items()}))
        problems.extend(run.problems)
    if not sections:
        raise RunError(problems[0] if problems else _nothing(directory))
    return Gathered(sections, problems)


def drawing(svg: bytes) -> Picture:
    """A drawing as a picture; as an image, none of its scripts or links are live."""
    return Picture(_uri("image/svg+xml", svg))


def _results_files(directory: Path) -> list[Path]:
    if not _is_directory(directory):
        raise RunError(f"{directory} is not a directory. Name one that `reproduce`, `compare` or `run` made.")
    try:
        folders = [directory, *sorted(path for path in directory.iterdir() if path.is_dir())]
        return [folder / FILE_NAME for folder in folders if (folder / FILE_NAME).exists()]
    except OSError as error:
        raise StorageError(f"Cannot look into {directory}: {error.strerror or error}.") from error


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a path that cannot be, or may not be looked at
        return False


def _nothing(directory: Path) -> str:
    return (
        f"{directory} holds nothing to report: no {FILE_NAME} in it or in its direct subdirectories, and no "
        "run.json. Name an output directory of `steppe reproduce`, `compare` or `run`."
    )


def _pictures(results: Results, folder: Path) -> dict[str, Picture]:
    return {figure.key: _picture(folder, figure.key) for figure in results.figures}


def _picture(folder: Path, key: str) -> Picture:
    svg, png = _content(folder / f"{key}.svg"), _content(folder / f"{key}.png")
    if png is not None and not png.startswith(PNG_BEGINS):
        png = None
    if svg is not None and b"<svg" not in svg[:2000]:
        svg = None
    if png is not None and (svg is None or len(svg) > max(MAX_DRAWING_BYTES, len(png))):
        return Picture(_uri("image/png", png))
    if svg is not None:
        return drawing(svg)
    return Picture(None, f"The picture {FIGURES}/{key}.svg is missing or is not a picture.")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
