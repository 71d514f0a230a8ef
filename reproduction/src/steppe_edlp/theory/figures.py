"""Figures of the bounds."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.results import Results
from steppe_edlp.plots import draw_limit, unpack_arrays, write_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUND_COLOR, EXACT_COLOR = "#CC3311", "#0077BB"
PUBLISHED_RATIO = 0.01 / 4.0

Place = tuple[float, float]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = unpack_arrays(results)
    bias, (printed, corrected) = style.make_row(2, 9, 3.4)
    _draw_curve(printed, arrays["proposition-5-4"], bound_at=(0.1, 0.22), exact_at=(0.4, 0.72))
    _draw_curve(corrected, arrays["edula-bias"], bound_at=(0.3, 0.72), exact_at=(0.45, 0.48))
    printed.set(title="Proposition 5.4 as printed, one bit", xlabel="step size α", ylim=(1e-6, 1e2))
    corrected.set(title="Corrected bound, ring of four bits", xlabel="step size α")
    printed.set_ylabel("bias (L1 distance, at most 2)")
    gap, (printed, corrected) = style.make_row(2, 9, 3.4)
    _draw_curve(printed, arrays["theorem-5-6"], bound_at=(0.15, 0.75), exact_at=(0.4, 0.5))
    _draw_curve(corrected, arrays["glu-gap"], bound_at=(0.45, 0.58), exact_at=(0.08, 0.9))
    printed.set(title="Theorem 5.6 as printed, one bit", xlabel="center step size α_a")
    corrected.set(title="Corrected bound (GLU), four bits", xlabel="coupling variance η")
    printed.set_ylabel("spectral gap per step")
    return {"bias": bias, "gap": gap, "drift": _draw_drift(*arrays["drift"])}


def _draw_curve(axes: "Axes", curve: np.ndarray, *, bound_at: Place, exact_at: Place) -> None:
    """A bound and the exact numbers, each named at a place in fractions of the axes."""
    x, bound, exact = curve
    axes.loglog(x, bound, color=BOUND_COLOR, linewidth=2)
    axes.loglog(x, exact, "o", color=EXACT_COLOR, markersize=6)
    # Nothing here is random, so the curves are always where these places were chosen for.
    axes.text(*bound_at, "bound", transform=axes.transAxes, color=BOUND_COLOR)
    axes.text(*exact_at, "exact", transform=axes.transAxes, color=EXACT_COLOR)


def _draw_drift(x: np.ndarray, printed: np.ndarray, true: np.ndarray) -> "Figure":
    figure, (axes,) = style.make_row(1, 6.5, 3.4)
    for name, values, color in (("printed", printed, BOUND_COLOR), ("true", true, EXACT_COLOR)):
        axes.plot(x, values, color=color, linewidth=2)
        write_beside(axes, name, (x[1], values[1]), (4, -14), color=color, fontsize=10)
    draw_limit(axes, 1, is_across=True)
    draw_limit(axes, PUBLISHED_RATIO, ":")
    write_beside(axes, "the paper's networks", (PUBLISHED_RATIO, 0.1), (4, 0))
    axes.set(xscale="log", ylim=(0, 2.6), xlabel="α_a / η", ylabel="factor of E|a|² per step")
    axes.set_title("Below the dashed line the center contracts")
    return figure
