"""Presenter of flat modes: the ranking as results, and height against roughness as a figure."""

from pathlib import Path
from typing import TYPE_CHECKING

from steppe.intervals import estimate_from_error
from steppe.report import style
from steppe.results import Cell, Column, Provenance, Results, Table
from steppe.run.storage.identity import describe_software

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steppe.modes.flat_modes import FlatModes, Mode

MAX_LEVELS_SHOWN = 16
COLORS = {"flat": style.FLAT_COLOR, "sharp": style.SHARP_COLOR}
COLUMNS = [
    Column(key="rank", label="rank"),
    Column(key="state", label="state"),
    Column(key="log_density", label="U", better="higher", digits=2),
    Column(key="roughness", label="mean |ΔU|", better="lower"),
    Column(key="max_drop", label="max drop", better="lower", digits=2),
    Column(key="local_entropy", label="F", digits=2),
    Column(key="basin_mass", label="basin"),
    Column(key="visits", label="visits"),
    Column(key="label", label="label"),
]
NOTES = [
    "* no other mode is both higher and flatter.",
    "F is the local entropy, basin the mass of what leads here; brackets are 95 % intervals.",
]


def present_modes(found: "FlatModes") -> Results:
    """Return the ranking with intervals."""
    return Results(
        name="modes",
        title=f"{len(found)} modes of {found.num_found} found",
        question=f"Which modes are both high and flat ({found.flatness})?",
        tables=[
            Table(
                key="modes",
                title=f"{found.num_evaluations} evaluations",
                columns=COLUMNS,
                rows=[_list_cells(rank, mode) for rank, mode in enumerate(found, start=1)],
                notes=NOTES,
            )
        ],
        provenance=Provenance.of_software(
            describe_software(),
            command="steppe.find_flat_modes",
            seeds=[],
            model_evaluations=found.num_evaluations,
        ),
    )


def _list_cells(rank: int, mode: "Mode") -> dict[str, Cell]:
    return {
        "rank": f"{rank}{'*' if mode.is_on_front else ''}",
        "state": _shorten(mode.levels.ravel().tolist()),
        "log_density": mode.log_density,
        "roughness": mode.roughness,
        "max_drop": mode.max_drop,
        "local_entropy": estimate_from_error(mode.local_entropy, mode.local_entropy_error),
        "basin_mass": estimate_from_error(mode.basin_mass, mode.basin_mass_error),
        "visits": mode.num_visits,
        "label": mode.label,
    }


def _shorten(levels: list[int]) -> str:
    shown = "".join(map(str, levels)) if max(levels) < 10 else "-".join(map(str, levels))
    return f"{shown[:MAX_LEVELS_SHOWN]}…" if len(levels) > MAX_LEVELS_SHOWN else shown


@style.apply()
def draw_modes(found: "FlatModes", path: str | Path | None = None) -> "Figure":
    """Draw height against roughness, one dot per mode, the front joined by a line."""
    figure, (axes,) = style.make_row(1, 6.4, 4.2)
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
    axes.set_title(_write_caption(found))
    if path is not None:
        style.save(figure, Path(path))
    return figure


def _write_caption(found: "FlatModes") -> str:
    flat = [rank for rank, mode in enumerate(found, start=1) if mode.label == "flat"]
    if not flat:
        return "Height against roughness of the modes found"
    listed = ", ".join(str(rank) for rank in flat[:5])
    return f"Mode {listed} is flat" if len(flat) == 1 else f"Modes {listed} are flat"
