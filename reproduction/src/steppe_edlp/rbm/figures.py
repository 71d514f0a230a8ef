"""Figures of the images of an RBM."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate, to_number
from steppe.results import Results
from steppe_edlp.plots import color_of, draw_limit, draw_paper, make_panels, name_rows, unpack_arrays
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Single runs within this many times the distance from the median to the 5 and 95 % quantiles are dots.
REACH = 2.0


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = unpack_arrays(results)
    return {
        "sheets": _draw_sheets(results, arrays["shown"]),
        "reconstruction": _draw_reconstruction(results, arrays["mse"]),
        "digits": _draw_digits(results),
    }


def _draw_sheets(results: Results, shown: np.ndarray) -> "Figure":
    names = [str(row["sampler"]) for row in results.table("digits").rows]
    figure, panels = make_panels(names, -(-len(names) // 2), 2.1, 2.3)
    across, side = (round(length**0.5) for length in shown.shape[1:])
    for axes, name, images in zip(panels, names, shown, strict=True):
        tiles = images.reshape(across, across, side, side).astype(float)
        framed = np.pad(tiles, ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=0.4)
        width = across * (side + 1)
        sheet = framed.transpose(0, 2, 1, 3).reshape(width, width)
        axes.imshow(sheet, cmap="gray_r", interpolation="nearest")
        axes.set_title(name, fontsize=9)
        axes.axis("off")
    return figure


def _draw_reconstruction(results: Results, single: np.ndarray) -> "Figure":
    scored = "clean" if results.protocol == "sound" else "itself"
    rows = [row for row in find_rows(results, "reconstruction") if row["scored"] == scored]
    names = list(dict.fromkeys(str(row["sampler"]) for row in rows))
    figure, panels = style.make_row(3, 10.5, 0.36 * len(names) + 1.3)
    for column, axes in enumerate(panels):
        for place, (name, row) in enumerate(zip(names, rows[column :: len(panels)], strict=True)):
            found = to_estimate(row["mse"])
            axes.plot(found.value, place, "s", color=color_of(name), markersize=7)
            style.draw_interval(axes, found, place)
            if "mse_paper" in row:
                paper = to_number(row["mse_paper"])
                draw_paper(axes, [paper], [place - 0.22])
        _draw_single_runs(axes, single[: len(names), :, column])
        axes.set(title=f"{rows[column]['setting']} test images", xlabel="mean squared error")
        axes.grid(axis="x")
        axes.locator_params(axis="x", nbins=4, min_n_ticks=3)
    name_rows(panels[0], names)
    return figure


def _draw_single_runs(axes: "Axes", single: np.ndarray) -> None:
    """A dot per run, row by row; runs far from all others are arrows at the edge, or they set the scale."""
    low, median, high = np.nanquantile(single, [0.05, 0.5, 0.95])
    edges = median - REACH * (median - low), median + REACH * (high - median)
    for place, values in enumerate(single):
        kept = (values >= edges[0]) & (values <= edges[1])
        axes.plot(values[kept], np.full(kept.sum(), place + 0.22), ".", color="#888888", markersize=4)
        for edge, is_beyond, marker in zip(edges, (values < edges[0], values > edges[1]), "<>", strict=True):
            if is_beyond.any():
                axes.plot(edge, place + 0.22, marker, color="#888888", markersize=5)


def _draw_digits(results: Results) -> "Figure":
    rows = results.table("digits").rows
    names = [str(row["sampler"]) for row in rows]
    figure, panels = make_panels(names, -(-len(rows) // 2), 2.2, 2.1)
    for axes, name, row in zip(panels, names, rows, strict=True):
        fractions = [to_number(row[f"digit_{digit}"]) for digit in range(10)]
        color = style.SAMPLER_COLORS.get(name, style.OTHER_COLOR)
        axes.bar(range(10), fractions, color=color, alpha=0.8)
        draw_limit(axes, 0.1, is_across=True)
        axes.set_title(f"{name}\neffective {to_number(row['effective']):.1f} of 10", fontsize=9)
        axes.set_xticks(range(10))
    figure.supxlabel("digit that LeNet sees", fontsize=10)
    figure.supylabel("fraction of images", fontsize=10)
    return figure
