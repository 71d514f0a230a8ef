"""Laws on all states of a few bits: bars of `π` with samplers beside, and what makes a mode flat."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.targets.bernoulli import PAPER_MODES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def occupancy_figure(law: np.ndarray, means: Mapping[str, np.ndarray]) -> "Figure":
    """Bars of `π` over all states, with the occupancy of every sampler as a row of markers.

    Parameters
    ----------
    law
        Probability of every state.
    means
        By sampler: share of steps in every state.
    """
    figure, (axes,) = style.subplots(1, 11, 4.6)
    names = bit_names(len(law))
    kinds = kinds_of(names)
    axes.bar(names, law, width=0.86, color=[_color(kind) for kind in kinds], alpha=0.55)
    for (name, mean), shift in zip(means.items(), np.linspace(-0.37, 0.37, len(means)), strict=True):
        _scatter(axes, name, mean, shift)
    for state, kind in enumerate(kinds):
        axes.annotate(kind, (state, 0), (0, 3), textcoords="offset points", ha="center")
    axes.set_ylabel("probability")
    axes.set_title("Bars: the law π on 16 states. Markers: where each sampler spends its steps.")
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01, y=0.06)
    axes.legend(loc="upper right", ncols=2, fontsize=9)
    return figure


def modes_figure(law: np.ndarray) -> "Figure":
    """Every mode of the paper's four bits beside the states one flip away: what makes it flat or sharp.

    Parameters
    ----------
    law
        Probability of every state.
    """
    modes = [*PAPER_MODES.flat, *PAPER_MODES.sharp]
    figure, panels = style.subplots(len(modes), 10, 3.4)
    for axes, mode in zip(panels, modes, strict=True):
        _draw_mode(axes, law, mode)
    panels[0].set_ylabel("probability")
    figure.supxlabel(
        "the mode (coloured), then the states one flip away; drops of log π are means over the flips",
        fontsize=10,
    )
    return figure


def bit_names(num_states: int) -> list[str]:
    """Names of all states in order, as strings of bits."""
    num_bits = num_states.bit_length() - 1
    return [f"{state:0{num_bits}b}" for state in range(num_states)]


def kinds_of(names: Sequence[str]) -> list[str]:
    """`"flat"`, `"sharp"` or nothing for every state of the paper's four bits."""
    known = {_name(mode): kind for kind in ("flat", "sharp") for mode in getattr(PAPER_MODES, kind)}
    return [known.get(name, "") for name in names]


def _draw_mode(axes: "Axes", law: np.ndarray, mode: Sequence[int]) -> None:
    states = [_name(mode), *(_name(_flipped(mode, site)) for site in range(len(mode)))]
    (kind,) = kinds_of(states[:1])
    heights = np.array([law[int(state, 2)] for state in states])
    drop = np.log(heights[0] / heights[1:]).mean()
    bars = axes.bar(states, heights, color=[_color(kind)] + [style.OTHER_COLOR] * len(mode))
    axes.bar_label(bars, [f"{height:.3f}".lstrip("0") for height in heights], fontsize=8, padding=1)
    axes.set_title(f"{kind} mode {states[0]}\na flip lowers log π by {drop:.2f}")
    axes.tick_params(axis="x", rotation=60, length=0)
    axes.margins(y=0.1)
    axes.grid(False)  # every bar carries its number


def _scatter(axes: "Axes", name: str, mean: np.ndarray, shift: float) -> None:
    axes.plot(
        np.arange(len(mean)) + shift,
        mean,
        linestyle="none",
        marker=style.SAMPLER_MARKERS[name],
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.4,
        color=style.SAMPLER_COLORS[name],
        label=name,
    )


def _color(kind: str) -> str:
    return {"flat": style.FLAT_COLOR, "sharp": style.SHARP_COLOR}.get(kind, style.OTHER_COLOR)


def _name(state: Sequence[int]) -> str:
    return "".join(map(str, state))


def _flipped(state: Sequence[int], site: int) -> list[int]:
    return [1 - bit if index == site else bit for index, bit in enumerate(state)]
