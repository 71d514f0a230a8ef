"""Samplers on a table of bits, laid out: one table and two figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from steppe.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Modes = Sequence[Sequence[int]]


class Estimate(NamedTuple):
    """A number and its standard error; `None` if it is exact."""

    value: float
    error: float | None


class Row(NamedTuple):
    """One law on the states: enumerated (`sampler` is `None`) or sampled.

    Attributes
    ----------
    label
        What the row is called.
    sampler
        Name of the sampler, for its colour.
    law
        The law it targets.
    evaluations
        What a step asks of the target.
    acceptance
        Mean acceptance probability, `None` where nothing is decided.
    flips
        Mean number of sites changed per step, `None` where there are no steps.
    flat_mass, sharp_mass
        Mass on the flat and on the sharp modes.
    log_density
        Mean of `U`.
    distance
        Total variation to `π`.
    noise
        Total variation expected of a sampler of `π` at the same budget.
    occupancy
        Mass of every state.
    """

    label: str
    sampler: str | None
    law: str
    evaluations: str
    acceptance: float | None
    flips: float | None
    flat_mass: Estimate
    sharp_mass: Estimate
    log_density: Estimate
    distance: float
    noise: float | None
    occupancy: np.ndarray


# ---- table -----------------------------------------------------------------------------------------


def table(rows: Sequence[Row], title: str, legend: str) -> Table:
    """All rows, enumerated ones dimmed."""
    layout = Table(
        box=box.SIMPLE_HEAD,
        padding=0,
        title=title,
        caption=legend,
        title_justify="left",
        caption_justify="left",
    )
    layout.add_column("sampler", overflow="fold")
    layout.add_column("law")
    layout.add_column("eval.\n/step")
    for header in ("acc.", "flips\n/step", "mass on\nflat modes", "mass on\nsharp modes", "E[U]"):
        layout.add_column(header, justify="right")
    layout.add_column("TV\nto π", justify="right")
    layout.add_column("noise\nin TV", justify="right")
    for row in rows:
        layout.add_row(*_cells(row), style="dim" if row.sampler is None else None)
    return layout


def _cells(row: Row) -> list[str]:
    return [
        row.label,
        row.law,
        row.evaluations,
        _number(row.acceptance, 2),
        _number(row.flips, 2),
        _with_error(row.flat_mass),
        _with_error(row.sharp_mass),
        _with_error(row.log_density, 3),
        _number(row.distance, 4),
        _number(row.noise, 4),
    ]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}".removeprefix("0")


def _with_error(estimate: Estimate, digits: int = 4) -> str:
    error = " " * (digits + 3) if estimate.error is None else f" ±{_number(estimate.error, digits)}"
    return _number(estimate.value, digits) + error


# ---- figures ---------------------------------------------------------------------------------------


def write_figures(rows: Sequence[Row], flat: Modes, sharp: Modes, out: Path) -> list[Path]:
    """Draw both figures of a table whose first row is `π`, as PNG and SVG."""
    return [
        *style.save(occupancy_figure(rows, flat, sharp), out / "occupancy"),
        *style.save(modes_figure(rows[0].occupancy, flat, sharp), out / "flat-modes"),
    ]


@style.applied()
def occupancy_figure(rows: Sequence[Row], flat: Modes, sharp: Modes) -> "Figure":
    """Bars of `π` over all states, with the occupancy of every sampler as a row of markers."""
    figure, (axes,) = style.subplots(1, 11, 4.6)
    law = rows[0].occupancy
    names = _names(len(law))
    kinds = _kinds(flat, sharp)
    axes.bar(names, law, width=0.86, color=[_color(kinds, name) for name in names], alpha=0.55)
    sampled = [row for row in rows if row.sampler is not None]
    for row, shift in zip(sampled, np.linspace(-0.37, 0.37, len(sampled)), strict=True):
        _scatter(axes, row, shift)
    for state, name in enumerate(names):
        axes.annotate(kinds.get(name, ""), (state, 0), (0, 3), textcoords="offset points", ha="center")
    axes.set_ylabel("probability")
    axes.set_title("Bars: the law π on 16 states. Markers: where each sampler spends its steps.")
    axes.tick_params(axis="x", length=0)
    axes.margins(x=0.01, y=0.06)
    axes.legend(loc="upper right", ncols=2, fontsize=9)
    return figure


@style.applied()
def modes_figure(law: np.ndarray, flat: Modes, sharp: Modes) -> "Figure":
    """Every mode beside the states one flip away: what makes it flat or sharp."""
    modes, kinds = [*flat, *sharp], _kinds(flat, sharp)
    figure, panels = style.subplots(len(modes), 10, 3.4)
    for axes, mode in zip(panels, modes, strict=True):
        _draw_mode(axes, law, mode, kinds)
    panels[0].set_ylabel("probability")
    figure.supxlabel(
        "the mode (coloured), then the states one flip away; drops of log π are means over the flips",
        fontsize=10,
    )
    return figure


def _draw_mode(axes: "Axes", law: np.ndarray, mode: Sequence[int], kinds: dict[str, str]) -> None:
    name = _name(mode)
    states = [name, *(_name(_flipped(mode, site)) for site in range(len(mode)))]
    heights = np.array([law[int(state, 2)] for state in states])
    drop = np.log(heights[0] / heights[1:]).mean()
    bars = axes.bar(states, heights, color=[_color(kinds, name)] + [style.OTHER_COLOR] * len(mode))
    axes.bar_label(bars, [f"{height:.3f}".lstrip("0") for height in heights], fontsize=8, padding=1)
    axes.set_title(f"{kinds[name]} mode {name}\na flip lowers log π by {drop:.2f}")
    axes.tick_params(axis="x", rotation=60, length=0)
    axes.margins(y=0.1)
    axes.grid(False)  # every bar carries its number


def _scatter(axes: "Axes", row: Row, shift: float) -> None:
    assert row.sampler is not None
    axes.plot(
        np.arange(len(row.occupancy)) + shift,
        row.occupancy,
        linestyle="none",
        marker=style.SAMPLER_MARKERS[row.sampler],
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.4,
        color=style.SAMPLER_COLORS[row.sampler],
        label=row.label,
    )


def _kinds(flat: Modes, sharp: Modes) -> dict[str, str]:
    return {_name(mode): "flat" for mode in flat} | {_name(mode): "sharp" for mode in sharp}


def _color(kinds: dict[str, str], name: str) -> str:
    return {"flat": style.FLAT_COLOR, "sharp": style.SHARP_COLOR}.get(kinds.get(name, ""), style.OTHER_COLOR)


def _names(num_states: int) -> list[str]:
    num_bits = num_states.bit_length() - 1
    return [f"{state:0{num_bits}b}" for state in range(num_states)]


def _name(state: Sequence[int]) -> str:
    return "".join(map(str, state))


def _flipped(state: Sequence[int], site: int) -> list[int]:
    return [1 - bit if index == site else bit for index, bit in enumerate(state)]
