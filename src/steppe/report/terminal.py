"""Terminal: any results as tables and sentences, by rich; `to_text` is the same without colours."""

import io
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import measure_renderables
from rich.table import Table as RichTable
from rich.text import Text

from steppe.report.cells import THIN_SPACE, format_cell, format_interval, is_numeric
from steppe.results import Cell, Column, Estimate, Outcome, Results, Table, Verdict

WIDTH, LARGEST_WIDTH = 100, 160
# Of a table of details only the marked rows are shown, and of those no more than so many.
MAX_MARKED = 8
OUTCOME_MARKS: dict[Outcome, str] = {
    "holds": "✓",
    "does not hold": "✗",
    "not distinguishable": "≈",
    "shown": "✓",
    "there, maybe negligible": "∼",
    "negligible": "0",
    "opposite": "✗",
    "undecided": "?",
}
OUTCOME_STYLES: dict[Outcome, str] = {
    "holds": "green",
    "does not hold": "bold red",
    "not distinguishable": "yellow",
    "shown": "green",
    "there, maybe negligible": "cyan",
    "negligible": "blue",
    "opposite": "bold red",
    "undecided": "yellow",
}


def render(results: Results) -> Group:
    """Lay out the title, tables, facts, verdicts and notes of results."""
    parts: list[RenderableType] = [_render_title(results), Text()]
    for table in _list_tables(results):
        parts += [_render_table(table), Text()]
    if results.facts:
        parts += [_render_facts(results.facts), Text()]
    parts += [_render_verdict(verdict) for verdict in results.verdicts]
    parts += [_render_point("•", "dim", Text(printable(note))) for note in results.notes]
    return Group(*parts)


def render_verdicts(results: Results) -> Group:
    """Lay out the title and the verdicts alone: an experiment has more tables than a terminal."""
    return Group(_render_title(results), Text(), *map(_render_verdict, results.verdicts), Text())


def to_text(results: Results) -> str:
    """Return what a terminal shows as plain text, as wide as the tables need within reason."""
    tables = [_render_table(table) for table in _list_tables(results)]
    console = Console(
        file=io.StringIO(), width=LARGEST_WIDTH, color_system=None, force_jupyter=False, legacy_windows=False
    )
    needed = measure_renderables(console, console.options, tables).maximum if tables else 0
    console.width = max(WIDTH, needed)
    with console.capture() as captured:
        console.print(render(results))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def printable(content: str) -> str:
    """Replace control characters, so that a name cannot steer a terminal."""
    return "".join(character if character.isprintable() else "�" for character in content)


def _list_tables(results: Results) -> Iterator[Table]:
    """Tables of a short account: all but those of details in which nothing is marked."""
    return (table for table in results.tables if table.marked_rows or not table.is_detail)


def _render_title(results: Results) -> Text:
    tags = ", ".join(tag for tag in (results.protocol, results.scale) if tag)
    title = Text(printable(results.title), style="bold")
    title.append(f"   {tags}" if tags else "", style="not bold dim")
    return title.append(f"\n{printable(results.question)}", style="not bold dim")


def _render_table(table: Table) -> RichTable:
    made = RichTable(
        title=Text(printable(table.title)),
        title_style="italic",
        title_justify="left",
        caption=Text("\n".join(map(printable, table.notes))) if table.notes else None,
        caption_justify="left",
        caption_style="dim",
        box=box.SIMPLE_HEAD,
        header_style="bold cyan",
        show_edge=False,
    )
    for column in table.columns:
        is_right = is_numeric([row.get(column.key) for row in table.rows])
        made.add_column(Text(_to_heading(column)), justify="right" if is_right else "left")
    shown = table.marked_rows[:MAX_MARKED] if table.is_detail else range(len(table.rows))
    for number in shown:
        cells = [_to_text(table.rows[number].get(column.key), column) for column in table.columns]
        made.add_row(*map(Text, cells), style=_style_row(table, number))
    if len(shown) < len(table.rows):
        made.add_row("…", f"{len(table.rows) - len(shown)} more")
    return made


def _style_row(table: Table, number: int) -> str | None:
    if number in table.marked_rows:
        return "bold"
    return "italic" if number in table.reference_rows else None


def _to_heading(column: Column) -> str:
    return printable(f"{column.label} [{column.unit}]" if column.unit else column.label)


def _to_text(cell: Cell, column: Column) -> str:
    text = format_cell(cell, column.digits)
    if isinstance(cell, Estimate):
        text = f"{text} {format_interval(cell, column.digits)}".rstrip()
    # No space between thousands: numbers are copied from a terminal.
    return printable(text if isinstance(cell, str) else text.replace(THIN_SPACE, ""))


def _render_facts(facts: dict[str, str]) -> RichTable:
    table = RichTable.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for label, value in facts.items():
        table.add_row(Text(f" {printable(label)}"), Text(printable(value)))
    return table


def _render_verdict(verdict: Verdict) -> RichTable:
    style = OUTCOME_STYLES[verdict.outcome]
    said = Text(f"{verdict.outcome}: ", style).append(printable(verdict.claim), "bold default")
    said.append(f" {printable(verdict.sentence)}", "not bold default")
    return _render_point(OUTCOME_MARKS[verdict.outcome], style, said)


def _render_point(mark: str, style: str, content: Text) -> RichTable:
    line = RichTable.grid()  # so that wrapped lines are indented
    line.add_row(Text(f" {mark} ", style), content)
    return line
