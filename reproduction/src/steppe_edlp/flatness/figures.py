"""Figures of flat distributions and flat solutions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import format_decimals, to_estimate, to_number
from steppe.results import Cell, Results
from steppe_edlp.plots import draw_bars, name_rows, unpack_arrays, write_beside
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPERED_COLOR = "#777777"
Arrays = dict[str, np.ndarray]
Rows = Sequence[Mapping[str, Cell]]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = unpack_arrays(results)
    figures = {}
    if "mixture_tilted" in arrays:
        figures |= {"tilt": _draw_tilt(results), "mixture": _draw_mixture(arrays)}
    if "flips" in arrays:
        rows = find_rows(results, "perceptron")
        figures |= {"test-error": _draw_test_error(rows), "flips": _draw_flips(arrays, rows)}
    return figures


def _draw_tilt(results: Results) -> "Figure":
    rows = results.table("tilt").rows
    figure, panels = style.make_row(2, 9, 3.6)
    xs = [to_number(row["strength"]) for row in rows]
    color = style.SAMPLER_COLORS["roughness_tilted"]
    for axes, kind in zip(panels, ("flat", "sharp"), strict=True):
        axes.plot(xs, [to_number(row[f"{kind}_exact"]) for row in rows], color=color, linewidth=1.5)
        tempered = [to_number(row[f"{kind}_tempered"]) for row in rows]
        axes.plot(xs, tempered, "--", color=TEMPERED_COLOR, linewidth=1.5)
        for x, row in zip(xs, rows, strict=True):
            found = to_estimate(row[kind])
            axes.plot(x, found.value, "d", color=color, markersize=6)
            style.draw_interval(axes, found, x, vertical=True)
        words, end = "tempering at equal E[U]", (xs[-1], tempered[-1])
        write_beside(axes, words, end, (-2, 6), ha="right", color=TEMPERED_COLOR)
        axes.set_title(f"Time in {kind} modes")
        axes.set_xlabel("strength λ of the tilt")
    panels[0].set_ylabel("fraction of steps")
    return figure


def _draw_mixture(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.make_row(1, 6.5, 3.8)
    for name, color, label in (
        ("mixture_tilted", style.SAMPLER_COLORS["roughness_tilted"], "tilt"),
        ("mixture_tempered", TEMPERED_COLOR, "tempering"),
    ):
        mass, height = arrays[name].T
        axes.plot(height, mass, "o-", color=color, markersize=5)
        write_beside(axes, label, (height[-1], mass[-1]), (6, 2), color=color, fontsize=10)
    write_beside(axes, "π", arrays["mixture_tilted"][0][::-1], (6, -4), fontsize=10)
    axes.set_xlabel("E[U]")
    axes.set_ylabel("mass of the flat component")
    return figure


def _draw_test_error(rows: Rows) -> "Figure":
    figure, (axes,) = style.make_row(1, 7, 0.55 * len(rows) + 1.1)
    names, errors = [str(row["sampler"]) for row in rows], [to_number(row["test_error"]) for row in rows]
    texts = [
        f"{one:.4f}   U {format_decimals(to_number(row['log_density']), 2)}"
        for one, row in zip(errors, rows, strict=True)
    ]
    draw_bars(axes, names, [row["test_error"] for row in rows], texts)
    name_rows(axes, names)
    axes.set_xlim(0, 1.35 * max(errors))
    axes.set_xlabel("fraction of test patterns misclassified")
    return figure


def _draw_flips(arrays: Arrays, rows: Rows) -> "Figure":
    figure, (axes,) = style.make_row(1, 6.5, 3.8)
    flips = arrays["flips"]
    for row, curves in zip(rows, arrays["after_flips"], strict=True):
        name, errors = str(row["sampler"]), curves.std(axis=0, ddof=1 if len(curves) > 1 else 0)
        axes.errorbar(
            flips,
            curves.mean(axis=0),
            1.96 * errors / np.sqrt(len(curves)),
            color=style.SAMPLER_COLORS[name],
            marker=style.SAMPLER_MARKERS[name],
            capsize=2.5,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_xticks(flips, [str(number) for number in flips])
    axes.minorticks_off()
    axes.set_xlabel("random flips of the weights")
    axes.set_ylabel("training errors")
    axes.legend()
    return figure
