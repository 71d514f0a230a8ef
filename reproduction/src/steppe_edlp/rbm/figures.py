"""Figures of images from a machine."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import estimate, number
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFERENCE = "layer-wise Gibbs"


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    return {
        "sheets": _sheets(results),
        "reconstruction": _reconstruction(results),
        "digits": _digits(results),
    }


def _sheets(results: Results) -> "Figure":
    sheets = {
        key.removeprefix("shown_"): array.numpy()
        for key, array in results.arrays.items()
        if key.startswith("shown_")
    }
    columns = -(-len(sheets) // 2)
    figure, panels = style.grid(2, columns, 2.1 * columns, 4.6)
    for axes, (name, images) in zip(panels, sheets.items(), strict=False):
        side, across = round(images.shape[1] ** 0.5), round(len(images) ** 0.5)
        tiles = images[: across**2].reshape(across, across, side, side)
        framed = np.pad(tiles.astype(float), ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=0.4)
        width = across * (side + 1)
        axes.imshow(
            framed.transpose(0, 2, 1, 3).reshape(width, width), cmap="gray_r", interpolation="nearest"
        )
        axes.set_title(REFERENCE if name == "reference" else name, fontsize=9)
    for axes in panels:
        axes.axis("off")
    return figure


def _reconstruction(results: Results) -> "Figure":
    table = next(table for table in results.tables if table.key.startswith("reconstruction_"))
    names = list(dict.fromkeys(str(row["sampler"]) for row in table.rows))
    figure, panels = style.subplots(3, 10.5, 0.36 * len(names) + 1.3)
    for column, axes in enumerate(panels):
        rows = [table.rows[len(panels) * place + column] for place in range(len(names))]
        for place, (name, row) in enumerate(zip(names, rows, strict=True)):
            found, single = estimate(row["mse"]), results.arrays[f"mse_{name}"].numpy()[:, column]
            axes.plot(found.value, place, "s", color=style.SAMPLER_COLORS[name], markersize=7)
            axes.plot(single, np.full(len(single), place + 0.22), ".", color="#888888", markersize=4)
            style.interval(axes, found, place)
            paper = row.get("mse_paper")
            if paper is not None:
                axes.plot(number(paper), place - 0.22, "D", color="black", markerfacecolor="white")
        axes.set_title(f"{rows[0]['setting']} test images")
        axes.set_xlabel("mean squared error")
        axes.grid(axis="x")
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    return figure


def _digits(results: Results) -> "Figure":
    rows = results.table("digits").rows
    columns = -(-len(rows) // 2)
    figure, panels = style.grid(2, columns, 2.2 * columns, 4.2)
    for axes, row in zip(panels, rows, strict=False):
        name = str(row["sampler"])
        shares = [number(row[f"digit_{digit}"]) for digit in range(10)]
        axes.bar(range(10), shares, color=style.SAMPLER_COLORS.get(name, style.OTHER_COLOR), alpha=0.8)
        axes.axhline(0.1, linestyle="--", color="#555555", linewidth=1)
        axes.set_title(f"{name}\neffective {number(row['effective']):.1f} of 10", fontsize=9)
        axes.set_xticks(range(10))
    for axes in panels[len(rows) :]:
        axes.set_visible(False)
    figure.supxlabel("digit that LeNet sees", fontsize=10)
    figure.supylabel("share of images", fontsize=10)
    return figure
