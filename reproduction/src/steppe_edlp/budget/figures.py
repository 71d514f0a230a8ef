"""Figure of the alternatives that samplers find."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.intervals import estimate_mean
from steppe.report import style
from steppe.results import Results
from steppe_edlp.plots import color_of, name_rows, unpack_arrays
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {
    "found": "fraction of the affordable tours met",
    "nearer": "edges by which dmala's tours are further apart",
}


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    names, arrays = [str(row["sampler"]) for row in find_rows(results, "tours")], unpack_arrays(results)
    figure, panels = style.make_row(2, 10.5, 0.36 * len(names) + 1.3)
    for axes, (key, label) in zip(panels, PANELS.items(), strict=True):
        for place, (name, values) in enumerate(zip(names, arrays[key], strict=True)):
            known = values[np.isfinite(values)]
            if key == "nearer" and not known.any():  # dmala beside itself
                continue
            found = estimate_mean(known)
            axes.plot(found.value, place, "s", color=color_of(name.split(",")[0]), markersize=7)
            style.draw_interval(axes, found, place)
            axes.plot(known, np.full(len(known), place + 0.26), ".", color="#888888", markersize=3)
        axes.set_xlabel(label)
        axes.grid(axis="x")
    panels[1].axvline(0, color="#888888", linewidth=1)
    name_rows(panels[0], names)
    return {"alternatives": figure}
