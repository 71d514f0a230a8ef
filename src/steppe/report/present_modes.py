"""Presenter of flat modes: the ranking as results, and their worth after a disturbance as a figure."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steppe.intervals import NORMAL_95, estimate_from_error
from steppe.report import style
from steppe.results import Cell, Column, Figure, Provenance, Results, Table
from steppe.run.storage.identity import describe_software

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from steppe.modes.flat_modes import FlatModes, Mode

MAX_LEVELS_SHOWN = 16
BEST_COLOR, ROBUST_COLOR = style.SHARP_COLOR, style.FLAT_COLOR
OTHER_COLORS = ("#DDCC77", "#88CCEE", "#AA4499")
COLUMNS = [
    Column(key="rank", label="rank"),
    Column(key="state", label="state"),
    Column(key="log_density", label="U", better="higher", digits=2),
    Column(key="value", label="U after", better="higher", digits=2),
    Column(key="gain", label="gain on best", better="higher", digits=2),
    Column(key="roughness", label="mean |ΔU|", better="lower"),
    Column(key="visits", label="visits"),
    Column(key="label", label="label"),
]
SCORE = Column(key="score", label="score")
BROKEN = Column(key="broken", label="broken")
NOTES = [
    "B is the best mode, R the most robust one; * no other mode is both higher and worth more afterwards.",
    "Brackets are 95 % intervals over fresh disturbances, the same ones for all modes.",
]


def present_modes(found: "FlatModes") -> Results:
    """Return the ranking with intervals."""
    columns = list(COLUMNS)
    if any(np.isfinite(mode.score) for mode in found):
        columns.insert(3, SCORE)
    if any(mode.broken_fraction > 0 for mode in found):
        columns.insert(-2, BROKEN)
    keys = {column.key for column in columns}
    rows = [_list_cells(rank, mode) for rank, mode in enumerate(found, start=1)]
    return Results(
        name="modes",
        title=f"{len(found)} modes of {found.num_found} found",
        question=f"Which modes are good, and still good after {found.disturbance} ({found.risk})?",
        facts={"best state": _write(found.best), "most robust state": _write(found.robust)},
        tables=[
            Table(
                key="modes",
                title=f"{found.num_evaluations} evaluations",
                columns=columns,
                rows=[{key: cell for key, cell in row.items() if key in keys} for row in rows],
                notes=NOTES,
            ),
            _tabulate_curves(found),
        ],
        notes=[found.explain()],
        provenance=Provenance.of_software(
            describe_software(),
            command="steppe.find_flat_modes",
            seeds=[],
            model_evaluations=found.num_evaluations,
        ),
    )


def save_modes(found: "FlatModes", directory: Path) -> None:
    """Write the results with their figure to a directory, for `steppe report`."""
    figure = Figure(
        key="modes",
        title="Value against the strength of the disturbance, and the front",
        caption=found.explain(),
        alternative="Left, a curve per mode along the strength of the disturbance; right, a dot per mode: "
        "value after the disturbance against log-density.",
    )
    found.plot(directory / "figures" / figure.key)
    present_modes(found).model_copy(update={"figures": [figure]}).save(directory)


def _tabulate_curves(found: "FlatModes") -> Table:
    """Values of the chosen few along the axis of their curves."""
    curves, names = found.curves, [_name(rank, found[rank]) for rank in found.curve_modes]
    columns = [Column(key="strength", label=curves.label, digits=3)]
    columns += [Column(key=f"mode{i}", label=name, digits=2) for i, name in enumerate(names)]
    rows: list[dict[str, Cell]] = []
    for strength, values, errors in zip(curves.strengths, curves.values.T, curves.errors.T, strict=True):
        row: dict[str, Cell] = {"strength": float(strength)}
        for i, (value, error) in enumerate(zip(values, errors, strict=True)):
            row[f"mode{i}"] = estimate_from_error(float(value), float(error)) if np.isfinite(value) else None
        rows.append(row)
    return Table(key="strengths", title=f"U after ({found.risk})", columns=columns, rows=rows, is_detail=True)


def _write(mode: "Mode") -> str:
    levels = mode.levels.ravel().tolist()
    state = ("" if max(levels) < 10 else "-").join(map(str, levels))
    return f"{state}, U = {mode.log_density:.5g}, afterwards {mode.value:.5g}"


def _list_cells(rank: int, mode: "Mode") -> dict[str, Cell]:
    return {
        "rank": f"{rank}{_mark(mode)}",
        "state": _shorten(mode.levels.ravel().tolist()),
        "log_density": mode.log_density,
        "score": mode.score if np.isfinite(mode.score) else None,
        "value": estimate_from_error(mode.value, mode.value_error),
        "gain": estimate_from_error(mode.gain, mode.gain_error),
        "roughness": mode.roughness if np.isfinite(mode.roughness) else None,
        "broken": mode.broken_fraction,
        "visits": mode.num_visits,
        "label": mode.label,
    }


def _mark(mode: "Mode") -> str:
    marks = "B" * mode.is_best + "R" * mode.is_robust + "*" * mode.is_on_front
    return f" {marks}" if marks else ""


def _shorten(levels: list[int]) -> str:
    shown = "".join(map(str, levels)) if max(levels) < 10 else "-".join(map(str, levels))
    return f"{shown[:MAX_LEVELS_SHOWN]}…" if len(levels) > MAX_LEVELS_SHOWN else shown


@style.apply()
def draw_modes(found: "FlatModes", path: str | Path | None = None) -> "Drawing":
    """Draw values of a few modes against the strength of the disturbance, and all modes with the front."""
    figure, (left, right) = style.make_row(2, 9.6, 4.2)
    _draw_curves(left, found)
    _draw_front(right, found)
    same = found.best is found.robust
    figure.suptitle("The best mode is also the most robust" if same else "The best and the most robust mode")
    if path is not None:
        style.save(figure, Path(path))
    return figure


def _draw_curves(axes: "Axes", found: "FlatModes") -> None:
    curves, others = found.curves, iter(OTHER_COLORS)
    for rank, values, errors in zip(found.curve_modes, curves.values, curves.errors, strict=True):
        mode = found[rank]
        color = _color(mode) or next(others, style.OTHER_COLOR)
        axes.plot(curves.strengths, values, "o-", ms=3, color=color, label=_name(rank, mode))
        band = NORMAL_95 * np.nan_to_num(errors)
        axes.fill_between(curves.strengths, values - band, values + band, color=color, alpha=0.2, lw=0)
    if curves.stated is not None:
        axes.axvline(curves.stated, color="#999999", lw=0.8, ls=":", label="stated")
    axes.set_xlabel(curves.label)
    axes.set_ylabel(f"U after ({found.risk})")
    axes.legend(fontsize="small")


def _draw_front(axes: "Axes", found: "FlatModes") -> None:
    front = sorted(found.front, key=lambda mode: mode.log_density)
    axes.step(
        [mode.log_density for mode in front],
        [mode.value for mode in front],
        where="pre",
        color=style.OTHER_COLOR,
        zorder=1,
    )
    for rank, mode in enumerate(found):
        color = _color(mode) or "#555555"
        face = color if mode.is_on_front else "none"
        axes.scatter(mode.log_density, mode.value, s=36, color=face, edgecolors=color, zorder=2)
        if np.isfinite(mode.value_error) and mode.value_error > 0:
            axes.errorbar(mode.log_density, mode.value, NORMAL_95 * mode.value_error, color=color, lw=0.8)
        axes.annotate(
            str(rank + 1), (mode.log_density, mode.value), xytext=(6, 4), textcoords="offset points"
        )
    axes.margins(0.15)
    axes.set_xlabel("U before\nhollow: another mode is both higher and worth more after")
    axes.set_ylabel(f"U after {found.disturbance}")


def _color(mode: "Mode") -> str | None:
    if mode.is_robust:
        return ROBUST_COLOR
    return BEST_COLOR if mode.is_best else None


def _name(rank: int, mode: "Mode") -> str:
    names = ["best"] * mode.is_best + ["most robust"] * mode.is_robust
    return f"{rank + 1}: {' and '.join(names)}" if names else f"{rank + 1}"
