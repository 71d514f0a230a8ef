"""Figures of the sweep over η."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate, to_number
from steppe.results import Cell, Results
from steppe.theory import effective_step_size
from steppe_edlp.plots import draw_limit, unpack_arrays, write_beside
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Cell]]
# Of the figure of p(θ_a) for θ ~ Bernoulli(1/2).
DENSITY_VARIANCES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
STRIDE = 5
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
LABEL = "coupling variance η"


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    rows = find_rows(results, "sweep")
    sweeps = {str(row["sampler"]): [one for one in rows if one["sampler"] == row["sampler"]] for row in rows}
    plain = {str(row["sampler"]): row for row in find_rows(results, "plain")}
    figures = {"densities": _draw_densities(), "effective-step": _draw_effective_step(results, sweeps)}
    if sweeps:
        figures["rmse"] = _draw_rmse(results, sweeps, plain)
        figures["distance"] = _draw_distance(results, sweeps)
    if "edmala" in sweeps:
        figures["acceptance"] = _draw_acceptance(sweeps["edmala"], plain)
    return figures


def _draw_densities() -> "Figure":
    """`p(θ_a) = ½ N(0, η) + ½ N(1, η)`."""
    figure, (axes,) = style.make_row(1, 7, 3.6)
    at = np.linspace(-2.5, 3.5, 241)
    shades = style.find_color_map("viridis")(np.linspace(0, 0.85, len(DENSITY_VARIANCES)))
    for variance, shade in zip(DENSITY_VARIANCES, shades, strict=True):
        modes = [np.exp(-((at - mean) ** 2) / (2 * variance)) for mean in (0, 1)]
        density = 0.5 * sum(modes) / np.sqrt(2 * np.pi * variance)
        axes.plot(at, density, color=shade, linewidth=1.8, label=f"η = {variance:g}")
    axes.set(xlabel="center θ_a", ylabel="density")
    axes.legend()
    return figure


def _draw_effective_step(results: Results, sweeps: Mapping[str, Rows]) -> "Figure":
    figure, (axes,) = style.make_row(1, 7, 3.6)
    alpha, center = (to_number(results.settings[key]) for key in ("α", "α_a of edula"))
    threshold = (alpha + center) / 4  # where α_eff diverges
    grid = np.geomspace(threshold * 1.02, 10, 200)
    axes.loglog(
        grid, [effective_step_size(alpha, x, center).value for x in grid], color="black", linewidth=1.8
    )
    axes.annotate("α_eff", (0.033, 0.6), fontsize=10)
    axes.set(ylim=(0.08, 10), xlabel=LABEL, ylabel="effective step α_eff (squared distance)")
    draw_limit(axes, threshold, ":")
    if "edula" in sweeps:
        other, color = axes.twinx(), style.SAMPLER_COLORS["edula"]
        xs, flips = ([to_number(row[key]) for row in sweeps["edula"]] for key in ("variance", "flips"))
        other.loglog(xs, flips, "D--", color=color, markersize=5)
        other.set_ylabel("flips per step of edula", color=color)
        other.grid(False)
    return figure


def _draw_sweep(axes: "Axes", rows: Rows, key: str) -> None:
    name, xs = str(rows[0]["sampler"]), [to_number(row["variance"]) for row in rows]
    color, marker = style.SAMPLER_COLORS[name], style.SAMPLER_MARKERS[name]
    axes.plot(xs, [to_number(row[key]) for row in rows], marker=marker, color=color, label=name)
    for x, row in zip(xs, rows, strict=True):
        style.draw_interval(axes, to_estimate(row[key]), x, vertical=True)
    axes.set(xscale="log", xlabel=LABEL)


def _draw_level(axes: "Axes", row: Mapping[str, Cell], key: str, shift: float = -3) -> None:
    name, value = str(row["sampler"]), to_number(row[key])
    color, place = style.SAMPLER_COLORS[name], ("axes fraction", "data")
    axes.axhline(value, color=color, linewidth=1.2, alpha=0.8)
    write_beside(axes, name, (1, value), (3, shift), xycoords=place, color=color)


def _draw_rmse(results: Results, sweeps: Mapping[str, Rows], plain: Mapping[str, Any]) -> "Figure":
    figure, (axes,) = style.make_row(1, 7, 3.8)
    for rows in sweeps.values():
        _draw_sweep(axes, rows, "rmse")
    for name, shift in (("dula", 3), ("dmala", -9)):
        if name in plain:
            _draw_level(axes, plain[name], "rmse", shift)
    draw_limit(axes, to_number(results.settings["RMSE of a constant"]), ":", is_across=True)
    axes.set_ylabel("validation RMSE")
    axes.legend()
    return figure


def _draw_acceptance(rows: Rows, plain: Mapping[str, Any]) -> "Figure":
    figure, (axes,) = style.make_row(1, 7, 3.6)
    _draw_sweep(axes, rows, "acceptance")
    if "dmala" in plain:
        _draw_level(axes, plain["dmala"], "acceptance")
    axes.set(ylim=(-0.03, 1.03), ylabel="acceptance probability")
    return figure


def _draw_distance(results: Results, sweeps: Mapping[str, Rows]) -> "Figure":
    figure, panels = style.make_row(len(sweeps), 4.6 * len(sweeps), 4.2)
    paths, bits = unpack_arrays(results)["paths"], to_number(results.settings["bits"])
    for axes, (name, rows), path in zip(panels, sweeps.items(), paths, strict=True):
        steps, variances = STRIDE * (1 + np.arange(len(path))), [to_number(row["variance"]) for row in rows]
        shades = style.find_color_map("viridis")(np.linspace(0, 0.85, len(variances)))
        for place, (variance, own, shade) in enumerate(zip(variances, path.T, shades, strict=True)):
            axes.plot(steps, own, color=shade, linewidth=1.5)
            axes.axhline(np.sqrt(bits * variance), color=shade, linestyle="--", linewidth=0.7)
            # Neighbours are near one another: every other name stands further out.
            look = {"color": shade, "fontsize": 8, "va": "center"}
            write_beside(axes, f"{variance:g}", (steps[-1], own[-1]), (4 + 24 * (place % 2), 0), **look)
        axes.set(yscale="log", title=f"{name}, η at the ends", xlabel="step", xlim=(0, 1.2 * steps[-1]))
        axes.set_yticks([tick for tick in TICKS if path.min() / 2 < tick < 2 * path.max()])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    panels[0].set_ylabel("‖θ − θ_a‖ (dashed: √(dη))")
    return figure
