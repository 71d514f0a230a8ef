"""Figures of binary neural networks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate, to_number
from steppe.results import Cell, Results, Table
from steppe_edlp.plots import color_of, draw_limit, make_figure, name_rows, unpack_arrays
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Cell]]
STEPS_PER_POINT = 5
LABELS = {"rmse": "test RMSE", "likelihood": "training log-likelihood"}
WORDS = "test RMSE (○ the paper's network, ■ well-posed, ◇ paper; dashed: constant, dotted: linear)"


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    published = find_rows(results, "published")
    tables = list(dict.fromkeys(str(row["data"]) for row in published))
    errors, (panels,) = make_figure(1, len(tables), max(7.0, 1 + 3.6 * len(tables)), 3.6)
    for axes, name in zip(panels, tables, strict=True):
        own = [row for row in published if row["data"] == name]
        _draw_errors(axes, own, [row for row in find_rows(results, "posed") if row["data"] == name])
        table = next(table for table in results.tables if own[0] in table.rows)
        _draw_baselines(axes, table)
        axes.set_title(name)
    errors.supxlabel(WORDS, fontsize=9)
    samplers = [str(row["sampler"]) for row in published if row["data"] == tables[0]]
    return {"rmse": errors, "series": _draw_series(unpack_arrays(results), tables, samplers)}


def _draw_errors(axes: "Axes", published: Rows, posed: Rows) -> None:
    names = [str(row["sampler"]) for row in published]
    for place, (name, row) in enumerate(zip(names, published, strict=True)):
        _draw_point(axes, row["rmse"], place - 0.15, "o", color_of(name), is_hollow=True)
        if "rmse_paper" in row:
            _draw_point(axes, row["rmse_paper"], place - 0.35, "D", "black", is_hollow=True)
    for row in posed:
        place = names.index(str(row["sampler"]))
        _draw_point(axes, row["rmse"], place + 0.15, "s", color_of(names[place]))
    name_rows(axes, names)
    axes.grid(axis="x")


def _draw_baselines(axes: "Axes", table: Table) -> None:
    for place, line in zip(table.reference_rows, ("--", ":"), strict=True):
        draw_limit(axes, to_number(table.rows[place]["rmse"]), line)


def _draw_point(
    axes: "Axes", cell: Cell, place: float, marker: str, color: str, *, is_hollow: bool = False
) -> None:
    found = to_estimate(cell)
    style.draw_interval(axes, found, place)
    face = "white" if is_hollow else color
    axes.plot(found.value, place, marker, color=color, markerfacecolor=face, markersize=6, zorder=3)


def _draw_series(
    arrays: Mapping[str, np.ndarray], tables: Sequence[str], samplers: Sequence[str]
) -> "Figure":
    figure, panels = make_figure(len(tables), 2, 9.5, 0.6 + 2.8 * len(tables))
    for column, (key, label) in enumerate(LABELS.items()):
        for axes, name, curves in zip(panels[:, column], tables, arrays[f"{key}_series"], strict=True):
            for sampler, series in zip(samplers, curves, strict=True):
                steps = STEPS_PER_POINT * np.arange(len(series))
                axes.plot(steps, series, color=color_of(sampler), label=sampler, linewidth=1.4)
            axes.set(title=f"{name}: {label}", xlabel="step")
    panels[0][1].legend(fontsize=8, ncols=2)
    return figure
