"""Carry out an experiment in a directory, from the beginning or from where it was killed.

DIR/NAME/request.json   what is asked, with versions; written first
DIR/NAME/parts/KEY.json answers of finished pieces of work
DIR/NAME/results.json   everything found; written last
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steppe.errors import DamagedRunError, RunMismatchError, StorageError
from steppe.experiments.catalogue import EXPERIMENTS, Experiment
from steppe.experiments.request import Findings, Request, named
from steppe.experiments.work import Work
from steppe.results import FILE_NAME, Array, Provenance, Results, read_results
from steppe.run.files import read_json, write_json
from steppe.run.store import software

REQUEST_FILE, PARTS = "request.json", "parts"
# What else may stand beside the experiments: the page, and figures or drafts of a killed run.
PAGE_FILE = "report.html"


def requested(names: Sequence[str], request: Request) -> list[Experiment]:
    """The experiments of those names (`"all"` for every one), after checking the samplers asked for."""
    wanted = list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))
    found = [EXPERIMENTS[named(name, (*EXPERIMENTS, "all"), "experiment")] for name in wanted]
    known = dict.fromkeys(sampler for experiment in found for sampler in experiment.samplers)
    for sampler in request.samplers or ():
        named(sampler, known, f"sampler in {' or '.join(experiment.name for experiment in found)}")
    for experiment in found:
        if experiment.samplers and not request.chosen(experiment.samplers):
            named((request.samplers or ("",))[0], experiment.samplers, f"sampler in {experiment.name}")
    return found


def check_directory(directory: Path, experiments: Sequence[Experiment], *, resume: bool) -> None:
    """Refuse a directory that holds something else, results of another schema, or unfinished work."""
    try:
        inside = sorted(directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise StorageError(f"Could not read {directory}: {error.strerror or error}.") from error
    for path in inside:
        is_ours = path.name == PAGE_FILE or (path.name in EXPERIMENTS and (path / REQUEST_FILE).exists())
        if not is_ours and not _is_empty(path):
            raise StorageError(
                f"{directory} holds {path.name!r}, which is not an experiment of `steppe reproduce`. Choose "
                "another directory."
            )
        if (path / FILE_NAME).exists():
            read_results(path)
    for experiment in experiments:
        if not resume and (directory / experiment.name / REQUEST_FILE).exists():
            raise StorageError(
                f"{directory / experiment.name} already holds this experiment. Pass `--resume` to continue "
                "or reuse it, or choose another directory."
            )


def carry_out(
    experiment: Experiment, request: Request, directory: Path, *, progress: bool | None = None
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
    """
    own = directory / experiment.name
    versions = software()
    device = versions.pop("device")
    digest = request.digest(experiment.name, versions)
    _claim(own, {"experiment": experiment.name, "request": request.fields(), "versions": versions})
    started = datetime.now(UTC).isoformat(timespec="seconds")
    work = Work(own / PARTS, digest, experiment.title, progress)
    findings = experiment.run(request, work)
    results = _results(
        experiment,
        request,
        findings,
        Provenance(
            command=request.command(experiment.name),
            versions=versions,
            device=device,
            seeds=list(findings.seeds),
            data=dict(findings.data),
            started=started,
            seconds=work.seconds,
            model_evaluations=findings.model_evaluations,
        ),
    )
    try:
        results.save(own)
    except OSError as error:
        raise StorageError(f"Could not write {own / FILE_NAME}: {error.strerror or error}.") from error
    return results


def _results(experiment: Experiment, request: Request, findings: Findings, provenance: Provenance) -> Results:
    return Results(
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        protocol=request.protocol,
        scale=request.scale,
        verdicts=list(findings.verdicts),
        tables=list(findings.tables),
        figures=list(findings.figures),
        arrays={key: Array.of(values) for key, values in findings.arrays.items()},
        settings=dict(findings.settings),
        notes=list(findings.notes),
        provenance=provenance,
    )


def _claim(directory: Path, wanted: dict[str, Any]) -> None:
    """Write down what is asked, or check that a directory was begun for the same."""
    path = directory / REQUEST_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        begun = path.exists()
    except OSError as error:
        raise StorageError(
            f"Could not write to {directory}: {error.strerror or error}. Choose a directory that can be "
            "written."
        ) from error
    if not begun:
        write_json(path, wanted)
        return
    try:
        found = read_json(path)
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


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
