"""Figures of the bounds."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUND_COLOR, EXACT_COLOR = "#CC3311", "#0077BB"
PUBLISHED_RATIO = 0.01 / 4.0

Arrays = dict[str, np.ndarray]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = {name: array.numpy() for name, array in results.arrays.items()}
    return {"bias": _bias(arrays), "gap": _gap(arrays), "drift": _drift(arrays)}


def _bias(arrays: Arrays) -> "Figure":
    figure, (printed, corrected) = style.subplots(2, 9, 3.4)
    _curve(printed, arrays, "proposition-5-4", "Proposition 5.4 as printed, one bit", "step size α")
    _curve(corrected, arrays, "edula-bias", "Corrected bound, ring of four bits", "step size α")
    printed.set_ylim(1e-6, 1e2)
    printed.set_ylabel("bias (L1 distance, at most 2)")
    return figure


def _gap(arrays: Arrays) -> "Figure":
    figure, (printed, corrected) = style.subplots(2, 9, 3.4)
    _curve(printed, arrays, "theorem-5-6", "Theorem 5.6 as printed, one bit", "center step size α_a")
    _curve(corrected, arrays, "glu-gap", "Corrected bound (GLU), four bits", "coupling variance η")
    printed.set_ylabel("spectral gap per step")
    return figure


def _curve(axes: "Axes", arrays: Arrays, key: str, title: str, label: str) -> None:
    x, bound, exact = (arrays[f"{key}_{name}"] for name in ("x", "bound", "exact"))
    axes.loglog(x, bound, color=BOUND_COLOR, linewidth=2)
    axes.loglog(x, exact, "o", color=EXACT_COLOR, markersize=6)
    seen = int(1e-6 < bound[1] < 1e2)
    axes.annotate("bound", (x[seen], bound[seen]), (9, -4), textcoords="offset points", color=BOUND_COLOR)
    axes.annotate("exact", (x[0], exact[0]), (6, 5), textcoords="offset points", color=EXACT_COLOR)
    axes.set_title(title)
    axes.set_xlabel(label)


def _drift(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 6.5, 3.4)
    x = arrays["drift_x"]
    axes.plot(x, arrays["drift_printed"], color=BOUND_COLOR, linewidth=2)
    axes.plot(x, arrays["drift_true"], color=EXACT_COLOR, linewidth=2)
    axes.axhline(1, color="#555555", linestyle="--", linewidth=1)
    axes.axvline(PUBLISHED_RATIO, color="#555555", linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_ylim(0, 2.6)
    axes.annotate(
        "printed", (x[1], arrays["drift_printed"][1]), (4, -14), textcoords="offset points", color=BOUND_COLOR
    )
    axes.annotate(
        "true", (x[1], arrays["drift_true"][1]), (4, -14), textcoords="offset points", color=EXACT_COLOR
    )
    axes.annotate(
        "the paper's networks", (PUBLISHED_RATIO, 0.1), (4, 0), textcoords="offset points", fontsize=9
    )
    axes.set_xlabel("α_a / η")
    axes.set_ylabel("factor of E|a|² per step")
    axes.set_title("Below the dashed line the center contracts")
    return figure
