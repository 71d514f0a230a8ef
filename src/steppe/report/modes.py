"""Flat modes as a table and as a picture: height against roughness, one dot per mode."""

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from steppe.modes.result import FlatModes, Mode

WIDTH = 110
MAX_LEVELS_SHOWN = 16
COLORS = {"flat": style.FLAT_COLOR, "sharp": style.SHARP_COLOR}


def modes_table(found: "FlatModes") -> "Table":
    """Return the ranking as a table for the terminal."""
    from rich.table import Table

    title = f"{len(found)} modes of {found.num_found} found, {found.num_evaluations} evaluations"
    table = Table(title=title, caption="* no other mode is both higher and flatter")
    table.add_column("")
    table.add_column("state", overflow="ellipsis")
    for name in ("U", "mean |ΔU|", "max drop", "F (s.e.)", "basin", "visits"):
        table.add_column(name, justify="right")
    table.add_column("label")
    for rank, mode in enumerate(found, start=1):
        table.add_row(f"{rank}{'*' if mode.is_on_front else ''}", *_cells(mode))
    return table


def as_text(found: "FlatModes") -> str:
    """Return the table as plain text."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
    console.print(modes_table(found))
    text: Any = console.file
    return text.getvalue()


def _cells(mode: "Mode") -> list[str]:
    levels = mode.levels.ravel()
    shown = "".join(str(level) for level in levels) if levels.max() < 10 else "-".join(map(str, levels))
    if len(levels) > MAX_LEVELS_SHOWN:
        shown = f"{shown[:MAX_LEVELS_SHOWN]}…"
    return [
        shown,
        f"{mode.log_density:.2f}",
        f"{mode.roughness:.3f}",
        f"{mode.max_drop:.2f}",
        "–"
        if math.isnan(mode.local_entropy)
        else f"{mode.local_entropy:.2f} ({mode.local_entropy_error:.2f})",
        f"{mode.basin_mass:.3f}",
        str(mode.num_visits),
        mode.label,
    ]


@style.applied()
def plot_modes(found: "FlatModes", path: str | Path | None = None) -> "Figure":
    """Draw height against roughness, one dot per mode, the front joined by a line."""
    figure, (axes,) = style.subplots(1, 6.4, 4.2)
    front = sorted(found.front, key=lambda mode: mode.roughness)
    axes.step(
        [mode.roughness for mode in front],
        [mode.log_density for mode in front],
        where="post",
        color=style.OTHER_COLOR,
        zorder=1,
    )
    for rank, mode in enumerate(found, start=1):
        color = COLORS.get(mode.label, "#555555")
        face = color if mode.is_on_front else "none"
        size = 30 + 300 * min(mode.basin_mass, 1.0)
        axes.scatter(mode.roughness, mode.log_density, s=size, color=face, edgecolors=color, zorder=2)
        axes.annotate(
            str(rank), (mode.roughness, mode.log_density), xytext=(6, 6), textcoords="offset points"
        )
    axes.set_xlabel(
        "roughness: mean |ΔU| over all changes (left is flatter)\n"
        "area: mass of the basin · hollow: another mode is both higher and flatter"
    )
    axes.set_ylabel("log-density U")
    axes.set_title(_caption(found))
    if path is not None:
        style.save(figure, Path(path))
    return figure


def _caption(found: "FlatModes") -> str:
    flat = [rank for rank, mode in enumerate(found, start=1) if mode.label == "flat"]
    if not flat:
        return "Height against roughness of the modes found"
    listed = ", ".join(str(rank) for rank in flat[:5])
    return f"Mode {listed} is flat" if len(flat) == 1 else f"Modes {listed} are flat"
