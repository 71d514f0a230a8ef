"""Presenter of a comparison: statistics per seed as results with intervals, and figures from those alone."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steppe.compare.advice import PER_EVALUATIONS, name_distribution
from steppe.diagnostics.efficiency import DISTANCE, LOG_DENSITY
from steppe.diagnostics.exact import expected_total_variation, target_distribution, total_variation
from steppe.diagnostics.flatness import single_site_differences
from steppe.diagnostics.states import means
from steppe.intervals import LEVEL, estimate_mean, find_student_factor
from steppe.report import style
from steppe.report.cells import to_estimate, to_number
from steppe.results import Array, Cell, Column, Estimate, Figure, Provenance, Results, Table
from steppe.run.storage.identity import describe_software
from steppe.target import Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from steppe.compare.measurement import Measurement
    from steppe.tune.tuned import Tuned

REFERENCE = "exact π"
UNKNOWN_COLOR = "#555555"
PERFECT_COLOR = "#111111"


class Request(NamedTuple):
    """What was asked for, for the record."""

    name: str
    target: Target
    num_seeds: int
    budget: int
    rule: str
    tuning_budget: int
    started: str
    clock: float


EFFICIENCY_COLUMNS = [
    Column(key="sampler", label="sampler"),
    Column(key="distribution", label="distribution"),
    Column(key="ess_per_evaluation", label="effective draws per 1000 evaluations", better="higher"),
    Column(key="ess_per_second", label="effective draws per second", better="higher"),
    Column(key="worst", label="of"),
    Column(key="rhat", label="R-hat", better="lower"),
]
# A table of its own: together they are too wide for a terminal.
SPENDING_COLUMNS = [
    Column(key="sampler", label="sampler"),
    Column(key="step_size", label="step size"),
    Column(key="cost", label="evaluations per step"),
    Column(key="steps", label="steps kept"),
    Column(key="acceptance", label="acceptance"),
    Column(key="flips", label="flips per step"),
]
SHORT_QUANTITIES = {LOG_DENSITY: "U", DISTANCE: "distance"}
LAW_COLUMNS = [
    Column(key="sampler", label="sampler"),
    Column(key="distribution", label="distribution"),
    Column(key="log_density", label="E[U]", unit="nats"),
    Column(key="roughness", label="mean |ΔU|", unit="nats"),
]
DISTANCE_COLUMNS = [
    Column(key="tv", label="TV per seed", better="lower"),
    Column(key="tv_perfect", label="perfect sampling"),
    Column(key="tv_pooled", label="TV, seeds pooled", better="lower"),
    Column(key="tv_noise", label="noise alone"),
]


def present_comparison(
    request: Request,
    measured: Mapping[str, "Measurement"],
    tuning: Mapping[str, "Tuned"],
    advice: Sequence[str],
) -> Results:
    """Tables, notes and arrays of a comparison; its advice comes last."""
    target = request.target
    distribution = (
        target_distribution(target) if next(iter(measured.values())).occupancies is not None else None
    )
    figures = [EFFICIENCY_FIGURE, FLATNESS_FIGURE] + ([DISTANCE_FIGURE] if distribution is not None else [])
    return Results(
        name=request.name,
        title="Samplers compared",
        question=f"What do {request.budget} evaluations buy with each sampler on {target.domain!r}?",
        tables=[
            _tabulate_efficiency(measured, request.num_seeds),
            _tabulate_spending(measured, target),
            _tabulate_distributions(measured, target, distribution),
        ],
        figures=figures,
        arrays=_pack_arrays(measured),
        settings={
            "seeds": request.num_seeds,
            "budget per seed": request.budget,
            "tuned by": request.rule,
            "tuning budget per sampler": request.tuning_budget,
            "confidence of intervals": LEVEL,
        },
        notes=[*_list_notes(measured, tuning, target), *advice],
        provenance=Provenance.of_software(
            describe_software(),
            command=f"steppe.compare(target, [{', '.join(measured)}], seeds={request.num_seeds}, "
            f"budget={request.budget})",
            seeds=list(range(request.num_seeds)),
            started=request.started,
            seconds=time.perf_counter() - request.clock,
            model_evaluations=round(
                sum(request.num_seeds * m.spending.num_evaluations for m in measured.values())
                + sum(tuned.num_evaluations for tuned in tuning.values())
            ),
        ),
    )


EFFICIENCY_FIGURE = Figure(
    key="efficiency",
    title="Effective draws per 1000 evaluations",
    caption="Of the worse of log-density and distance from the best state, with 95 % intervals over seeds. "
    "Samplers with a biased distribution (see the table) gain by their bias.",
    alternative="One horizontal bar per sampler: effective draws per 1000 evaluations with an interval.",
)
FLATNESS_FIGURE = Figure(
    key="flatness",
    title="Roughness against log-density",
    caption="Small dots are seeds, large ones their means. A flat state of low U is nothing to be proud of.",
    alternative="A scatter of mean absolute one-site difference against mean log-density, one colour per "
    "sampler.",
)
DISTANCE_FIGURE = Figure(
    key="distance",
    title="Total variation to π",
    caption="After the whole budget, per seed; the line is what as many independent draws would show.",
    alternative="One row per sampler: total variation to the exact distribution with an interval over seeds.",
)


def _tabulate_efficiency(measured: Mapping[str, "Measurement"], num_seeds: int) -> Table:
    rows = []
    for label, m in measured.items():
        evaluations = num_seeds * m.spending.kept_evaluations
        rows.append(
            {
                "sampler": label,
                "distribution": name_distribution(m.recipe),
                "ess_per_evaluation": _estimate_effective(m, num_seeds, PER_EVALUATIONS / evaluations),
                "ess_per_second": _estimate_effective(m, num_seeds, 1 / m.seconds),
                "worst": SHORT_QUANTITIES[m.effective.quantity],
                "rhat": _to_number(m.rhat),
            }
        )
    return Table(key="efficiency", title="What the budget buys", columns=EFFICIENCY_COLUMNS, rows=rows)


def _tabulate_spending(measured: Mapping[str, "Measurement"], target: Target) -> Table:
    rows = [
        {
            "sampler": label,
            "step_size": _to_number(m.recipe.build(target, audit=False).parameters.get("step_size")),
            "cost": m.spending.evaluations_per_step,
            "steps": m.spending.num_draws * m.spending.thinning,
            "acceptance": _average_over_seeds(m.acceptance_rate),
            "flips": _average_over_seeds(m.flips_per_step),
        }
        for label, m in measured.items()
    ]
    return Table(key="spending", title="What became of it", columns=SPENDING_COLUMNS, rows=rows)


def _tabulate_distributions(
    measured: Mapping[str, "Measurement"], target: Target, distribution: np.ndarray | None
) -> Table:
    rows: list[dict[str, Cell]] = []
    if distribution is not None:
        everywhere = single_site_differences(target, target.domain.enumerate(), exact=False)
        exact = means(distribution, log_density=everywhere.log_density, roughness=everywhere.mean_absolute)
        rows.append(
            {
                "sampler": REFERENCE,
                "distribution": "π",
                "log_density": exact["log_density"],
                "roughness": exact["roughness"],
                "tv": 0.0,
            }
        )
    for label, m in measured.items():
        rows.append(
            {
                "sampler": label,
                "distribution": name_distribution(m.recipe),
                "log_density": _average_over_seeds(m.log_density),
                "roughness": _average_over_seeds(m.roughness),
                **({} if distribution is None else _measure_distances(m, distribution)),
            }
        )
    return Table(
        key="distribution",
        title="Where draws are, and how flat it is there",
        columns=LAW_COLUMNS + ([] if distribution is None else DISTANCE_COLUMNS),
        rows=rows,
        reference_rows=[] if distribution is None else [0],
    )


def _measure_distances(m: "Measurement", distribution: np.ndarray) -> dict[str, Cell]:
    """Total variation to `π`: per seed beside what independent draws show, pooled beside its own noise."""
    assert m.occupancies is not None
    num_draws = m.spending.num_draws * (m.recipe.coupling.replicas or 1)
    errors = m.occupancies.std(axis=0, ddof=1) / math.sqrt(len(m.occupancies))
    return {
        "tv": _average_over_seeds(np.array([total_variation(seed, distribution) for seed in m.occupancies])),
        "tv_perfect": expected_total_variation(distribution, num_draws),
        "tv_pooled": total_variation(m.occupancies.mean(axis=0), distribution),
        # The mean of |normal| is √(2/π) deviations.
        "tv_noise": float(0.5 * math.sqrt(2 / math.pi) * errors.sum()),
    }


def _pack_arrays(measured: Mapping[str, "Measurement"]) -> dict[str, Array]:
    """Figures by sampler and seed, in the order of the rows."""
    return {
        name: Array.of(np.stack([getattr(m, name) for m in measured.values()]).astype(np.float64))
        for name in ("log_density", "roughness")
    }


def _list_notes(
    measured: Mapping[str, "Measurement"], tuning: Mapping[str, "Tuned"], target: Target
) -> list[str]:
    notes = [
        (
            f"Intervals are {LEVEL:.0%}, by Student's t over seeds; of effective draws by leaving out "
            "one seed at a time."
        ),
        "Effective draws are those of the worse of U and the distance, in sites, from the best state met.",
        "Effective draws per second are those of all seeds running side by side, compilation left out.",
    ]
    for label, m in measured.items():
        if not m.recipe.is_adjusted:
            origin = ", and its step size is its adjusted twin's" if label in tuning else ""
            notes.append(f"{label} is unadjusted: its distribution is biased{origin}.")
    notes += [f"{label}: {m.recipe.stationary(target).description}" for label, m in measured.items()]
    notes += [
        f"{label}: tuned with {t.num_evaluations:g} evaluations. {t.reason}" for label, t in tuning.items()
    ]
    return notes


def _estimate_effective(m: "Measurement", num_seeds: int, scale: float) -> Estimate:
    half = find_student_factor(num_seeds) * m.effective.standard_error
    value = m.effective.num_effective
    return Estimate(value=scale * value, low=scale * max(0.0, value - half), high=scale * (value + half))


def _average_over_seeds(values: np.ndarray) -> Estimate | None:
    """Mean over seeds with its interval; nothing where some seed has no figure."""
    if not np.isfinite(values).all():
        return None
    return estimate_mean(values)


def _to_number(value: object) -> float | None:
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None


# ---- figures ---------------------------------------------------------------------------------------


@style.apply()
def draw_comparison(results: Results) -> dict[str, "Drawing"]:
    """Draw every figure that the results name."""
    drawn = {"efficiency": _draw_efficiency, "flatness": _draw_flatness, "distance": _draw_distance}
    return {figure.key: drawn[figure.key](results) for figure in results.figures}


def _draw_efficiency(results: Results) -> "Drawing":
    table = results.table("efficiency")
    figure, (axes,) = style.make_row(1, 6.4, 1.2 + 0.34 * len(table.rows))
    _draw_intervals(axes, table, "ess_per_evaluation")
    axes.set_xlim(left=0)
    axes.set_xlabel("effective draws per 1000 evaluations")
    return figure


def _draw_distance(results: Results) -> "Drawing":
    table = results.table("distribution")
    rows = [row for index, row in enumerate(table.rows) if index not in table.reference_rows]
    figure, (axes,) = style.make_row(1, 6.4, 1.5 + 0.34 * len(rows))
    _draw_intervals(axes, table, "tv")
    for place, row in enumerate(rows):
        perfect = to_number(row["tv_perfect"])
        label = "as many independent draws" if place == 0 else None
        axes.plot([perfect] * 2, [place - 0.35, place + 0.35], color=PERFECT_COLOR, label=label)
    axes.set_xlim(left=0)
    axes.set_xlabel("total variation to π, per seed")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.0 + 0.8 / (1 + len(rows))))
    return figure


def _draw_intervals(axes: "Axes", table: Table, key: str) -> None:
    """One row per sampler from the top, a dot and its interval."""
    rows = [row for index, row in enumerate(table.rows) if index not in table.reference_rows]
    for place, row in enumerate(rows):
        cell = to_estimate(row[key])
        low, high = cell.low or cell.value, cell.high or cell.value
        color, marker = _find_look(str(row["sampler"]))
        reach = [[cell.value - low], [high - cell.value]]
        axes.errorbar(cell.value, place, xerr=reach, fmt=marker, color=color, capsize=3)
    axes.set_yticks(range(len(rows)), [str(row["sampler"]) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x")


def _draw_flatness(results: Results) -> "Drawing":
    figure, (axes,) = style.make_row(1, 6.8, 4.4)
    table = results.table("distribution")
    seeds = {name: results.arrays[name].numpy() for name in ("log_density", "roughness")}
    names = [str(row["sampler"]) for index, row in enumerate(table.rows) if index not in table.reference_rows]
    for index, name in enumerate(names):
        color, marker = _find_look(name)
        heights, gaps = seeds["log_density"][index], seeds["roughness"][index]
        axes.scatter(gaps, heights, s=8, color=color, alpha=0.35, linewidths=0)
        axes.scatter(gaps.mean(), heights.mean(), s=60, color=color, marker=marker, label=name, zorder=3)
    for index in table.reference_rows:
        row = table.rows[index]
        place = to_number(row["roughness"]), to_number(row["log_density"])
        axes.scatter(*place, s=160, marker="+", color=PERFECT_COLOR, label=str(row["sampler"]), zorder=4)
    axes.set_xlabel("mean |ΔU| over one-site changes (left is flatter)")
    axes.set_ylabel("E[U]")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _find_look(name: str) -> tuple[str, str]:
    """Colour and marker of a sampler; labels of one's own that begin with its name share them."""
    known = max(
        (sampler for sampler in style.SAMPLER_COLORS if name.startswith(sampler)), key=len, default=""
    )
    return style.SAMPLER_COLORS.get(known, UNKNOWN_COLOR), style.SAMPLER_MARKERS.get(known, "o")
