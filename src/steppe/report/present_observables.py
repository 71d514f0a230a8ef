"""Presenter of observables that were followed while chains ran: a table, and their histograms."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.diagnostics.streamed import Streamed
from steppe.report import style
from steppe.report.cells import to_finite
from steppe.results import Column, Figure, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MAX_DRAWN = 6
COLOR = "#0077BB"


def tabulate_streams(streams: Sequence[Streamed]) -> Table:
    """Return looks, autocorrelation time and values that are not finite of every observable."""
    return Table(
        key="observables",
        title="Observables followed while chains ran",
        columns=[
            Column(key="name", label="observable"),
            Column(key="looks", label="looks per chain", digits=0),
            Column(key="every", label="draws between looks", digits=0),
            Column(key="time", label="autocorrelation time in draws", better="lower", digits=1),
            Column(key="nonfinite", label="not finite", digits=0),
        ],
        rows=[
            {
                "name": one.name,
                "looks": int(one.num_seen.min()),
                "every": one.every,
                "time": to_finite(one.pooled_time),
                "nonfinite": int(one.num_nonfinite.sum()),
            }
            for one in streams
        ],
        marked_rows=[row for row, one in enumerate(streams) if one.num_nonfinite.any()],
        is_detail=True,
    )


def describe_histograms(streams: Sequence[Streamed]) -> Figure:
    """Describe the picture of all histograms."""
    drawn = list_drawn(streams)
    left_out = len(streams) - len(drawn)
    more = f" {left_out} more are not shown." if left_out else ""
    return Figure(
        key="observables",
        title="How often observables took each value.",
        caption="All chains together, as fractions of all looks; a thin line for every chain. Chains whose "
        f"lines differ have not come to the same distribution.{more}",
        alternative="Histograms of "
        + ", ".join(f"{one.name} with mean {one.mean.mean():.4g}" for one in drawn),
    )


def list_drawn(streams: Sequence[Streamed]) -> list[Streamed]:
    """Return the observables that have a histogram, as many as are shown."""
    return [one for one in streams if one.counts.size][:MAX_DRAWN]


@style.apply()
def draw_histograms(streams: Sequence[Streamed]) -> "Drawing":
    """Draw them side by side."""
    drawn = list_drawn(streams)
    figure, all_axes = style.make_row(len(drawn), max(4.0, 2.7 * len(drawn)), 2.8)
    for axes, one in zip(all_axes, drawn, strict=True):
        fractions = one.counts / np.maximum(one.counts.sum(axis=1, keepdims=True), 1)
        axes.stairs(fractions.mean(axis=0), one.bin_edges, fill=True, color=COLOR, alpha=0.35)
        for chain in fractions[:MAX_DRAWN]:
            axes.stairs(chain, one.bin_edges, color=COLOR, lw=0.5, alpha=0.8)
        axes.set_xlabel(one.name)
    all_axes[0].set_ylabel("fraction of looks")
    return figure
