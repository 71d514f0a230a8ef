"""Figures of networks of binary weights."""

from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.report import style
from steppe.report.cells import estimate
from steppe.results import Results, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS_PER_POINT = 5


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    tables = {table.key: table for table in results.tables}
    names = [key.removeprefix("published_") for key in tables if key.startswith("published_")]
    return {"rmse": _errors(tables, names), "series": _series(results, names)}


def _errors(tables: dict[str, Table], names: list[str]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(7.0, 1 + 3.6 * len(names)), 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        _panel(axes, tables[f"published_{name}"], tables.get(f"posed_{name}"))
        axes.set_title(name.replace("_", "-"))
    figure.supxlabel(
        "test RMSE (○ the paper's network, ■ well-posed, ◇ paper; dashed: constant, dotted: linear)",
        fontsize=9,
    )
    return figure


def _panel(axes: "Axes", published: Table, posed: Table | None) -> None:
    sampled = [row for row in published.rows if "predictor" not in str(row["predictor"])]
    labels = [str(row["predictor"]) for row in sampled]
    for place, row in enumerate(sampled):
        color = style.SAMPLER_COLORS[labels[place]]
        _point(axes, row["rmse"], place - 0.15, "o", color, hollow=True)
        if row.get("rmse_paper") is not None:
            _point(axes, row["rmse_paper"], place - 0.35, "D", "black", hollow=True)
    for row in posed.rows if posed is not None else []:
        if row["predictor"] in labels:
            name = str(row["predictor"])
            _point(axes, row["rmse"], labels.index(name) + 0.15, "s", style.SAMPLER_COLORS[name])
    for name, line in (("constant predictor", "--"), ("linear predictor", ":")):
        error = next(row["rmse"] for row in published.rows if row["predictor"] == name)
        axes.axvline(estimate(error).value, linestyle=line, color="#555555", linewidth=1.2)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(axis="x")


def _point(axes: "Axes", cell: Any, place: float, marker: str, color: str, hollow: bool = False) -> None:
    found = estimate(cell)
    style.interval(axes, found, place)
    face = "white" if hollow else color
    axes.plot(found.value, place, marker, color=color, markerfacecolor=face, markersize=6, zorder=3)


def _series(results: Results, names: list[str]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 0.6 + 2.8 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 2, squeeze=False)
    arrays = {key: array.numpy() for key, array in results.arrays.items()}
    for row, name in zip(panels, names, strict=True):
        kinds = (("rmse", "test RMSE"), ("likelihood", "training log-likelihood"))
        for axes, (kind, label) in zip(row, kinds, strict=True):
            prefix = f"{kind}_{name}_"
            for key, series in arrays.items():
                if key.startswith(prefix):
                    sampler = key.removeprefix(prefix)
                    steps = STEPS_PER_POINT * np.arange(len(series))
                    axes.plot(
                        steps, series, color=style.SAMPLER_COLORS[sampler], label=sampler, linewidth=1.4
                    )
            axes.set_title(f"{name.replace('_', '-')}: {label}")
            axes.set_xlabel("step")
    panels[0][1].legend(fontsize=8, ncols=2)
    return figure
