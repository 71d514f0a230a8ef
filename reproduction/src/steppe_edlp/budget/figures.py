"""Figure of the alternatives that samplers find."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate
from steppe.results import Results
from steppe_edlp.plots import color_of, name_rows, unpack_arrays
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {"found": "fraction of affordable tours met", "nearer": "edges that dmala's are further apart"}


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    rows, arrays = find_rows(results, "tours"), unpack_arrays(results)
    names = [str(row["sampler"]) for row in rows]
    figure, panels = style.make_row(2, 9.5, 0.42 * len(names) + 1.3)
    for axes, (key, label) in zip(panels, PANELS.items(), strict=True):
        for place, (name, row, values) in enumerate(zip(names, rows, arrays[key], strict=True)):
            if key not in row:
                continue
            found = to_estimate(row[key])
            axes.plot(found.value, place, "s", color=color_of(name.split(",")[0]), markersize=7)
            style.draw_interval(axes, found, place)
            axes.plot(values, np.full(len(values), place + 0.24), ".", color="#888888", markersize=3)
        axes.set_xlabel(label)
        axes.grid(axis="x")
    name_rows(panels[0], names)
    return {"alternatives": figure}
