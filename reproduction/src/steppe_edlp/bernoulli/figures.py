"""Figures of the four-bit target."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import to_number
from steppe.results import Cell, Results
from steppe.targets.bernoulli import PAPER_MODES
from steppe_edlp.plots import (
    draw_bars,
    draw_limit,
    draw_paper,
    make_panels,
    name_rows,
    unpack_arrays,
    write_beside,
)
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Order of the two-bit prefixes and suffixes in the paper's grids: neighbours differ in one bit.
ROWS, COLUMNS = ("11", "01", "00", "10"), ("01", "00", "10", "11")
STATES = [f"{state:04b}" for state in range(16)]
KINDS = {"".join(map(str, mode)): kind for kind, modes in PAPER_MODES._asdict().items() for mode in modes}
KIND_COLORS = {"flat": style.FLAT_COLOR, "sharp": style.SHARP_COLOR}

# Cells of the paper's heat maps, one run each; those of dula do not all come out of the authors' code.
PAPER_CELLS = {
    "dula": {"0100": 0.06, "1001": 0.01, "0010": 0.13, "0111": 0.30},
    "dmala": {"0100": 0.05, "1001": 0.03, "0010": 0.22, "0111": 0.14},
    "edula": {"0100": 0.11, "1001": 0.05, "0010": 0.08, "0111": 0.06},
    "edmala": {"0100": 0.16, "1001": 0.23, "0010": 0.03, "0111": 0.13},
}

Means = Mapping[str, np.ndarray]
Rows = Sequence[Mapping[str, Cell]]


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays, spectrum = unpack_arrays(results), find_rows(results, "spectrum")
    names = [str(row["sampler"]) for row in spectrum]
    means = dict(zip(names, arrays["fractions"].mean(axis=1), strict=True))
    return {
        "masses": _draw_masses(find_rows(results, "occupancy"), arrays["target"]),
        "occupancy": _draw_occupancy(arrays["target"], means),
        "heatmaps": _draw_heatmaps(arrays["target"], means),
        "flat-modes": _draw_modes(arrays["target"]),
        "spectrum": _draw_spectra(arrays["eigenvalues"], arrays["target"], means, spectrum),
        "seeds": _draw_seeds(spectrum, arrays["window_std"]),
    }


def _draw_masses(rows: Rows, target: np.ndarray) -> "Figure":
    figure, panels = style.make_row(2, 9.5, 0.42 * len(rows) + 1.3)
    names = [str(row["sampler"]) for row in rows]
    for axes, kind in zip(panels, ("flat", "sharp"), strict=True):
        exact = sum(mass for mass, state in zip(target, STATES, strict=True) if KINDS.get(state) == kind)
        draw_bars(axes, names, [row[kind] for row in rows])
        ticks = [to_number(row[f"{kind}_exact"]) for row in rows]
        axes.plot(ticks, range(len(rows)), "|", color="black", markersize=13, markeredgewidth=1.5)
        draw_limit(axes, exact)
        printed = _find_printed(names, kind)
        draw_paper(axes, list(printed.values()), list(printed), "paper, one run")
        axes.set_title(f"Time in {kind} modes (dashed: π, {exact:.3f})")
        axes.set_xlabel("fraction of steps")
        axes.margins(x=0.14)
    name_rows(panels[0], names)
    panels[0].legend(loc="upper right", fontsize=9)
    return figure


def _find_printed(names: Sequence[str], kind: str) -> dict[int, float]:
    """The paper's time in modes of a kind, by the row of the sampler."""
    return {
        row: sum(mass for state, mass in PAPER_CELLS[name].items() if KINDS[state] == kind)
        for row, name in enumerate(names)
        if name in PAPER_CELLS
    }


def _draw_occupancy(target: np.ndarray, means: Means) -> "Figure":
    figure, panels = make_panels(list(means), 4, 2.8, 2.3)
    for axes, (name, mean) in zip(panels, means.items(), strict=False):
        axes.bar(range(16), target, width=0.9, color=[_color_of(state) for state in STATES], alpha=0.45)
        axes.plot(range(16), mean, "_", color=style.SAMPLER_COLORS[name], markersize=9, markeredgewidth=2.5)
        axes.set_xticks([int(state, 2) for state in KINDS], list(KINDS), rotation=60, fontsize=8)
        axes.set_ylim(0, 1.08 * max(target.max(), *(mean.max() for mean in means.values())))
        axes.grid(axis="y")
    words = (
        "16 states, the four modes named; bars: π (flat and sharp modes coloured); lines: fraction of steps"
    )
    figure.supxlabel(words, fontsize=9)
    figure.supylabel("probability", fontsize=9)
    return figure


def _draw_modes(target: np.ndarray) -> "Figure":
    """Every mode beside the states one flip away: what makes it flat or sharp."""
    figure, panels = style.make_row(len(KINDS), 10, 3.4)
    for axes, (mode, kind) in zip(panels, KINDS.items(), strict=True):
        states = [mode, *(f"{int(mode, 2) ^ 1 << site:04b}" for site in (3, 2, 1, 0))]
        heights = np.array([target[int(state, 2)] for state in states])
        drop = np.log(heights[0] / heights[1:]).mean()
        bars = axes.bar(states, heights, color=[_color_of(mode)] + [style.OTHER_COLOR] * 4)
        axes.bar_label(bars, [f"{height:.3f}".lstrip("0") for height in heights], fontsize=8, padding=1)
        axes.set_title(f"{kind} mode {mode}\na flip lowers log π by {drop:.2f}")
        axes.tick_params(axis="x", rotation=60, length=0)
        axes.margins(y=0.1)
        axes.grid(False)  # every bar carries its number
    panels[0].set_ylabel("probability")
    words = "the mode (coloured), then the states one flip away; drops of log π are means over the flips"
    figure.supxlabel(words, fontsize=10)
    return figure


