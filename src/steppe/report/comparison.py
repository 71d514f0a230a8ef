"""A comparison of samplers as tables for the terminal and as figures, from its results alone."""

import io
from typing import TYPE_CHECKING, Any

from steppe.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Group
    from rich.table import Table as RichTable

    from steppe.results import Cell, Results, Table

WIDTH = 160
UNKNOWN_COLOR = "#555555"
PERFECT_COLOR = "#111111"


def summary(results: "Results") -> "Group":
    """Return the tables and notes for the terminal."""
    from rich.console import Group

    return Group(*(as_table(table) for table in results.tables), *results.notes)


def as_text(results: "Results") -> str:
    """Return the summary as plain text."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
    console.print(summary(results))
    text: Any = console.file
    return text.getvalue()


def as_table(table: "Table") -> "RichTable":
    """Return one table of results for the terminal; intervals stand in brackets."""
    from rich.table import Table as RichTable

    made = RichTable(title=table.title)
    for column in table.columns:
        heading = f"{column.label} [{column.unit}]" if column.unit else column.label
        is_text = any(isinstance(row.get(column.key), str) for row in table.rows)
        made.add_column(heading.replace("[", r"\["), justify="left" if is_text else "right")
    for index, row in enumerate(table.rows):
        cells = [_shown(row.get(column.key), column.digits) for column in table.columns]
        made.add_row(*cells, style="italic" if index in table.reference_rows else None)
    return made


def _shown(cell: "Cell", digits: int) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool | str | int):
        return str(cell)
    if isinstance(cell, float):
        return f"{cell:.{digits}g}"
    if cell.low is None or cell.high is None:
        return f"{cell.value:.{digits}g}"
    return rf"{cell.value:.{digits}g} \[{cell.low:.{digits}g}, {cell.high:.{digits}g}]"


@style.applied()
def draw(results: "Results") -> dict[str, "Figure"]:
    """Draw every figure that the results name."""
    drawn = {"efficiency": _draw_efficiency, "flatness": _draw_flatness, "distance": _draw_distance}
    return {figure.key: drawn[figure.key](results) for figure in results.figures}


def _draw_efficiency(results: "Results") -> "Figure":
    table = results.table("efficiency")
    figure, (axes,) = style.subplots(1, 6.4, 1.2 + 0.34 * len(table.rows))
    _intervals(axes, table, "ess_per_evaluation")
    axes.set_xlim(left=0)
    axes.set_xlabel("effective draws per 1000 evaluations")
    return figure


def _draw_distance(results: "Results") -> "Figure":
    table = results.table("law")
    rows = [row for index, row in enumerate(table.rows) if index not in table.reference_rows]
    figure, (axes,) = style.subplots(1, 6.4, 1.5 + 0.34 * len(rows))
    _intervals(axes, table, "tv")
    for place, row in enumerate(rows):
        perfect = _value(row["tv_perfect"])
        label = "as many independent draws" if place == 0 else None
        axes.plot([perfect] * 2, [place - 0.35, place + 0.35], color=PERFECT_COLOR, label=label)
    axes.set_xlim(left=0)
    axes.set_xlabel("total variation to π, per seed")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.0 + 0.8 / (1 + len(rows))))
    return figure


def _intervals(axes: "Axes", table: "Table", key: str) -> None:
    """One row per sampler from the top, a dot and its interval."""
    rows = [row for index, row in enumerate(table.rows) if index not in table.reference_rows]
    for place, row in enumerate(rows):
        cell = row[key]
        assert cell is not None
        assert not isinstance(cell, bool | int | float | str)
        low, high = cell.low or cell.value, cell.high or cell.value
        color, marker = _look(str(row["sampler"]))
        reach = [[cell.value - low], [high - cell.value]]
        axes.errorbar(cell.value, place, xerr=reach, fmt=marker, color=color, capsize=3)
    axes.set_yticks(range(len(rows)), [str(row["sampler"]) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x")


def _draw_flatness(results: "Results") -> "Figure":
    figure, (axes,) = style.subplots(1, 6.8, 4.4)
    table = results.table("law")
    seeds = {name: results.arrays[name].numpy() for name in ("log_density", "roughness")}
    names = [str(row["sampler"]) for index, row in enumerate(table.rows) if index not in table.reference_rows]
    for index, name in enumerate(names):
        color, marker = _look(name)
        heights, gaps = seeds["log_density"][index], seeds["roughness"][index]
        axes.scatter(gaps, heights, s=8, color=color, alpha=0.35, linewidths=0)
        axes.scatter(gaps.mean(), heights.mean(), s=60, color=color, marker=marker, label=name, zorder=3)
    for index in table.reference_rows:
        row = table.rows[index]
        place = _value(row["roughness"]), _value(row["log_density"])
        axes.scatter(*place, s=160, marker="+", color=PERFECT_COLOR, label=str(row["sampler"]), zorder=4)
    axes.set_xlabel("mean |ΔU| over one-site changes (left is flatter)")
    axes.set_ylabel("E[U]")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _value(cell: "Cell") -> float:
    return float(cell.value if hasattr(cell, "value") else cell)  # type: ignore[union-attr, arg-type]


def _look(name: str) -> tuple[str, str]:
    """Colour and marker of a sampler; labels of one's own that begin with its name share them."""
    known = max(
        (sampler for sampler in style.SAMPLER_COLORS if name.startswith(sampler)), key=len, default=""
    )
    return style.SAMPLER_COLORS.get(known, UNKNOWN_COLOR), style.SAMPLER_MARKERS.get(known, "o")
