"""Figures of the travelling salesman."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import to_estimate, to_number
from steppe.results import Cell, Results
from steppe_edlp.plots import (
    DARK,
    color_of,
    draw_limit,
    draw_paper,
    make_figure,
    name_rows,
    unpack_arrays,
    write_beside,
)
from steppe_edlp.tables import find_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arrays = dict[str, np.ndarray]
Rows = Sequence[Mapping[str, Cell]]
PANELS = (
    ("spread", "Spread of cost", "std over the paths of a run"),
    ("band", "Mismatch to best, mean + std", "pairs of places, of 36"),
    ("overall", "Mismatch overall", "pairs of places, of 36"),
)
VIOLINS = (("Cost", "cost of a path"), ("Mismatch to the best path of its run", "pairs of places, of 36"))
SMOOTHING = 0.25
NUM_PAIRS = 36


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key: the eight cities, or an instance."""
    arrays, rows = unpack_arrays(results), find_rows(results, "runs")
    if "tours" in arrays:
        return {"tours": _draw_tours(arrays)} if "places" in arrays else {}
    points = {str(row["sampler"]): _find_points(results, arrays, place) for place, row in enumerate(rows)}
    return {
        "landscape": _draw_neighbourhoods(arrays),
        "spreads": _draw_spreads(rows, arrays["single_runs"]),
        "violins": _draw_violins(points, arrays["exact"]),
        "scatter": _draw_scatter(points, arrays["exact"]),
    }


def _find_points(results: Results, arrays: Arrays, place: int) -> np.ndarray:
    """Cost and mismatch of distinct paths: of one run as published, else of all seeds kept."""
    points = arrays["points"][arrays["points"][:, 0] == place]
    return points[points[:, 1] == 0, 2:] if results.protocol == "published" else points[:, 2:]


def _draw_neighbourhoods(arrays: Arrays) -> "Figure":
    figure, ((left, right),) = make_figure(1, 2, 9.5, 3.8)
    budget, looks = float(arrays["budget"][0]), (("flat", style.FLAT_COLOR), ("sharp", style.SHARP_COLOR))
    for profile, (kind, color) in zip(arrays["profiles"], looks, strict=True):
        swaps = np.arange(len(profile))
        left.plot(
            swaps, profile[:, 1], color=color, marker="o", label=f"{kind} tour, cost {profile[0, 1]:.2f}"
        )
        left.fill_between(swaps, profile[:, 0], profile[:, 1], color=color, alpha=0.2)
        right.plot(swaps, profile[:, 3], color=color, marker="o", label=f"{kind} tour")
        for place in (1, 2):  # further away both are like any other tour
            fraction, shift = profile[place, 3], 6 if kind == "flat" else -13
            write_beside(right, f"{fraction:.0%}", (place, fraction), (5, shift), fontsize=8)
    draw_limit(left, budget, is_across=True)
    write_beside(left, f"budget {budget:.2f}", (3.2, budget), (0, -12))
    left.set_ylabel("cost (median, and down to the cheapest tenth)")
    right.set_ylabel("fraction of tours within the budget")
    left.set_title("Cost of tours nearby")
    right.set_title("How many are still affordable")
    right.set_ylim(-0.1, 1.05)
    for axes in (left, right):
        axes.set_xlabel("swaps of two cities")
        axes.set_xticks(range(arrays["profiles"].shape[1]))
        axes.legend(fontsize=9)
    return figure


def _draw_spreads(rows: Rows, single_runs: np.ndarray) -> "Figure":
    names = [str(row["sampler"]) for row in rows]
    figure, panels = style.make_row(3, 10.5, 0.5 * len(names) + 1.3)
    for column, (axes, (key, title, unit)) in enumerate(zip(panels, PANELS, strict=True)):
        for place, (name, row) in enumerate(zip(names, rows, strict=True)):
            found, values = to_estimate(row[key]), single_runs[place, column]
            axes.barh(place, found.value, color=color_of(name), alpha=0.6, height=0.6)
            jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(values))
            axes.plot(values, place + jitter, ".", color="#444444", markersize=3, alpha=0.6)
            style.draw_interval(axes, found, place)
            # At the foot of the bar: its end is hidden by the single runs.
            style.draw_label(axes, f"{found.value:.2f}", (0, place))
            if (paper := row.get(f"{key}_paper")) is not None:
                draw_paper(axes, [to_number(paper)], [place])
        axes.set(title=title, xlabel=unit)
        axes.grid(axis="x")
    name_rows(panels[0], names)
    return figure


