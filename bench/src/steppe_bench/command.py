"""`steppe bench`: run a suite of benchmarks, and say what came out beside what was published."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from steppe.cli.output import AsJson, Whole, print_json, print_list
from steppe.errors import RunError
from steppe.report.page import write_page
from steppe.report.terminal import render
from steppe.validation import count, find_name, positive
from steppe_bench.engine import carry_out
from steppe_bench.suites import SUITES

OUT = Path("out/bench")
SEEDS = 5


def bench(
    suite: str,
    *,
    seeds: Whole = None,
    seconds: float | None = None,
    only: str | None = None,
    methods: str | None = None,
    quick: Annotated[bool, Parameter(negative="")] = False,
    out: Path = OUT,
    as_json: AsJson = False,
) -> None:
    """Run a suite of benchmarks: published values beside ours, at equal time.

    Example: `steppe bench gset-small --only G14,G22`

    Parameters
    ----------
    suite
        Name of the suite, or `list` to see all.
    seeds
        Repetitions; 5 by default.
    seconds
        Processor time per instance, seed and method; that of the suite by default.
    only
        Only these instances, separated by commas.
    methods
        Only these methods, separated by commas: `steppe`, `isco`, for sets of nodes `away`, and where they
        are installed `dwave`, `qqa`, `cpsat` and `tabu`.
    quick
        The first instances only, one seed.
    out
        Directory to write to; what was interrupted goes on from there.
    as_json
        Print the results as JSON.
    """
    if suite == "list":
        print_list({name: one.summary for name, one in SUITES.items()})
        return
    chosen = SUITES[find_name(suite, SUITES, "suite")]
    limit = chosen.seconds if seconds is None else positive("steppe bench --seconds", seconds, error=RunError)
    number = count(
        "steppe bench --seeds", (1 if quick else SEEDS) if seeds is None else seeds, error=RunError
    )
    instances = chosen.list_instances()
    if only is not None:
        known = {instance.name: instance for instance in instances}
        instances = [known[find_name(name.strip(), known, "instance")] for name in only.split(",")]
    elif quick:
        instances = instances[: chosen.num_quick]
    results = carry_out(
        suite,
        chosen,
        instances,
        seeds=number,
        seconds=limit,
        methods=None if methods is None else [name.strip() for name in methods.split(",")],
        report=_say,
        out=out / suite,
        command=_write_command(suite, seeds=seeds, seconds=seconds, only=only, methods=methods, quick=quick),
    )
    results.save(out / suite)
    page = write_page(out)
    if as_json:
        print_json({"page": str(page), "results": results.model_dump(mode="json")})
        return
    Console(highlight=False).print(render(results))
    sys.stdout.write(f"Page: {page}\n")


def _write_command(suite: str, **options: str | float | None) -> str:
    """The command with the options that were given, so that a record says how to make it again."""
    given = {name: value for name, value in options.items() if value not in (None, False)}
    words = [f"--{name}" if value is True else f"--{name} {_quote(value)}" for name, value in given.items()]
    return " ".join(["steppe bench", suite, *words])


def _quote(value: str | float) -> str:
    return shlex.quote(value) if isinstance(value, str) else f"{value:g}"


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
