"""Parts of figures that several experiments draw."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate
from steppe.results import Cell, Estimate, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUIET, DARK = "#555555", "#222222"


def unpack_arrays(results: Results) -> dict[str, np.ndarray]:
    """The arrays of results by name."""
    return {name: array.numpy() for name, array in results.arrays.items()}


def find_end(found: Estimate) -> float:
    """The right end of a bar and its interval."""
    return found.value if found.high is None else max(found.value, found.high)


def draw_bars(
    axes: "Axes", names: Sequence[str], cells: Iterable[Cell], texts: Sequence[str] | None = None
) -> None:
    """One horizontal bar per sampler, with its interval, and a text at its end: by default its number."""
    for place, (name, cell) in enumerate(zip(names, cells, strict=True)):
        found = to_estimate(cell)
        axes.barh(place, found.value, color=color_of(name), alpha=0.75, height=0.7)
        style.draw_interval(axes, found, place)
        text = f"{found.value:.3f}" if texts is None else texts[place]
        style.draw_label(axes, text, (find_end(found), place))
    axes.grid(False)


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Names down the vertical axis, the first one on top."""
    axes.set_yticks(range(len(names)), names)
    if not axes.yaxis_inverted():
        axes.invert_yaxis()


def make_panels(
    names: Sequence[str], num_columns: int, width: float, height: float
) -> tuple["Figure", list["Axes"]]:
    """A figure with one panel of that size per name, titled by it."""
    columns = min(num_columns, len(names))
    rows = -(-len(names) // columns)
    figure, panels = style.make_grid(rows, columns, width * columns, height * rows)
    for axes, name in zip(panels, names, strict=False):
        axes.set_title(name)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    return figure, panels[: len(names)]


def make_figure(num_rows: int, num_columns: int, width: float, height: float) -> tuple["Figure", np.ndarray]:
    """A figure with panels that share no scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(num_rows, num_columns, squeeze=False)


def draw_limit(axes: "Axes", value: float, line: str = "--", *, is_across: bool = False) -> None:
    """A thin line at a value."""
    (axes.axhline if is_across else axes.axvline)(value, linestyle=line, color=QUIET, linewidth=1)


def write_beside(
    axes: "Axes", text: str, point: tuple[float, float], shift: tuple[float, float], **look: object
) -> None:
    """Write at a distance in points from a point."""
    axes.annotate(text, point, shift, **{"textcoords": "offset points", "fontsize": 9, **look})


def draw_paper(
    axes: "Axes", xs: Sequence[float], ys: Sequence[float], label: str | None = None, color: str = "black"
) -> None:
    """The paper's own numbers: hollow diamonds."""
    axes.plot(xs, ys, "D", label=label, markerfacecolor="white", markeredgecolor=color, markersize=6)


def color_of(name: str) -> str:
    """The colour of a sampler; grey for what is none."""
    return style.SAMPLER_COLORS.get(name, QUIET)
