"""Figures of the sweep over η."""

from typing import TYPE_CHECKING, Any

import numpy as np

from steppe.report import style
from steppe.report.cells import estimate
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arrays = dict[str, np.ndarray]
SHOWN_PATHS = (0.1, 1.0, 10.0)
STRIDE = 5


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = {name: array.numpy() for name, array in results.arrays.items()}
    entropic = [name for name in ("edula", "edmala") if f"{name}_rmse" in arrays]
    figures = {"densities": _densities(arrays), "effective-step": _effective_step(arrays)}
    if entropic:
        figures["rmse"] = _rmse(results, arrays, entropic)
        figures["distance"] = _distance(results, arrays, entropic)
    if "edmala" in entropic:
        figures["acceptance"] = _acceptance(results, arrays)
    return figures


def _densities(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 7, 3.6)
    shades = style.color_map("viridis")(np.linspace(0, 0.85, len(arrays["densities"])))
    for variance, density, shade in zip(
        arrays["density_variances"], arrays["densities"], shades, strict=True
    ):
        axes.plot(arrays["centers"], density, color=shade, linewidth=1.8, label=f"η = {variance:g}")
    axes.set_xlabel("center θ_a")
    axes.set_ylabel("density")
    axes.legend()
    return figure


def _effective_step(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 7, 3.6)
    color = style.SAMPLER_COLORS["edula"]
    axes.loglog(arrays["effective_variances"], arrays["effective_steps"], color="black", linewidth=1.8)
    axes.annotate("α_eff", (0.033, 0.6), fontsize=10)
    axes.set_ylim(0.08, 10)
    axes.set_xlabel("coupling variance η")
    axes.set_ylabel("effective step α_eff (squared distance)")
    axes.axvline(arrays["effective_variances"][0] / 1.02, color="#555555", linestyle=":", linewidth=1)
    if "edula_flips" in arrays:
        other = axes.twinx()
        other.loglog(
            arrays["variances"], arrays["edula_flips"].mean(axis=1), "D--", color=color, markersize=5
        )
        other.set_ylabel("flips per step of edula", color=color)
        other.grid(False)
    return figure


def _sweep(axes: "Axes", results: Results, name: str, key: str) -> None:
    rows = results.table(name).rows
    estimates = [estimate(row[key]) for row in rows]
    xs = [estimate(row["variance"]).value for row in rows]
    color = style.SAMPLER_COLORS[name]
    axes.plot(
        xs, [one.value for one in estimates], marker=style.SAMPLER_MARKERS[name], color=color, label=name
    )
    for x, one in zip(xs, estimates, strict=True):
        style.interval(axes, one, x, vertical=True)
    axes.set_xscale("log")
    axes.set_xlabel("coupling variance η")


def _level(axes: "Axes", value: float, name: str, shift: float = -3) -> None:
    color = style.SAMPLER_COLORS[name]
    axes.axhline(value, color=color, linewidth=1.2, alpha=0.8)
    place: Any = ("axes fraction", "data")
    axes.annotate(
        name, (1, value), (3, shift), xycoords=place, textcoords="offset points", color=color, fontsize=9
    )


def _rmse(results: Results, arrays: Arrays, names: list[str]) -> "Figure":
    figure, (axes,) = style.subplots(1, 7, 3.8)
    for name in names:
        _sweep(axes, results, name, "rmse")
    for name, shift in (("dula", 3), ("dmala", -9)):
        if f"{name}_rmse" in arrays:
            _level(axes, float(arrays[f"{name}_rmse"].mean()), name, shift)
    constant = results.settings["RMSE of a constant"]
    axes.axhline(estimate(constant).value, color="#555555", linestyle=":", linewidth=1)
    axes.set_ylabel("validation RMSE")
    axes.legend()
    return figure


def _acceptance(results: Results, arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 7, 3.6)
    _sweep(axes, results, "edmala", "acceptance")
    if "dmala_acceptance" in arrays:
        _level(axes, float(arrays["dmala_acceptance"].mean()), "dmala")
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("acceptance probability")
    return figure


def _distance(results: Results, arrays: Arrays, names: list[str]) -> "Figure":
    figure, panels = style.subplots(len(names), 4.6 * len(names), 3.6)
    bits = estimate(results.settings["bits"]).value
    shades = style.color_map("viridis")(np.linspace(0, 0.8, len(SHOWN_PATHS)))
    for axes, name in zip(panels, names, strict=True):
        path = arrays[f"{name}_path"]
        steps = STRIDE * (1 + np.arange(len(path)))
        for variance, shade in zip(SHOWN_PATHS, shades, strict=True):
            place = int(np.argmin(np.abs(arrays["variances"] - variance)))
            axes.plot(steps, path[:, place], color=shade, linewidth=1.8)
            axes.axhline(np.sqrt(bits * variance), color=shade, linestyle="--", linewidth=0.9)
            axes.annotate(f"η = {variance:g}", (steps[0], path[0, place]), (4, 4), textcoords="offset points",
                          color=shade, fontsize=9)  # fmt: skip
        axes.set_yscale("log")
        axes.set_title(name)
        axes.set_xlabel("step")
    panels[0].set_ylabel("‖θ − θ_a‖ (dashed: √(dη))")
    return figure
