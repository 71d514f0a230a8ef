"""Figures of a run: the trace of the log-density, and how often sites change."""

import io
from typing import TYPE_CHECKING

import numpy as np

from steppe.diagnostics.sites import SiteVerdicts, as_paths
from steppe.report import style
from steppe.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_POINTS = 1000
MAX_CHAINS_DRAWN = 16
COLORS = ("#0077BB", "#EE7733", "#009988", "#CC3311", "#33BBEE", "#EE3377", "#332288", "#888888")
STUCK_COLOR, MOVING_COLOR = "#CC3311", "#0077BB"


@style.applied()
def trace_figure(trace: Trace) -> bytes:
    """Log-density against row, a line per chain, warm-up shaded; an ensemble shows the mean of its copies."""
    figure, (axes,) = style.subplots(1, 8.0, 3.4)
    values = trace.arrays["log_density"]
    values = values.mean(axis=2) if values.ndim == 3 else values
    rows = np.unique(np.linspace(0, values.shape[1] - 1, MAX_POINTS).astype(int))
    if trace.num_warmup_rows:
        axes.axvspan(0, trace.num_warmup_rows, color="#EEEEEE", zorder=0, lw=0)
    for chain, line in enumerate(values[:MAX_CHAINS_DRAWN]):
        finite = np.where(np.isfinite(line[rows]), line[rows], np.nan)
        axes.plot(rows, finite, lw=0.8, alpha=0.85, color=COLORS[chain % len(COLORS)])
    axes.set_xlabel("kept step, warm-up first")
    axes.set_ylabel("log-density U")
    axes.margins(x=0)
    if len(values) > MAX_CHAINS_DRAWN:
        axes.set_title(f"First {MAX_CHAINS_DRAWN} of {len(values)} chains")
    return _svg(figure)


@style.applied()
def changes_figure(trace: Trace, sites: SiteVerdicts) -> bytes:
    """Share of consecutive draws between which each site changes; stuck sites in red."""
    paths = as_paths(trace.levels())
    share = (paths[:, 1:] != paths[:, :-1]).mean(axis=(0, 1))
    figure, (axes,) = style.subplots(1, 8.0, 2.8)
    for is_in, color, label in (
        (~sites.is_stuck, MOVING_COLOR, "mixed or constant"),
        (sites.is_stuck, STUCK_COLOR, "stuck"),
    ):
        places = np.flatnonzero(is_in)
        if len(places):
            marker = "o" if color == MOVING_COLOR else "X"
            axes.plot(places, share[places], marker, ms=4, color=color, label=label)
    axes.set_xlabel("site")
    axes.set_ylabel("share of draws that change it")
    axes.set_ylim(0, max(1.1 * float(share.max()), 1e-3))
    axes.locator_params(axis="x", integer=True)
    if sites.is_stuck.any():
        axes.legend()
    return _svg(figure)


@style.applied()
def _svg(figure: "Figure") -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
