"""Draw states as what they are: an image, a tour on a map, a graph whose nodes have levels.

Every figure has three panels: the draw of largest log-density, the last draw, and all draws together.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steppe.report import style
from steppe.target.picture import Picture, place_nodes
from steppe.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Draws that are laid over each other in the panel of all draws.
MAX_DRAWS_COUNTED = 1000
LEAST_FRACTION = 0.02
# Levels of a state that are written out.
MAX_LEVELS_WRITTEN = 64
AGREE_COLOR, DIFFER_COLOR, LINE_COLOR = "#222222", "#BBBBBB", "#0077BB"
NODE_COLORS = ("#FFFFFF", "#4477AA", "#EE6677", "#CCBB44", "#228833", "#AA3377", "#66CCEE", "#BBBBBB")

CAPTIONS = {
    "image": "The draw of largest log-density, the last draw of the first chain, and the mean over all "
    "draws, in rows and columns as sites stand.",
    "tour": "The draw of largest log-density, the last draw of the first chain, and how often draws go "
    "from one city to another. Places are made from the distances, so the map may be turned or mirrored, "
    "and is exact only where the distances are those of a plane.",
    "graph": "The draw of largest log-density and the last draw of the first chain: nodes coloured by "
    "level, pairs that agree dark and pairs that differ (the cut) pale and dashed. Then how often pairs "
    "agree over all draws, the darker the more often.",
}
ALTERNATIVES = {
    "image": "Three pictures: best draw, last draw and mean.",
    "tour": "Three maps: tour of the best draw, tour of the last draw, and how often each way is taken.",
    "graph": "Three drawings of a graph: levels of nodes in the best and in the last draw, and how often "
    "pairs agree.",
}


class States(NamedTuple):
    """Draws to show.

    Attributes
    ----------
    best, last
        Levels by site.
    all
        (draws, sites), all chains together.
    log_density
        That of the best.
    """

    best: np.ndarray
    last: np.ndarray
    all: np.ndarray
    log_density: float

    @property
    def titled(self) -> dict[str, np.ndarray]:
        """The two single states, by what stands above them."""
        return {f"best draw, U = {self.log_density:.4g}": self.best, "last draw": self.last}


def name_kind(trace: Trace, picture: Picture | None) -> str | None:
    """Return what states are drawn as: `"image"`, `"tour"`, `"graph"`, or nothing."""
    if not trace.has("levels") or trace.num_rows <= trace.num_warmup_rows:
        return None
    if find_image_shape(trace, picture):
        return "image"
    return None if picture is None else picture.kind


def find_image_shape(trace: Trace, picture: Picture | None) -> tuple[int, ...]:
    """Rows and columns in which sites stand, by their domain or by their target; empty where they do not."""
    shape = trace.domain.site_shape
    if len(shape) == 2 and min(shape) > 1:
        return shape
    return () if picture is None else tuple(picture.shape)


@style.apply()
def draw_states(trace: Trace, picture: Picture | None) -> "Drawing":
    """Draw the best draw, the last draw and all draws together, as what states are."""
    kind, states = name_kind(trace, picture), _pick_states(trace)
    if kind == "image":
        return _draw_images(states, find_image_shape(trace, picture), trace.domain.max_levels - 1)
    assert picture is not None
    if kind == "tour":
        return _draw_tours(states, np.asarray(picture.places, float))
    return _draw_graphs(states, np.asarray(picture.pairs, int))


def write_best(trace: Trace) -> str:
    """Write the draw of largest log-density: its `U` and its levels, site by site."""
    states = _pick_states(trace)
    sites = states.best[0] if states.best.ndim == 2 else states.best  # of an ensemble its first replica
    shown = sites[:MAX_LEVELS_WRITTEN].tolist()
    levels = ("" if trace.domain.max_levels <= 10 else "-").join(map(str, shown))
    part = "" if len(sites) == len(shown) else f"… ({len(shown)} of {len(sites)} sites)"
    return f"U = {states.log_density:.5g}: {levels}{part}"


def _pick_states(trace: Trace) -> States:
    levels, log_density = trace.levels(), trace.statistic("log_density")
    finite = np.where(np.isfinite(log_density), log_density, -np.inf)
    best = np.unravel_index(np.argmax(finite), log_density.shape)
    last = levels[0, -1] if levels.ndim == 3 else levels[0, -1, 0]
    return States(levels[best], last, levels.reshape(-1, levels.shape[-1]), float(log_density[best]))


def _draw_images(states: States, shape: tuple[int, ...], top: int) -> "Drawing":
    height = float(np.clip(3.0 * shape[0] / shape[1] + 0.4, 1.2, 6.0))
    figure, panels = _make_panels(height)
    pictures = {**states.titled, "mean level": states.all.mean(axis=0)}
    for axes, (title, picture) in zip(panels, pictures.items(), strict=True):
        axes.imshow(picture.reshape(shape), cmap="viridis", vmin=0, vmax=top, interpolation="nearest")
        axes.set_title(title, fontsize=10)
    return figure


def _draw_tours(states: States, places: np.ndarray) -> "Drawing":
    figure, panels = _make_panels(3.4)
    for axes, (title, tour) in zip(panels, states.titled.items(), strict=False):
        _draw_lines(axes, places, np.stack([tour, np.roll(tour, -1)], axis=1), color=LINE_COLOR, lw=1.2)
        axes.set_title(title, fontsize=10)
    tours = _thin(states.all).astype(int)
    ways = np.sort(np.stack([tours, np.roll(tours, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    ways, counts = np.unique(ways, axis=0, return_counts=True)
    fractions = counts / len(tours)
    _draw_shades(panels[2], places, ways, fractions)
    panels[2].set_title("ways by how often", fontsize=10)
    for axes in panels:
        axes.plot(*places.T, "o", ms=3, color=AGREE_COLOR)
        axes.set_aspect("equal", adjustable="datalim")
    return figure


def _draw_graphs(states: States, pairs: np.ndarray) -> "Drawing":
    places = place_nodes(pairs, len(states.best))
    size = float(np.clip(2400 / len(places), 8, 60))
    figure, panels = _make_panels(3.4)
    for axes, (title, levels) in zip(panels, states.titled.items(), strict=False):
        agree = levels[pairs[:, 0]] == levels[pairs[:, 1]]
        _draw_lines(axes, places, pairs[~agree], color=DIFFER_COLOR, lw=0.8, ls="--")
        _draw_lines(axes, places, pairs[agree], color=AGREE_COLOR, lw=1.0)
        colors = [NODE_COLORS[level % len(NODE_COLORS)] for level in levels.tolist()]
        axes.scatter(*places.T, s=size, c=colors, edgecolors=AGREE_COLOR, linewidths=0.7, zorder=3)
        axes.set_title(f"{title}\n{int((~agree).sum())} of {len(pairs)} pairs differ", fontsize=10)
    draws = _thin(states.all)
    _draw_shades(panels[2], places, pairs, (draws[:, pairs[:, 0]] == draws[:, pairs[:, 1]]).mean(axis=0))
    panels[2].scatter(*places.T, s=size / 3, color=AGREE_COLOR, zorder=3)
    panels[2].set_title("pairs by how often\nthey agree", fontsize=10)
    for axes in panels:
        axes.set_aspect("equal", adjustable="datalim")
    return figure


def _make_panels(height: float) -> "tuple[Drawing, list[Axes]]":
    from matplotlib.figure import Figure as Empty

    figure = Empty(figsize=(9.6, height), layout="constrained")
    panels = list(figure.subplots(1, 3))
    for axes in panels:
        axes.set_axis_off()
    return figure, panels


def _thin(draws: np.ndarray) -> np.ndarray:
    rows = np.unique(np.linspace(0, len(draws) - 1, MAX_DRAWS_COUNTED).astype(int))
    return draws[rows]


def _draw_lines(
    axes: "Axes",
    places: np.ndarray,
    pairs: np.ndarray,
    color: str,
    lw: float,
    ls: str = "-",
    alpha: float = 1.0,
) -> None:
    """All lines as one path with gaps, which stays small in a file."""
    gaps = np.full((len(pairs), 1, 2), np.nan)
    line = np.concatenate([places[pairs.astype(int)], gaps], axis=1).reshape(-1, 2)
    axes.plot(*line.T, zorder=1, color=color, lw=lw, ls=ls, alpha=alpha)


def _draw_shades(axes: "Axes", places: np.ndarray, pairs: np.ndarray, fractions: np.ndarray) -> None:
    """Lines the darker the larger a fraction, in ten shades."""
    shades = np.ceil(10 * fractions).astype(int)
    for shade in range(1, 11):
        chosen = pairs[(shades == shade) & (fractions >= LEAST_FRACTION)]
        if len(chosen):
            _draw_lines(axes, places, chosen, color=LINE_COLOR, alpha=shade / 10, lw=1.2)
