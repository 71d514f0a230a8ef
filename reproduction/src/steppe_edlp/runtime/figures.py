"""Figure of the time per update."""

from typing import TYPE_CHECKING

from steppe.report import style
from steppe.report.cells import estimate, number
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Results) -> dict[str, "Figure"]:
    """Bars of the time of a full update relative to dula, with the paper's seconds per call beside them."""
    rows = [row for row in results.table("timings").rows if row["relative"] is not None]
    if not rows:
        return {}
    figure, (axes,) = style.subplots(1, 8, 0.42 * len(rows) + 1.2)
    paper_unit = number(next(row["paper_per_call"] for row in rows if row["sampler"] == "dula"))
    for place, row in enumerate(rows):
        name, ratio = str(row["sampler"]), estimate(row["relative"])
        axes.barh(place, ratio.value, color=style.SAMPLER_COLORS[name], alpha=0.75, height=0.7)
        style.interval(axes, ratio, place)
        time = estimate(row["milliseconds"])
        end = max(ratio.value, ratio.high or 0)
        axes.annotate(f"{time.value:.2g} ms", (end, place), (5, -3), textcoords="offset points", fontsize=9)
        axes.plot(
            number(row["paper_per_call"]) / paper_unit,
            place,
            "D",
            markerfacecolor="white",
            markeredgecolor="black",
            markersize=6,
            label="paper, seconds per call" if place == 0 else None,
        )
    axes.axvline(1, color="#555555", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(rows)), [str(row["sampler"]) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("processor time of a full update, relative to dula")
    axes.grid(False)
    axes.margins(x=0.1)
    axes.legend(loc="lower right")
    return {"timings": figure}
