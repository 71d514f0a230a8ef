"""`steppe reproduce`: carry out experiments of the paper, and say what came out."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from steppe.cli.output import AsJson, Whole, print_json
from steppe.errors import MissingDataError
from steppe.report.page import write_page
from steppe.report.terminal import render_verdicts
from steppe.results import Results
from steppe_edlp.engine import carry_out, check_directory, find_experiments
from steppe_edlp.figures import write_figures
from steppe_edlp.record import Record
from steppe_edlp.request import Protocol, Request, Scale

OUT = Path("out/reproduce")
INTERRUPTED = 130
TABLE_WIDTH = 110
TITLE = "Entropic discrete Langevin proposals, reproduced"
ABOUT = (
    "Experiments of “Entropy-Guided Sampling of Flat Modes in Discrete Spaces” (arXiv:2505.02296) were "
    "carried out again with steppe, beside exact answers where there are any. What came out is below: claim "
    "by claim, then number by number."
)


def reproduce(
    *names: str,
    protocol: Protocol = "sound",
    scale: Scale = "quick",
    samplers: str | None = None,
    seeds: Whole = None,
    seed: Whole = None,
    instance: str | None = None,
    data: Path | None = None,
    out: Path = OUT,
    resume: Annotated[bool, Parameter(negative="")] = False,
    record: Path | None = None,
    other_code: Annotated[bool, Parameter(negative="")] = False,
    finished_only: Annotated[bool, Parameter(negative="")] = False,
    as_json: AsJson = False,
) -> None:
    """Carry out experiments of the paper: numbers, figures, verdicts, and one page.

    Example: `steppe reproduce bernoulli flatness --scale quick`

    Parameters
    ----------
    names
        Experiments, or `all`.
    protocol
        `published`: the authors' settings as run; `sound`: many seeds, equal budgets, intervals.
    scale
        `quick`: minutes; `full`: the scale of the paper.
    samplers
        Only these samplers, separated by commas.
    seeds
        Number of independent repetitions.
    seed
        The first of them.
    instance
        Which problem, where an experiment has several.
    data
        Directory of data sets; without it, data that ship with packages.
    out
        Directory to write to.
    resume
        Continue what was interrupted, or reuse what is finished.
    record
        Directory of a record: keep every finished piece there as a small file, and go on with those it has.
    other_code
        Add to a record that other code made.
    finished_only
        Put together what the record has; run nothing.
    as_json
        Print the verdicts as JSON.
    """
    request = Request(
        protocol=protocol,
        scale=scale,
        samplers=None if samplers is None else tuple(name.strip() for name in samplers.split(",")),
        num_seeds=seeds,
        data=data,
        instance=instance,
        seed=seed or 0,
    )
    if data is not None and not data.is_dir():
        raise MissingDataError(f"`--data {data}` is not a directory; name the one with the data sets.")
    kept = None if record is None else Record(record, other_code, finished_only)
    experiments = find_experiments(names or ("",), request)
    check_directory(out, experiments, request, resume=resume)
    try:
        found = {}
        for experiment in experiments:
            found[experiment.name] = carry_out(experiment, request, out, record=kept)
            write_figures(found[experiment.name], out / experiment.name)
            if not as_json:
                _show(found[experiment.name], out / experiment.name)
        page = str(write_page(out, title=TITLE, about=ABOUT))
        if as_json:
            print_json({"page": page, "experiments": {name: _list(one, out) for name, one in found.items()}})
        else:
            sys.stdout.write(f"Page: {page}\n")
    except KeyboardInterrupt:
        _leave(out)


def _show(results: Results, directory: Path) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    console.print(render_verdicts(results))
    console.print(f"{len(results.figures)} figures and all numbers: {directory}\n", soft_wrap=True)


def _list(results: Results, out: Path) -> dict[str, object]:
    verdicts = [verdict.model_dump() for verdict in results.verdicts]
    return {"directory": str(out / results.name), "verdicts": verdicts}


def _leave(out: Path) -> None:
    """Say what is kept and go at once: a piece of work that is running may take minutes to end."""
    sentence = f"Interrupted; every finished piece is kept in {out}, and `--resume` continues from there.\n"
    sys.stderr.write(sentence)
    sys.stderr.flush()
    sys.stdout.flush()
    os._exit(INTERRUPTED)