def _color_of(state: str) -> str:
    return KIND_COLORS.get(KINDS.get(state, ""), style.OTHER_COLOR)


def _draw_heatmaps(target: np.ndarray, means: Means) -> "Figure":
    figure, panels = make_panels(list(means), 4, 3.0, 3.1)
    top = max(target.max(), *(mean.max() for mean in means.values()))
    for axes, (name, mean) in zip(panels, means.items(), strict=True):
        for row, first in enumerate(ROWS):
            for column, last in enumerate(COLUMNS):
                state = int(first + last, 2)
                _draw_cell(axes, row, column, target[state], mean[state], top)
                if printed := PAPER_CELLS.get(name, {}).get(first + last):
                    text = f"◇{printed:.2f}".replace("0.", ".")
                    axes.text(column + 0.42, row + 0.87, text, ha="center", va="center", fontsize=7)
                if kind := KINDS.get(first + last):
                    _draw_box(axes, row, column, KIND_COLORS[kind])
        axes.set(xlim=(0, 4), ylim=(4, 0), aspect="equal")
        axes.set_xticks(np.arange(4) + 0.5, COLUMNS)
        axes.set_yticks(np.arange(4) + 0.5, ROWS)
        axes.tick_params(length=0)
        axes.grid(False)
    return figure


def _draw_cell(axes: "Axes", row: int, column: int, exact: float, sampled: float, top: float) -> None:
    """Upper triangle: π; lower: sampled."""
    from matplotlib.patches import Polygon

    ends = [(column, row), (column + 1, row + 1)]
    for value, name, corner, at in (
        (exact, "Greys", (column + 1, row), (0.69, 0.28)),
        (sampled, "Blues", (column, row + 1), (0.27, 0.62)),
    ):
        axes.add_patch(
            Polygon([ends[0], corner, ends[1]], color=style.find_color_map(name)(0.75 * value / top))
        )
        text = f"{value:.2f}".removeprefix("0")
        axes.text(column + at[0], row + at[1], text, ha="center", va="center", fontsize=7)


def _draw_box(axes: "Axes", row: int, column: int, color: str) -> None:
    from matplotlib.patches import Rectangle

    inside = (column + 0.04, row + 0.04)
    axes.add_patch(Rectangle(inside, 0.92, 0.92, fill=False, edgecolor=color, linewidth=2.5))


def _draw_spectra(eigenvalues: np.ndarray, target: np.ndarray, means: Means, rows: Rows) -> "Figure":
    figure, panels = make_panels(list(means), 4, 2.9, 2.5)
    edges = np.linspace(eigenvalues.min() - 0.1, eigenvalues.max() + 0.1, 31)
    pooled = eigenvalues.ravel()
    for axes, (name, mean), row in zip(panels, means.items(), rows, strict=True):
        axes.hist(pooled, edges, weights=np.repeat(mean, 4) / 4, color=style.SAMPLER_COLORS[name], alpha=0.7)
        axes.hist(pooled, edges, weights=np.repeat(target, 4) / 4, histtype="step", color="black", lw=0.8)
        spreads = [
            f"{label} {to_number(row[key]):.3f}, exact {to_number(row[f'{key}_exact']):.3f}"
            for key, label in (("std", "std"), ("iqr", "IQR"))
        ]
        axes.set_title("\n".join([name, *spreads]), fontsize=9)
    figure.supxlabel("eigenvalue of the interaction matrix (outline: under π)", fontsize=10)
    figure.supylabel("fraction", fontsize=10)
    return figure


def _draw_seeds(rows: Rows, windows: np.ndarray) -> "Figure":
    names = [str(row["sampler"]) for row in rows]
    figure, (axes,) = style.make_row(1, 8.5, 0.5 * len(names) + 1.2)
    for place, (name, row, values) in enumerate(zip(names, rows, windows, strict=True)):
        low, lower, middle, upper, high = np.percentile(values, [2.5, 25, 50, 75, 97.5])
        color = style.SAMPLER_COLORS[name]
        axes.plot([low, high], [place, place], color=color, linewidth=2)
        axes.plot([lower, upper], [place, place], color=color, linewidth=9, alpha=0.6, solid_capstyle="butt")
        axes.plot(middle, place, "o", color="white", markeredgecolor=color, markersize=5)
        exact = to_number(row["std_exact"])
        axes.plot(exact, place, "|", color="black", markersize=14, markeredgewidth=1.5)
        if "std_paper" in row:
            paper = to_number(row["std_paper"])
            draw_paper(axes, [paper], [place])
            write_beside(axes, f"paper {paper:.3f}", (paper, place), (0, 8), fontsize=10)
    name_rows(axes, names)
    axes.margins(y=0.12)
    axes.set_xlabel("std of the eigenvalues in one run: 95 % and 50 % of the seeds, median; tick: exact")
    axes.grid(axis="x")
    return figure
