"""Figures of the travelling salesman."""

from typing import TYPE_CHECKING

import numpy as np

from steppe.report import style
from steppe.report.cells import estimate, number
from steppe.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arrays = dict[str, np.ndarray]
PANELS = (
    ("spread", "Spread of cost", "std over the paths of a run"),
    ("band", "Mismatch to best, mean + std", "pairs of places, of 36"),
    ("overall", "Mismatch overall", "pairs of places, of 36"),
)
VIOLINS = (
    ("Cost", "cost of a path"),
    ("Mismatch to the best path of its run", "pairs of places, of 36"),
)
SMOOTHING = 0.25


def draw(results: Results) -> dict[str, "Figure"]:
    """Every figure of the experiment, by key: the eight cities, or an instance."""
    arrays = {name: array.numpy() for name, array in results.arrays.items()}
    if "tours" in arrays:
        return {"tours": _tours(arrays)} if "places" in arrays else {}
    return {
        "landscape": _landscape(arrays),
        "spreads": _spreads(results, arrays),
        "violins": _violins(results, arrays),
        "scatter": _scatter(results, arrays),
    }


def _color(name: str) -> str:
    return style.SAMPLER_COLORS.get(name, "#555555")


def _samplers(results: Results) -> list[str]:
    return [str(row["sampler"]) for row in results.table("runs").rows]


def _points(results: Results, arrays: Arrays, name: str) -> np.ndarray:
    """Cost and mismatch of distinct paths: of one run as published, else of all seeds kept."""
    points = arrays[f"points_{name}"]
    return points if results.protocol == "sound" else points[arrays[f"points_seed_{name}"] == 0]


def _landscape(arrays: Arrays) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    budget, looks = float(arrays["budget"][0]), (("flat", style.FLAT_COLOR), ("sharp", style.SHARP_COLOR))
    for profile, (kind, color) in zip(arrays["profiles"], looks, strict=True):
        swaps = np.arange(len(profile))
        left.plot(
            swaps, profile[:, 1], color=color, marker="o", label=f"{kind} tour, cost {profile[0, 1]:.2f}"
        )
        left.fill_between(swaps, profile[:, 0], profile[:, 2], color=color, alpha=0.2)
        right.plot(swaps, profile[:, 3], color=color, marker="o", label=f"{kind} tour")
        for place in (1, 2):  # further away both are like any other tour
            share, shift = profile[place, 3], 6 if kind == "flat" else -13
            right.annotate(f"{share:.0%}", (place, share), (5, shift), textcoords="offset points", fontsize=8)
    left.axhline(budget, color="#555555", linestyle="--", linewidth=1)
    left.annotate(f"budget {budget:.2f}", (3.2, budget), (0, -12), textcoords="offset points", fontsize=9)
    left.set_ylabel("cost (median, and 80 % of tours)")
    right.set_ylabel("share of tours within the budget")
    left.set_title("Cost of tours nearby")
    right.set_title("How many are still affordable")
    right.set_ylim(-0.1, 1.05)
    for axes in (left, right):
        axes.set_xlabel("swaps of two cities")
        axes.set_xticks(range(arrays["profiles"].shape[1]))
        axes.legend(fontsize=9)
    return figure


def _spreads(results: Results, arrays: Arrays) -> "Figure":
    rows = results.table("runs").rows
    names = _samplers(results)
    figure, panels = style.subplots(3, 10.5, 0.5 * len(names) + 1.3)
    for axes, (key, title, unit) in zip(panels, PANELS, strict=True):
        for place, (name, row) in enumerate(zip(names, rows, strict=True)):
            found, values = estimate(row[key]), arrays[f"{key}_{name}"]
            axes.barh(place, found.value, color=_color(name), alpha=0.6, height=0.6)
            jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(values))
            axes.plot(values, place + jitter, ".", color="#444444", markersize=3, alpha=0.6)
            style.interval(axes, found, place)
            # At the foot of the bar: its end is hidden by the single runs.
            style.label(axes, f"{found.value:.2f}", (0, place))
            paper = row.get(f"{key}_paper")
            if paper is not None:
                axes.plot(number(paper), place, "D", color="black", markerfacecolor="white", markersize=7)
        axes.set_title(title)
        axes.set_xlabel(unit)
        axes.grid(axis="x")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    return figure


