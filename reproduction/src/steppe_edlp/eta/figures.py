"""Figures of the sweep over η."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate, to_number
from steppe.results import Cell, Results
from steppe.theory import effective_step_size
from steppe_edlp.plots import draw_limit, draw_paper, make_figure, unpack_arrays, write_beside
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Cell]]
# Of the figure of p(θ_a) for θ ~ Bernoulli(1/2).
DENSITY_VARIANCES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# Of the paper's figure of distances.
DISTANCE_VARIANCES = (0.05, 0.08, 0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 5.0, 8.0)
STRIDE = 5
MANY_DECADES = 2.0  # from here on only powers of ten are named on an axis
PAPER_TABLE = "compas"  # the only one for which the paper has errors
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
    if str(results.settings["network"]).startswith(PAPER_TABLE):
        for name, rows in sweeps.items():
            xs, printed = ([to_number(row[key]) for row in rows] for key in ("variance", "rmse_paper"))
            draw_paper(axes, xs, printed, f"{name}, paper", color=style.SAMPLER_COLORS[name])
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
    figure, (panels,) = make_figure(1, len(sweeps), 4.6 * len(sweeps), 4.2)
    paths, bits = unpack_arrays(results)["paths"], to_number(results.settings["bits"])
    for axes, (name, rows), path in zip(panels, sweeps.items(), paths, strict=True):
        variances = [to_number(row["variance"]) for row in rows]
        shown = {one: own for one, own in zip(variances, path.T, strict=True) if one in DISTANCE_VARIANCES}
        _draw_paths(axes, shown, bits)
        axes.set(title=f"{name}, η at the ends", xlabel="step")
    panels[0].set_ylabel("‖θ − θ_a‖ (dashed: √(dη))")
    return figure


def _draw_paths(axes: "Axes", paths: Mapping[float, np.ndarray], bits: float) -> None:
    """A curve per η with its stationary value beside it, on a logarithmic axis with few and plain numbers."""
    from matplotlib.ticker import LogLocator

    shades = style.find_color_map("viridis")(np.linspace(0, 0.85, len(paths)))
    for place, ((variance, path), shade) in enumerate(zip(paths.items(), shades, strict=True)):
        steps = STRIDE * (1 + np.arange(len(path)))
        axes.plot(steps, path, color=shade, linewidth=1.5)
        axes.plot(steps[[0, -1]], 2 * [np.sqrt(bits * variance)], "--", color=shade, linewidth=0.8)
        # Neighbours are near one another: names stand in three columns.
        write_beside(axes, f"{variance:g}", (steps[-1], path[-1]), (4 + 22 * (place % 3), 0), va="center")
        axes.set_xlim(0, 1.3 * steps[-1])
    axes.set_yscale("log")
    every = np.concatenate([path[path > 0] for path in paths.values()])
    decades = np.log10(every.max() / every.min()) if len(every) else 0
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > MANY_DECADES else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
