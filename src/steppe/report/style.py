"""One look for every figure: a colour and a marker per sampler, quiet axes, fonts that stay readable.

Colours are from Paul Tol's schemes for colour-blind readers; markers differ as well, so that a figure
survives grey printing. Figures are made without pyplot: no global state, no display needed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from steppe.errors import SteppeError
from steppe.samplers.registry import list_entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from steppe.results import Estimate

# Warm: unadjusted. Blue: adjusted, with a step size. Green: favours flat modes. The rest: adjusted.
SAMPLER_COLORS = {name: entry.color for name, entry in list_entries().items()}
SAMPLER_MARKERS = {name: entry.marker for name, entry in list_entries().items()}
FLAT_COLOR = "#44AA99"
SHARP_COLOR = "#CC6677"
OTHER_COLOR = "#CCCCCC"

SETTINGS = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "svg.hashsalt": "steppe",
}
PIXELS_PER_INCH = 150


@contextmanager
def apply() -> Iterator[None]:
    """Put the style in force; a context for `with`, or a decorator of a function that draws."""
    with _matplotlib().rc_context(SETTINGS):
        yield


def make_row(num_columns: int, width: float, height: float) -> tuple["Figure", list["Axes"]]:
    """Figure with a row of axes that share their vertical scale, sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, num_columns, sharey=True, squeeze=False)
    return figure, list(axes[0])


def make_grid(num_rows: int, num_columns: int, width: float, height: float) -> tuple["Figure", list["Axes"]]:
    """Figure with a grid of axes that share both scales, row by row; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
    return figure, list(axes.ravel())


def draw_interval(axes: "Axes", estimate: "Estimate", place: float, *, vertical: bool = False) -> None:
    """Draw the interval of an estimate, if it has one, over a bar at a place of the other axis."""
    if estimate.low is None or estimate.high is None:
        return
    reach = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
    x, y = (place, estimate.value) if vertical else (estimate.value, place)
    up, across = (reach, None) if vertical else (None, reach)
    axes.errorbar(x, y, up, across, fmt="none", ecolor="#222222", elinewidth=1.2, capsize=2.5)


def draw_label(
    axes: "Axes", text: str, point: tuple[float, float], shift: tuple[float, float] = (4, -3)
) -> None:
    """Write beside a point, readable where lines pass below."""
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
    axes.annotate(text, point, shift, textcoords="offset points", bbox=ground, fontsize=9)


def find_color_map(name: str) -> "Colormap":
    """A colour map of matplotlib by name."""
    return _matplotlib().colormaps[name]


@apply()
def save(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes for the same numbers."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    figure.savefig(png, dpi=PIXELS_PER_INCH)
    figure.savefig(svg, metadata={"Date": None})
    return [png, svg]


def _matplotlib() -> ModuleType:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise SteppeError(
            "Figures need matplotlib, and it is not installed. `pip install 'steppe[plots]'` adds it."
        ) from error
    return mpl
