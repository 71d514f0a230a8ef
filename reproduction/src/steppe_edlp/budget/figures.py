"""Figure of the alternatives that samplers find."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.intervals import estimate_mean
from steppe.report import style
from steppe.results import Results
from steppe_edlp.plots import color_of, make_figure, name_rows, unpack_arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {
    "found": "fraction of the affordable ones met",
    "nearer": "by how much dmala's are further apart",
}


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = unpack_arrays(results)
    tables = [table for table in results.tables if table.key.startswith("alternatives")]
    figure, panels = make_figure(len(tables), 2, 10.5, sum(0.36 * len(table.rows) + 0.8 for table in tables))
    done = 0
    for row, table in zip(panels, tables, strict=True):
        names = [str(one["sampler"]) for one in table.rows]
        own = {key: arrays[key][done : done + len(names)] for key in PANELS}
        _draw_problem(row, names, own, str(table.rows[0]["problem"]))
        done += len(names)
    return {"alternatives": figure}


def _draw_problem(
    panels: Sequence["Axes"], names: list[str], arrays: Mapping[str, np.ndarray], problem: str
) -> None:
    for axes, (key, label) in zip(panels, PANELS.items(), strict=True):
        for place, (name, values) in enumerate(zip(names, arrays[key], strict=True)):
            known = values[np.isfinite(values)]
            if key == "nearer" and not known.any():  # dmala beside itself
                continue
            found = estimate_mean(known)
            axes.plot(found.value, place, "s", color=color_of(name.split(",")[0]), markersize=7)
            style.draw_interval(axes, found, place)
            axes.plot(known, np.full(len(known), place + 0.26), ".", color="#888888", markersize=3)
        axes.set(title=problem, xlabel=label)
        axes.grid(axis="x")
        name_rows(axes, names if key == "found" else [""] * len(names))
    panels[1].axvline(0, color="#888888", linewidth=1)
