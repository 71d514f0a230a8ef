"""Figures of the four bits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import estimate as estimate_of
from steppe.report.cells import number
from steppe.results import Cell, Estimate, Results
from steppe_edlp.bernoulli.modes_of_bits import bit_names, kinds_of, modes_figure, occupancy_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Order of the two-bit prefixes and suffixes in the paper's grids: neighbours differ in one bit.
ROWS, COLUMNS = ("11", "01", "00", "10"), ("01", "00", "10", "11")
TARGET_COLORS, SAMPLED_COLORS = "Greys", "Blues"

Rows = Mapping[str, Mapping[str, Cell]]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = {name: array.numpy() for name, array in results.arrays.items()}
    names = [name.removeprefix("law_") for name in arrays if name.startswith("law_")]
    shares = {name: _of_protocol(arrays[f"shares_{name}"], results) for name in names}
    means = {name: share.mean(axis=0) for name, share in shares.items()}
    spreads = {str(row["sampler"]): row for row in results.table("spectrum").rows}
    return {
        "masses": _masses(results, arrays["target"]),
        "occupancy": occupancy_figure(arrays["target"], means),
        "heatmaps": _heatmaps(arrays["target"], means),
        "flat-modes": modes_figure(arrays["target"]),
        "spectrum": _spectra(arrays["eigenvalues"], arrays["target"], means, spreads),
        "seeds": _seeds(spreads, arrays, names),
    }


def _of_protocol(shares: np.ndarray, results: Results) -> np.ndarray:
    return shares[:1] if results.protocol == "published" else shares


def _masses(results: Results, target: np.ndarray) -> "Figure":
    rows = [row for row in results.table("occupancy").rows if row["flat"] is not None]
    figure, axes = style.subplots(2, 9.5, 0.42 * len(rows) + 1.3)
    kinds = kinds_of(bit_names(len(target)))
    for panel, kind, title in zip(axes, ("flat", "sharp"), ("flat modes", "sharp modes"), strict=True):
        exact = sum(mass for mass, of in zip(target, kinds, strict=True) if of == kind)
        for place, row in enumerate(rows):
            name, estimate = str(row["sampler"]), estimate_of(row[kind])
            panel.barh(place, estimate.value, color=style.SAMPLER_COLORS[name], alpha=0.75, height=0.7)
            style.interval(panel, estimate, place)
            panel.plot(
                number(row[f"{kind}_exact"]), place, "|", color="black", markersize=13, markeredgewidth=1.5
            )
            style.label(panel, f"{estimate.value:.3f}", (_end(estimate), place))
        panel.axvline(exact, linestyle="--", color="#555555", linewidth=1)
        panel.set_title(f"Time in {title} (dashed: π, {exact:.3f})")
        panel.set_xlabel("share of steps")
        panel.margins(x=0.14)
        panel.grid(False)
    axes[0].set_yticks(range(len(rows)), [str(row["sampler"]) for row in rows])
    axes[0].invert_yaxis()
    return figure


def _end(estimate: Estimate) -> float:
    return estimate.value if estimate.high is None else estimate.high


def _heatmaps(target: np.ndarray, means: dict[str, np.ndarray]) -> "Figure":
    columns = min(4, len(means))
    num_rows = -(-len(means) // columns)
    figure, panels = style.grid(num_rows, columns, 3.0 * columns, 3.1 * num_rows)
    top = max(target.max(), *(mean.max() for mean in means.values()))
    for panel, (name, mean) in zip(panels, means.items(), strict=False):
        _heatmap(panel, target, mean, top)
        panel.set_title(name)
    for panel in panels[len(means) :]:
        panel.set_visible(False)
    return figure


def _heatmap(axes: "Axes", target: np.ndarray, mean: np.ndarray, top: float) -> None:
    from matplotlib.patches import Polygon, Rectangle

    kinds = dict(zip(bit_names(len(target)), kinds_of(bit_names(len(target))), strict=True))
    target_map, sampled_map = style.color_map(TARGET_COLORS), style.color_map(SAMPLED_COLORS)
    for row, first in enumerate(ROWS):
        for column, last in enumerate(COLUMNS):
            state = int(first + last, 2)
            left, right, low, high = column, column + 1, row, row + 1
            upper = [(left, low), (right, low), (right, high)]
            lower = [(left, low), (left, high), (right, high)]
            axes.add_patch(Polygon(upper, color=target_map(0.75 * target[state] / top)))
            axes.add_patch(Polygon(lower, color=sampled_map(0.75 * mean[state] / top)))
            axes.text(left + 0.69, low + 0.28, _short(target[state]), ha="center", va="center", fontsize=7)
            axes.text(left + 0.31, low + 0.74, _short(mean[state]), ha="center", va="center", fontsize=7)
            if kind := kinds[first + last]:
                color = style.FLAT_COLOR if kind == "flat" else style.SHARP_COLOR
                inside = (left + 0.04, low + 0.04)
                axes.add_patch(Rectangle(inside, 0.92, 0.92, fill=False, edgecolor=color, linewidth=2.5))
    axes.set_xlim(0, 4)
    axes.set_ylim(4, 0)
    axes.set_xticks(np.arange(4) + 0.5, COLUMNS)
    axes.set_yticks(np.arange(4) + 0.5, ROWS)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.set_aspect("equal")


def _spectra(
    eigenvalues: np.ndarray, target: np.ndarray, means: dict[str, np.ndarray], spreads: Rows
) -> "Figure":
    columns = min(4, len(means))
    num_rows = -(-len(means) // columns)
    figure, panels = style.grid(num_rows, columns, 2.9 * columns, 2.5 * num_rows)
    edges = np.linspace(eigenvalues.min() - 0.1, eigenvalues.max() + 0.1, 31)
    for panel, (name, mean) in zip(panels, means.items(), strict=False):
        pooled, color = eigenvalues.ravel(), style.SAMPLER_COLORS[name]
        panel.hist(pooled, edges, weights=np.repeat(mean, 4) / 4, color=color, alpha=0.7)
        panel.hist(pooled, edges, weights=np.repeat(target, 4) / 4, histtype="step", color="black", lw=0.8)
        spread, range_ = (_spread(spreads[name], key) for key in ("std", "iqr"))
        panel.set_title(f"{name}\n{spread}\n{range_}", fontsize=9)
    for panel in panels[len(means) :]:
        panel.set_visible(False)
    figure.supxlabel("eigenvalue of the interaction matrix (outline: under π)", fontsize=10)
    figure.supylabel("share", fontsize=10)
    return figure


def _spread(row: Mapping[str, Cell], key: str) -> str:
    """A measure of spread beside its exact value."""
    name = {"std": "std", "iqr": "IQR"}[key]
    return f"{name} {number(row[key]):.3f}, exact {number(row[f'{key}_exact']):.3f}"


def _seeds(rows: Rows, arrays: dict[str, np.ndarray], names: Sequence[str]) -> "Figure":
    figure, (axes,) = style.subplots(1, 8.5, 0.5 * len(names) + 1.2)
    for place, name in enumerate(names):
        values = arrays[f"window_std_{name}"]
        low, lower, middle, upper, high = np.percentile(values, [2.5, 25, 50, 75, 97.5])
        color = style.SAMPLER_COLORS[name]
        axes.plot([low, high], [place, place], color=color, linewidth=2)
        axes.plot([lower, upper], [place, place], color=color, linewidth=9, alpha=0.6, solid_capstyle="butt")
        axes.plot(middle, place, "o", color="white", markeredgecolor=color, markersize=5)
        axes.plot(
            number(rows[name]["std_exact"]), place, "|", color="black", markersize=14, markeredgewidth=1.5
        )
        if rows[name]["std_paper"] is not None:
            paper = number(rows[name]["std_paper"])
            axes.plot(paper, place, "D", color="black", markersize=6)
            axes.annotate(f"paper {paper:.3f}", (paper, place), (0, 8), textcoords="offset points")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(y=0.12)
    axes.set_xlabel("std of the eigenvalues in one run: 95 % and 50 % of the seeds, median; tick: exact")
    axes.grid(axis="x")
    return figure


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")
