"""`steppe report`: one HTML page of what a directory holds."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from steppe.cli.output import AsJson, print_json
from steppe.errors import RunError
from steppe.report.terminal import printable


def report(directory: Path, *, out: Path | None = None, as_json: AsJson = False) -> None:
    """Write one self-contained HTML page: verdicts, tables, figures, settings.

    Example: `steppe report runs/a`

    Parameters
    ----------
    directory
        What `steppe reproduce`, `steppe compare` or `steppe run` wrote.
    out
        File to write; `report.html` in the directory by default.
    as_json
        Print the path of the page, and what could not be read, as JSON.
    """
    from steppe.report.page.gather import gather
    from steppe.report.page.write import PAGE_NAME, save_page

    gathered = gather(directory)
    if out is not None and not out.name:
        raise RunError(f"`--out` must name a file to write; got {str(out)!r}.")
    page = save_page(gathered, directory / PAGE_NAME if out is None else out)
    if as_json:
        print_json({"page": str(page), "problems": gathered.problems})
        return
    for problem in gathered.problems:
        line = Text("not shown", style="yellow").append(f": {printable(problem)}", style="default")
        Console(stderr=True).print(line, soft_wrap=True)
    Console().print(Text(printable(str(page))), soft_wrap=True)
