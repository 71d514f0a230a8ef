"""Carry out an experiment in a directory, from the beginning or from where it was killed.

DIR/NAME/request.json   what is asked, with versions; written first
DIR/NAME/parts/KEY.json answers of finished pieces of work
DIR/NAME/results.json   everything found; written last
DIR/NAME/lock           held by the one process that writes
"""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steppe.atomic import make_directory
from steppe.errors import DamagedRunError, RunMismatchError, SteppeError, StorageError
from steppe.results import FILE_NAME, Array, Figure, Provenance, Results, read_results
from steppe.run.storage.durable import read_json, take_lock, write_json
from steppe.run.storage.identity import describe_software
from steppe.validation import find_name
from steppe_edlp.claims import judge_claims
from steppe_edlp.experiment import EXPERIMENTS, Experiment
from steppe_edlp.record import Record, digest_draws
from steppe_edlp.request import Found, Request
from steppe_edlp.tables import complete_rows, make_cell, make_tables
from steppe_edlp.wording import describe_recipe, find_fact, is_said, say
from steppe_edlp.work import Work

REQUEST_FILE, LOCK_FILE, PARTS = "request.json", "lock", "parts"
# What else may stand beside the experiments.
PAGE_FILE = "report.html"


def find_experiments(names: Sequence[str], request: Request) -> list[Experiment]:
    """The experiments of those names (`"all"` for every one), after checking the samplers asked for."""
    wanted = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    found = [EXPERIMENTS[find_name(name, (*EXPERIMENTS, "all"), "experiment")] for name in wanted]
    known = dict.fromkeys(sampler for experiment in found for sampler in experiment.samplers)
    for sampler in request.samplers or ():
        find_name(sampler, known, f"sampler in {' or '.join(experiment.name for experiment in found)}")
    for experiment in found:
        if experiment.samplers and not request.chosen(experiment.samplers):
            find_name((request.samplers or ("",))[0], experiment.samplers, f"sampler in {experiment.name}")
    return found


