"""Gather what there is to show in a directory: results, pictures beside them, and what is damaged."""

import base64
from pathlib import Path

from steppe.errors import RunError, SteppeError, StorageError
from steppe.report.page.view import Gathered, Picture, Section
from steppe.report.present_run import name_run, present_description
from steppe.report.run_figures import draw_run, to_svg
from steppe.report.state_figures import write_best
from steppe.results import FILE_NAME, Results, Verdict, read_results
from steppe.run.result import Run, open_run
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.shards import find_shards
from steppe.trace import REASON

FIGURES = "figures"
# A drawing with more marks than this is shown as pixels where both exist: it loads and scrolls faster.
MAX_DRAWING_BYTES = 1_000_000
PNG_BEGINS = b"\x89PNG\r\n\x1a\n"


def gather(directory: Path) -> Gathered:
    """Read the results in a directory and its direct subdirectories, or the run that it holds.

    Raises `RunError` if there is nothing to show, with the first damage if there is any.
    """
    sections: list[Section] = []
    problems: list[str] = []
    for path in _find_results(directory):
        try:
            results = read_results(path)
        except SteppeError as error:
            # Relative: a page is passed on, and says nothing about the machine it was made on.
            problems.append(str(error).replace(str(path), str(path.relative_to(directory))))
        else:
            sections.append(Section(results, _read_pictures(results, path.parent / FIGURES)))
    if RunDirectory(directory).exists or find_shards(directory):
        run = open_run(directory)
        sections.append(gather_run(run))
        problems += [f"Damaged, or still being written: {problem}" for problem in run.problems]
    if not sections:
        raise RunError(problems[0] if problems else _explain_nothing(directory))
    return Gathered(sections, problems)


def gather_run(run: Run) -> Section:
    """A run as results with its figures; with one sentence where nothing can be said about its mixing."""
    trace = run.trace
    try:
        summary = run.summary()
    except RunError as error:  # no statistics were kept, or no draws are there yet
        return Section(present_description(run.description, run.seconds, [str(error)]), {})
    presented = summary.present()
    drawn = [*draw_run(trace, summary.mixing, run.description.draw_on)]
    facts = dict(presented.facts)
    if reason := run.description.metadata.get(REASON):
        facts = {"recommended": f"{run.description.recipe}, as {reason}"} | facts
    if trace.has("levels"):
        facts["best draw"] = write_best(trace)
    update = {
        "title": name_run(run.description),
        "facts": facts,
        "verdicts": [*presented.verdicts, *_judge_progress(run, summary.mixing.num_draws)],
        "figures": [one.described for one in drawn],
    }
    pictures = {one.described.key: embed_drawing(to_svg(one.figure)) for one in drawn}
    return Section(presented.model_copy(update=update), pictures)


def _judge_progress(run: Run, drawn: int) -> list[Verdict]:
    """Said only of a run that has not got to its end."""
    wanted = run.description.num_draws
    if drawn >= wanted:
        return []
    sentence = f"{drawn} of {wanted} draws per chain are committed."
    return [Verdict(claim="The run is complete.", outcome="does not hold", sentence=sentence)]


def embed_drawing(svg: bytes) -> Picture:
    """A drawing as a picture; as an image, none of its scripts or links are live."""
    return Picture(_to_uri("image/svg+xml", svg))


def _find_results(directory: Path) -> list[Path]:
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


def _explain_nothing(directory: Path) -> str:
    return (
        f"{directory} holds nothing to report: no {FILE_NAME} in it or in its direct subdirectories, and no "
        "run.json. Name an output directory of `steppe reproduce`, `compare` or `run`."
    )


def _read_pictures(results: Results, folder: Path) -> dict[str, Picture]:
    return {figure.key: _read_picture(folder, figure.key) for figure in results.figures}


def _read_picture(folder: Path, key: str) -> Picture:
    svg, png = _read_content(folder / f"{key}.svg"), _read_content(folder / f"{key}.png")
    if png is not None and not png.startswith(PNG_BEGINS):
        png = None
    if svg is not None and b"<svg" not in svg[:2000]:
        svg = None
    if png is not None and (svg is None or len(svg) > max(MAX_DRAWING_BYTES, len(png))):
        return Picture(_to_uri("image/png", png))
    if svg is not None:
        return embed_drawing(svg)
    return Picture(None, f"The picture {FIGURES}/{key}.svg is missing or is not a picture.")


def _read_content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _to_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
