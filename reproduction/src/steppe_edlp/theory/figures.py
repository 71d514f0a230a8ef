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
Place = tuple[float, float]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = {name: array.numpy() for name, array in results.arrays.items()}
    return {"bias": _bias(arrays), "gap": _gap(arrays), "drift": _drift(arrays)}


def _bias(arrays: Arrays) -> "Figure":
    figure, (printed, corrected) = style.subplots(2, 9, 3.4)
    _curve(printed, arrays, "proposition-5-4", bound_at=(0.1, 0.22), exact_at=(0.4, 0.72))
    _curve(corrected, arrays, "edula-bias", bound_at=(0.3, 0.72), exact_at=(0.45, 0.48))
    printed.set(title="Proposition 5.4 as printed, one bit", xlabel="step size α")
    corrected.set(title="Corrected bound, ring of four bits", xlabel="step size α")
    printed.set_ylim(1e-6, 1e2)
    printed.set_ylabel("bias (L1 distance, at most 2)")
    return figure


def _gap(arrays: Arrays) -> "Figure":
    figure, (printed, corrected) = style.subplots(2, 9, 3.4)
    _curve(printed, arrays, "theorem-5-6", bound_at=(0.15, 0.75), exact_at=(0.4, 0.5))
    _curve(corrected, arrays, "glu-gap", bound_at=(0.45, 0.58), exact_at=(0.08, 0.9))
    printed.set(title="Theorem 5.6 as printed, one bit", xlabel="center step size α_a")
    corrected.set(title="Corrected bound (GLU), four bits", xlabel="coupling variance η")
    printed.set_ylabel("spectral gap per step")
    return figure


def _curve(axes: "Axes", arrays: Arrays, key: str, *, bound_at: Place, exact_at: Place) -> None:
    """A bound and the exact numbers, each named at a place that is a share of the axes' width and height."""
    x, bound, exact = (arrays[f"{key}_{name}"] for name in ("x", "bound", "exact"))
    axes.loglog(x, bound, color=BOUND_COLOR, linewidth=2)
    axes.loglog(x, exact, "o", color=EXACT_COLOR, markersize=6)
    # Nothing here is random, so the curves are always where these places were chosen for.
    axes.text(*bound_at, "bound", transform=axes.transAxes, color=BOUND_COLOR)
    axes.text(*exact_at, "exact", transform=axes.transAxes, color=EXACT_COLOR)


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