def check_directory(
    directory: Path, experiments: Sequence[Experiment], request: Request, *, resume: bool
) -> None:
    """Refuse a directory that holds something else, results of another schema, or other work than is asked.

    Parameters
    ----------
    directory
        Directory of all experiments; it need not exist.
    experiments, request
        What is to be done there.
    resume
        Whether to go on with what is there.
    """
    try:
        inside = sorted(directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise StorageError(f"Could not read {directory}: {error.strerror or error}.") from error
    for path in inside:
        if not _is_ours(path):
            raise StorageError(
                f"{directory} holds {path.name!r}, which is not an experiment of `steppe reproduce`. Choose "
                "another directory."
            )
        if (path / FILE_NAME).exists():
            read_results(path)
    for experiment in experiments:
        own = directory / experiment.name
        if _is_begun(own) and not resume:
            raise StorageError(
                f"{own} already holds this experiment. Pass `--resume` to continue or reuse it, or choose "
                "another directory."
            )
        if _is_begun(own):
            _check_same(own, _wanted(experiment, request))


def carry_out(
    experiment: Experiment,
    request: Request,
    directory: Path,
    *,
    progress: bool | None = None,
    record: Record | None = None,
) -> Results:
    """Run what is missing of an experiment and write its `results.json`; return what it holds.

    Parameters
    ----------
    experiment, request
        What to do.
    directory
        Directory of all experiments; this one gets a directory of its name in it.
    progress
        Show progress; by default when standard error is a terminal.
    record
        Where finished pieces are kept apart from this directory, and found again.
    """
    own = directory / experiment.name
    software = _describe_code()
    with _claim(own, _wanted(experiment, request)):
        started = datetime.now(UTC).isoformat(timespec="seconds")
        if record is None:
            work = Work(own / PARTS, request.digest(experiment.name, software), experiment.name, progress)
        else:
            work = record.open(experiment, request, progress)
        try:
            found = experiment.run(experiment, request, work)
        except SteppeError:
            _withdraw(own)
            raise
        provenance = Provenance.of_software(
            describe_software(),
            command=request.command(experiment.name),
            seeds=list(found.seeds),
            data=dict(found.data),
            started=started,
            seconds=work.seconds,
            model_evaluations=found.model_evaluations,
            draws={} if request.is_quick else {n: digest_draws(one) for n, one in found.recipes.items()},
        )
        results = present(experiment, request, found, provenance)
        results.save(own)
    return results


def present(experiment: Experiment, request: Request, found: Found, provenance: Provenance) -> Results:
    """Say everything that follows from what was found: verdicts, tables, captions and notes.

    Parameters
    ----------
    experiment, request
        What was asked, and how it is described.
    found
        What came out.
    provenance
        Where it comes from.
    """
    conditions = request.conditions | set(found.conditions) | set(found.recipes)
    facts = {"size": experiment.size(request), **found.facts}
    rows = complete_rows(experiment, found)
    verdicts, joint_notes = judge_claims(experiment.claims, rows, facts, conditions)
    described = {name: describe_recipe(recipe) for name, recipe in found.recipes.items()}
    known = {label: path for label, path in experiment.settings.items() if path.split(".")[0] in facts}
    return Results(
        name=experiment.name,
        title=say(experiment.title, facts, conditions),
        question=experiment.question,
        protocol=request.protocol,
        scale=request.scale,
        verdicts=verdicts,
        tables=list(make_tables(experiment.tables, rows, facts, conditions)),
        figures=[
            Figure(
                key=key,
                title=say(figure.title, facts, conditions),
                caption=say(figure.caption, facts, conditions),
                alternative=figure.alternative,
            )
            for key, figure in experiment.figures.items()
            if is_said(figure.when, conditions)
        ],
        arrays={key: Array.of(values) for key, values in found.arrays.items()},
        settings={
            **{name: words for name, words in described.items() if words},
            **{label: make_cell(find_fact(path, facts)) for label, path in known.items()},
            **found.settings,
        },
        notes=[*filter(None, (say(note, facts, conditions) for note in experiment.notes)), *joint_notes],
        provenance=provenance,
    )


def _describe_code() -> dict[str, str]:
    """Versions and processor: what is begun with them is continued, on any device and commit."""
    return {name: text for name, text in describe_software().items() if name not in ("device", "commit")}


def _wanted(experiment: Experiment, request: Request) -> dict[str, Any]:
    return {"experiment": experiment.name, "request": request.fields(), "versions": _describe_code()}


def _claim(directory: Path, wanted: dict[str, Any]) -> ExitStack:
    """Become the one that writes there; note what is asked, or check that it was begun for the same."""
    try:
        make_directory(directory)
        with take_lock(directory) as held:
            if _is_begun(directory):
                _check_same(directory, wanted)
            else:
                write_json(directory / REQUEST_FILE, wanted)
            return held.pop_all()
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"Could not write to {directory}: {error.strerror or error}. Choose a directory that can be "
            "written."
        ) from error


def _withdraw(directory: Path) -> None:
    """Leave nothing of an experiment that failed before any of its work was done."""
    if not _is_begun(directory):
        for name in (REQUEST_FILE, LOCK_FILE):
            (directory / name).unlink(missing_ok=True)
        for empty in (directory / PARTS, directory, directory.parent):
            if _is_empty(empty):
                empty.rmdir()


def _check_same(directory: Path, wanted: dict[str, Any]) -> None:
    try:
        found = read_json(directory / REQUEST_FILE)
    except DamagedRunError as error:
        raise DamagedRunError(
            f"{directory} cannot be continued: {error} Choose another directory."
        ) from error
    for part in ("experiment", "versions", "request"):
        if found.get(part) != wanted[part]:
            raise RunMismatchError(
                f"{directory} was begun with {_difference(found.get(part), wanted[part])}. Choose another "
                "directory, or ask for the same again."
            )


def _difference(found: Any, wanted: Any) -> str:
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        return f"{found!r}, not {wanted!r}"
    key = next(key for key in {**found, **wanted} if found.get(key) != wanted.get(key))
    return f"{key.replace('_', ' ')} {found.get(key)!r}, not {wanted.get(key)!r}"


def _is_ours(path: Path) -> bool:
    if path.name == PAGE_FILE or _is_empty(path):
        return True
    return path.name in EXPERIMENTS and (path / REQUEST_FILE).exists()


def _is_begun(directory: Path) -> bool:
    """Whether there is work to go on with; a request alone, of a run killed at once, is none."""
    parts = directory / PARTS
    return (directory / FILE_NAME).exists() or (parts.is_dir() and any(parts.glob("*.json")))


def _is_empty(path: Path) -> bool:
    return path.is_dir() and all(inside.name == LOCK_FILE for inside in path.iterdir())
