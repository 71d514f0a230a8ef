"""Figure of the time per update."""

from typing import TYPE_CHECKING

from steppe.report import style
from steppe.report.cells import to_number
from steppe.results import Results
from steppe_edlp.plots import draw_bars, draw_limit, name_rows, write_beside
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Results) -> dict[str, "Figure"]:
    """Bars of the time of a full update relative to dula, with the paper's seconds per call beside them."""
    rows = [row for row in find_rows(results, "timings") if "relative" in row]
    if not rows:
        return {}
    figure, (axes,) = style.make_row(1, 8, 0.42 * len(rows) + 1.2)
    names = [str(row["sampler"]) for row in rows]
    draw_bars(axes, names, [row["relative"] for row in rows], [""] * len(rows))
    for place, row in enumerate(rows):  # beside the bars, where no diamond is in the way
        text = f"{to_number(row['relative']):.2f}   {to_number(row['milliseconds']):.2g} ms"
        look = {"xycoords": ("axes fraction", "data"), "va": "center"}
        write_beside(axes, text, (1, place), (6, 0), **look)
    paper = {name: to_number(row["paper_per_call"]) for name, row in zip(names, rows, strict=True)}
    ratios = [seconds / paper["dula"] for seconds in paper.values()]
    look = {"markerfacecolor": "white", "markeredgecolor": "black", "markersize": 6}
    axes.plot(ratios, range(len(rows)), "D", label="paper, seconds per call", **look)
    draw_limit(axes, 1)
    name_rows(axes, names)
    axes.set_xlabel("processor time of a full update, relative to dula")
    axes.margins(x=0.1)
    axes.legend(loc="lower right")
    return {"timings": figure}