def _draw_violins(points: Mapping[str, np.ndarray], exact: np.ndarray) -> "Figure":
    figure, (panels,) = make_figure(1, 2, 9.5, 3.8)
    for column, (axes, (title, unit)) in enumerate(zip(panels, VIOLINS, strict=True)):
        bodies = axes.violinplot([own[:, column] for own in points.values()], showmedians=True, widths=0.8)
        for body, name in zip(bodies["bodies"], points, strict=True):
            body.set(facecolor=color_of(name), alpha=0.6)
        for part in ("cbars", "cmins", "cmaxes", "cmedians"):
            bodies[part].set(color="#444444", linewidth=1)
        names = [name.replace("_", "\n") for name in points]
        axes.set_xticks(range(1, len(points) + 1), names, fontsize=9)
        axes.set_title(title)
        axes.set_ylabel(unit, fontsize=9)
    for value, line, label in zip(exact, ("-", "--"), ("shortest\ntour", "mean\nunder π"), strict=True):
        panels[0].axhline(value, color=DARK, linewidth=1, linestyle=line)
        look = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8}
        write_beside(panels[0], label, (1, value), (3, 0), **look)
    return figure


def _draw_scatter(points: Mapping[str, np.ndarray], exact: np.ndarray) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.6), layout="constrained")
    ratios = {"width_ratios": (4, 1), "height_ratios": (1, 4)}
    (top, corner), (main, side) = figure.subplots(2, 2, gridspec_kw=ratios, sharex="col", sharey="row")
    corner.set_visible(False)
    for name, own in points.items():
        costs, mismatches = own.T
        jitter = np.random.default_rng(1).uniform(-0.35, 0.35, len(costs))
        color = color_of(name)
        main.plot(costs, mismatches + jitter, ".", color=color, markersize=4, alpha=0.55, label=name)
        _draw_density(top, costs, color, limits=(exact[0], np.inf))
        _draw_density(side, mismatches, color, limits=(0, NUM_PAIRS), is_across=True)
    main.axvline(exact[0], color=DARK, linewidth=1)
    main.set_xlabel("cost (line: the shortest tour)")
    main.set_ylabel("mismatch to the best path of the run")
    main.legend(fontsize=9, markerscale=2, loc="lower right")
    for axes in (top, side):
        axes.grid(False)
        axes.tick_params(labelbottom=False, labelleft=False, length=0)
    return figure


def _draw_density(
    axes: "Axes", values: np.ndarray, color: str, *, limits: tuple[float, float], is_across: bool = False
) -> None:
    """Smoothed distribution, reflected at limits, drawn from the lowest to the highest value."""
    if np.ptp(values) == 0:
        return
    width, at = SMOOTHING * values.std(), np.linspace(values.min(), values.max(), 200)
    mirrored = [values, *(2 * limit - values for limit in limits if np.isfinite(limit))]
    sources = np.concatenate(mirrored)
    heights = np.exp(-0.5 * ((at[:, None] - sources) / width) ** 2).sum(axis=1) / (width * len(values))
    axes.plot(*((heights, at) if is_across else (at, heights)), color=color, linewidth=1.3)


def _draw_tours(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.make_row(1, 6.5, 6)
    places, tours = arrays["places"], arrays["tours"]
    for tour in tours:
        axes.plot(*places[np.append(tour, tour[0])].T, color="#0077BB", alpha=0.25, linewidth=3)
    closed = places[np.append(tours[0], tours[0][0])]
    axes.plot(*closed.T, color=DARK, linewidth=1.2)
    axes.plot(*places.T, "o", color=DARK, markersize=4)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.axis("off")
    return figure
