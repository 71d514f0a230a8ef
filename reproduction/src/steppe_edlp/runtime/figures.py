"""Figure of the time per update."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import format_significant, to_number
from steppe.results import Results
from steppe_edlp.plots import draw_bars, draw_limit, draw_paper, name_rows, write_beside
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAR, ROOM = 5.0, 1.1  # medians after which a bar is cut off, and how much longer than the rest an axis is


def draw(results: Results) -> dict[str, "Figure"]:
    """Bars of the time of a full update relative to dula, with the paper's seconds per call beside them."""
    rows = [row for row in find_rows(results, "timings") if "relative" in row]
    if not rows:
        return {}
    figure, (axes,) = style.make_row(1, 8, 0.42 * len(rows) + 1.2)
    names = [str(row["sampler"]) for row in rows]
    draw_bars(axes, names, [row["relative"] for row in rows], [""] * len(rows))
    paper = {name: to_number(row["paper_per_call"]) for name, row in zip(names, rows, strict=True)}
    ratios = [seconds / paper["dula"] for seconds in paper.values()]
    end = _find_end([to_number(row["relative"]) for row in rows], ratios)
    for place, row in enumerate(rows):  # beside the bars, where no diamond is in the way
        relative = to_number(row["relative"])
        text = f"{relative:.2f}   {_say_time(to_number(row['milliseconds']))}"
        look = {"xycoords": ("axes fraction", "data"), "va": "center"}
        write_beside(axes, text, (1, place), (6, 0), **look)
        if relative > end:
            axes.plot(end, place, ">", color="black", markersize=8, clip_on=False)
    draw_paper(axes, ratios, range(len(rows)), "paper, seconds per call")
    draw_limit(axes, 1)
    name_rows(axes, names)
    axes.set_xlabel("processor time of a full update, relative to dula")
    axes.set_xlim(0, end)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return {"timings": figure}


def _find_end(bars: list[float], marks: list[float]) -> float:
    """Where the axis ends: a bar many times as long as all others ends in an arrow, or it hides them."""
    usual = [bar for bar in bars if bar <= FAR * np.median(bars)]
    return ROOM * max(*usual, *marks)


def _say_time(milliseconds: float) -> str:
    is_long = milliseconds >= 1000
    return (
        f"{format_significant(milliseconds / 1000 if is_long else milliseconds)} {'s' if is_long else 'ms'}"
    )