def _violins(results: Results, arrays: Arrays) -> "Figure":
    from matplotlib.figure import Figure

    names = _samplers(results)
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    for column, (axes, (title, unit)) in enumerate(zip(figure.subplots(1, 2), VIOLINS, strict=True)):
        values = [_points(results, arrays, name)[:, column] for name in names]
        bodies = axes.violinplot(values, showmedians=True, widths=0.8)
        for body, name in zip(bodies["bodies"], names, strict=True):
            body.set_facecolor(_color(name))
            body.set_alpha(0.6)
        for part in ("cbars", "cmins", "cmaxes", "cmedians"):
            bodies[part].set_color("#444444")
            bodies[part].set_linewidth(1)
        axes.set_xticks(range(1, len(names) + 1), [name.replace("_", "\n") for name in names], fontsize=9)
        axes.set_title(title)
        axes.set_ylabel(unit, fontsize=9)
        if column == 0:
            optimum, mean = arrays["exact"][:2]
            for value, style, label in ((optimum, "-", "shortest tour"), (mean, "--", "mean under π")):
                axes.axhline(value, color="#222222", linewidth=1, linestyle=style)
                axes.annotate(label, (0.42, value), (0, 3), textcoords="offset points", fontsize=8)
            axes.set_xlim(0.4, len(names) + 0.6)
    return figure


def _scatter(results: Results, arrays: Arrays) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.6), layout="constrained")
    panels = figure.subplots(
        2, 2, gridspec_kw={"width_ratios": (4, 1), "height_ratios": (1, 4)}, sharex="col", sharey="row"
    )
    top, main, side = panels[0][0], panels[1][0], panels[1][1]
    panels[0][1].set_visible(False)
    for name in _samplers(results):
        costs, mismatches = _points(results, arrays, name).T
        jitter = np.random.default_rng(1).uniform(-0.35, 0.35, len(costs))
        main.plot(costs, mismatches + jitter, ".", color=_color(name), markersize=4, alpha=0.55, label=name)
        _density(top, costs, _color(name), across=False)
        _density(side, mismatches, _color(name), across=True)
    main.axvline(arrays["exact"][0], color="#222222", linewidth=1)
    main.set_xlabel("cost (line: the shortest tour)")
    main.set_ylabel("mismatch to the best path of the run")
    main.legend(fontsize=9, markerscale=2, loc="lower right")
    for axes in (top, side):
        axes.grid(False)
        axes.tick_params(labelbottom=False, labelleft=False, length=0)
    return figure


def _density(axes: "Axes", values: np.ndarray, color: str, *, across: bool) -> None:
    """Smoothed distribution, along the other axis where `across`."""
    if np.ptp(values) == 0:
        return
    width = SMOOTHING * values.std()
    at = np.linspace(values.min() - 3 * width, values.max() + 3 * width, 200)
    heights = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2).mean(axis=1) / width
    axes.plot(*((heights, at) if across else (at, heights)), color=color, linewidth=1.3)


def _tours(arrays: Arrays) -> "Figure":
    figure, (axes,) = style.subplots(1, 6.5, 6)
    places, tours = arrays["places"], arrays["tours"]
    for tour in tours:
        axes.plot(*places[np.append(tour, tour[0])].T, color="#0077BB", alpha=0.25, linewidth=3)
    closed = places[np.append(tours[0], tours[0][0])]
    axes.plot(*closed.T, color="#222222", linewidth=1.2)
    axes.plot(*places.T, "o", color="#222222", markersize=4)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.axis("off")
    return figure
