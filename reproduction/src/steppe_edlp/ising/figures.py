"""Figure of the 25 spins."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.results import Results
from steppe_edlp.plots import QUIET, color_of, make_panels, unpack_arrays
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key."""
    arrays = unpack_arrays(results)
    names = [str(row["sampler"]) for row in find_rows(results, "spins")]
    figure, panels = make_panels(names, 3, 3.2, 2.4)
    numbers = np.arange(len(arrays["target"]))
    for axes, name, fractions in zip(panels, names, arrays["fractions"].mean(axis=1), strict=True):
        axes.bar(numbers, arrays["target"], color=QUIET, alpha=0.3, width=0.9)
        axes.plot(numbers, fractions, "o-", color=color_of(name), markersize=3, linewidth=1.2)
        axes.set_xlabel("spins up")
        axes.set_ylabel("fraction of steps")
        axes.label_outer()
    return {"magnetization": figure}
