"""Figures of flat laws and flat solutions."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import estimate, number
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEMPERED_COLOR = "#777777"
Arrays = dict[str, np.ndarray]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = {name: array.numpy() for name, array in results.arrays.items()}
    figures = {}
    if "mixture_tilted" in arrays:
        figures |= {"tilt": _tilt(results), "mixture": _mixture(arrays)}
    if "flips" in arrays:
        figures |= {"test-error": _test_error(results), "flips": _flips(arrays)}
    return figures


def _tilt(results: Results) -> "Figure":
    rows = results.table("tilt").rows
    figure, panels = style.subplots(2, 9, 3.6)
    xs = [number(row["strength"]) for row in rows]
    color = style.SAMPLER_COLORS["roughness_tilted"]
    for axes, kind in zip(panels, ("flat", "sharp"), strict=True):
        axes.plot(xs, [number(row[f"{kind}_exact"]) for row in rows], color=color, linewidth=1.5)
        tempered = [number(row[f"{kind}_tempered"]) for row in rows]
        axes.plot(xs, tempered, "--", color=TEMPERED_COLOR, linewidth=1.5)
        for x, row in zip(xs, rows, strict=True):
            found = estimate(row[kind])
            axes.plot(x, found.value, "d", color=color, markersize=6)
            style.interval(axes, found, x, vertical=True)
        axes.annotate("tempering at equal E[U]", (xs[-1], tempered[-1]), (-2, 6), textcoords="offset points",
                      ha="right", color=TEMPERED_COLOR, fontsize=9)  # fmt: skip
        axes.set_title(f"Time in {kind} modes")
        axes.set_xlabel("strength λ of the tilt")
    panels[0].set_ylabel("share of steps")
    return figure


def _mixture(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 6.5, 3.8)
    for name, color, label in (
        ("mixture_tilted", style.SAMPLER_COLORS["roughness_tilted"], "tilt"),
        ("mixture_tempered", TEMPERED_COLOR, "tempering"),
    ):
        mass, height = arrays[name].T
        axes.plot(height, mass, "o-", color=color, markersize=5)
        axes.annotate(label, (height[-1], mass[-1]), (6, 2), textcoords="offset points", color=color)
    axes.annotate("π", arrays["mixture_tilted"][0][::-1], (6, -4), textcoords="offset points")
    axes.set_xlabel("E[U]")
    axes.set_ylabel("mass of the flat component")
    return figure


def _test_error(results: Results) -> "Figure":
    rows = results.table("perceptron").rows
    figure, (axes,) = style.subplots(1, 7, 0.55 * len(rows) + 1.1)
    values = [estimate(row["test_error"]) for row in rows]
    for place, (row, found) in enumerate(zip(rows, values, strict=True)):
        name = str(row["method"])
        axes.barh(place, found.value, color=style.SAMPLER_COLORS[name], alpha=0.75, height=0.7)
        style.interval(axes, found, place)
        text = f"{found.value:.4f}   U {number(row['log_density']):.2f}"
        style.label(axes, text, (found.value if found.high is None else found.high, place))
    axes.set_yticks(range(len(rows)), [str(row["method"]) for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * max(found.value for found in values))
    axes.set_xlabel("share of test patterns misclassified")
    axes.grid(False)
    return figure


def _flips(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 6.5, 3.8)
    flips = arrays["flips"]
    names = [name.removeprefix("after_flips_") for name in arrays if name.startswith("after_flips_")]
    for name in names:
        _line(axes, flips, arrays[f"after_flips_{name}"], name)
    axes.set_xscale("log")
    axes.set_xticks(flips, [str(number) for number in flips])
    axes.minorticks_off()
    axes.set_xlabel("random flips of the weights")
    axes.set_ylabel("training errors")
    axes.legend()
    return figure


def _line(axes: "Axes", flips: np.ndarray, curves: np.ndarray, name: str) -> None:
    mean = curves.mean(axis=0)
    spread = 1.96 * curves.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else None
    axes.errorbar(
        flips,
        mean,
        spread,
        color=style.SAMPLER_COLORS[name],
        marker=style.SAMPLER_MARKERS[name],
        capsize=2.5,
        label=name,
    )
