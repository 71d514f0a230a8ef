"""What the verbs read and print: tables and JSON on standard output, failures on standard error."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NoReturn

from cyclopts import Parameter, Token
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from steppe.errors import DamagedRunWarning
from steppe.presented import Presented
from steppe.report.summary import Summary
from steppe.report.terminal import printable
from steppe.run.result import Run

AsJson = Annotated[bool, Parameter(name="--json", negative="")]


def _whole(_: type, tokens: Sequence[Token]) -> int:
    """A integer as it is written; by default 1.5 would be rounded."""
    return int(tokens[0].value)


Whole = Annotated[int | None, Parameter(converter=_whole)]


def show_run(run: Run, as_json: bool) -> Summary:
    """Print the summary of a run, and return it."""
    summary = run.summary()
    problems = run.problems
    if as_json:
        print_json({"path": str(run.path), "problems": problems, **summary.to_dict()})
    else:
        show(summary)
        for problem in problems:
            sys.stdout.write(f"damaged: {printable(problem)}\n")
    return summary


def show(presented: Presented) -> None:
    """Print results: as wide as the terminal, or in files and pipes as wide as the tables need."""
    if sys.stdout.isatty():
        Console().print(presented)
    else:
        sys.stdout.write(f"{presented}\n")


def print_list(entries: Mapping[str, str | None]) -> None:
    """Print names with the first line of what is said about each."""
    table = Table("name", "what it is", box=None)
    for name, text in entries.items():
        table.add_row(escape(name), escape(((text or "").strip().splitlines() or [""])[0]))
    Console().print(table)


def print_json(content: Mapping[str, object]) -> None:
    """Print a document."""
    sys.stdout.write(json.dumps(content, indent=1, default=float) + "\n")


def show_warning(otherwise: Callable[..., None], message: Warning, category: type, *where: object) -> None:
    """Say in one sentence what a damaged run directory warns of; pass other warnings on."""
    if not issubclass(category, DamagedRunWarning):
        otherwise(message, category, *where)
        return
    text = Text("warning", style="bold yellow").append(
        f": {printable(str(message))}", style="default not bold"
    )
    Console(stderr=True).print(text, soft_wrap=True)


def fail(message: str, code: int) -> NoReturn:
    """Say one sentence on standard error and exit."""
    # Messages may quote what the user typed: shown as text, never as markup or terminal commands.
    text = Text("error", style="bold red").append(f": {printable(message)}", style="default not bold")
    Console(stderr=True).print(text, soft_wrap=True)
    raise SystemExit(code)
