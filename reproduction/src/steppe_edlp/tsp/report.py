"""Tables, verdicts and notes on the paper's eight cities."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from steppe.intervals import mean_estimate, share_estimate
from steppe.kernel.compose import Recipe
from steppe.results import Cell, Column, Estimate, Table, Verdict
from steppe_edlp.judging import Question, joint_note, judged, judged_equal, judged_together
from steppe_edlp.request import Findings, Request
from steppe_edlp.tsp import captions
from steppe_edlp.tsp.landscape import Minima, exact_costs, minima
from steppe_edlp.wording import settings_of, spoken
from steppe_edlp.work import Content

OPTIMUM = 13.194113
PAIRS = (("edula", "dula"), ("edmala", "dmala"))
LAW_MARGIN = 0.15  # a tenth of the spread of costs under π
# What the authors' files hold: paths, cost, its spread as plotted, spread of the same file's costs, mismatch
# to the best, the upper band of it, mismatch overall.
PAPER_KEYS = ("paths", "cost", "spread", "spread_of_file", "to_best", "band", "overall")
PAPER = {
    "dula": (24, 19.387, 2.459, 2.459, 29.63, 38.44, 31.77),
    "edula": (30, 18.116, 1.649, 1.947, 29.97, 38.04, 31.11),
    "dmala": (43, 16.808, 1.977, 1.857, 31.37, 38.97, 32.82),
    "edmala": (21, 16.452, 0.480, 1.354, 28.48, 37.84, 30.74),
}
CORRECTED = ("dmala", "edmala")


class Claim(NamedTuple):
    """What the paper says of a figure of a run, of which pairs, and the smallest difference that counts."""

    key: str
    says: str
    pairs: tuple[tuple[str, str], ...]
    margin: float


CLAIMS = (
    Claim("spread", "has a smaller spread of costs than", PAIRS, 0.1),
    Claim("band", "has a lower upper band of the mismatch to its best path than", PAIRS[1:], 1.0),
    Claim("overall", "has a smaller mismatch between its paths than", PAIRS[1:], 1.0),
)


def findings(
    request: Request,
    recipes: Mapping[str, Recipe],
    answers: Mapping[str, Content],
    seeds: Sequence[int],
    num_law_chains: int,
) -> Findings:
    """Everything found about the eight cities."""
    landscape = minima()
    evaluations = sum(int(answer["steps"]) * int(answer["chains"]) for answer in answers.values())
    verdicts = (_sound_verdicts if request.is_sound else _published_verdicts)(answers)
    return Findings(
        verdicts=verdicts,
        tables=[
            _run_table(request, recipes, answers),
            _law_table(recipes, answers),
            _minima_table(landscape),
        ],
        figures=captions.figures(request, landscape),
        arrays=_arrays(answers, landscape),
        settings={
            "steps": 10_001,
            "steps dropped": 2_001,
            "start": "tour ABCDEFGH, cost 24.395",
            "chains per seed at exact draws": num_law_chains,
            **{name: settings_of(recipe) for name, recipe in recipes.items() if recipe.parameters},
        },
        notes=[*captions.notes(request), *joint_note(verdicts)],
        seeds=seeds,
        model_evaluations=evaluations,
    )


# ---- verdicts --------------------------------------------------------------------------------------


def _sound_verdicts(answers: Mapping[str, Content]) -> list[Verdict]:
    questions: list[Question] = [
        partial(_over_seeds, answers, entropic, plain, claim)
        for claim in CLAIMS
        for entropic, plain in claim.pairs
        if entropic in answers and plain in answers
    ]
    questions += [partial(_law_verdict, name, answers[name]) for name in CORRECTED if name in answers]
    return judged_together(questions)


def _over_seeds(
    answers: Mapping[str, Content], entropic: str, plain: str, claim: Claim, level: float
) -> Verdict:
    one, other = answers[entropic][claim.key], answers[plain][claim.key]
    difference = mean_estimate(other - one, level)
    return judged(
        f"{entropic} {claim.says} {plain}.",
        difference,
        f"Over {len(one)} seeds {entropic} has {one.mean():.2f} and {plain} {other.mean():.2f}; {plain} "
        f"minus {entropic} is {spoken(difference, 2, signed=True)}. {_moves(answers, entropic, plain)} Less "
        f"than {claim.margin:g} would not count.",
        claim.margin,
    )


def _moves(answers: Mapping[str, Content], entropic: str, plain: str) -> str:
    one, other = (float(answers[name]["moves"].mean()) for name in (entropic, plain))
    return f"In the whole run {entropic} changes its tour {one:.0f} times, {plain} {other:.0f} times."


def _law_verdict(name: str, answer: Content, level: float) -> Verdict:
    """Whether a sampler started at exact draws keeps the exact mean."""
    exact = exact_costs()
    return judged_equal(
        f"{name} has law π ∝ exp(−cost), as it should: its mean cost is that of enumeration.",
        mean_estimate(answer["law_mean"] - exact.mean, level),
        f"Started at exact draws it has mean cost {spoken(mean_estimate(answer['law_mean'], level), 2)} "
        f"against {exact.mean:.4f}; within {LAW_MARGIN:g} counts as the same.",
        LAW_MARGIN,
    )


def _published_verdicts(answers: Mapping[str, Content]) -> list[Verdict]:
    """The paper's comparison of single runs, judged by how often it comes out the same."""
    return judged_together(
        [
            partial(_over_pairs_of_runs, answers, entropic, plain, claim)
            for claim in CLAIMS
            for entropic, plain in claim.pairs
            if entropic in answers and plain in answers
        ]
    )


def _over_pairs_of_runs(
    answers: Mapping[str, Content], entropic: str, plain: str, claim: Claim, level: float
) -> Verdict:
    one, other = answers[entropic][claim.key], answers[plain][claim.key]
    wins = share_estimate(int(np.sum(one < other)), len(one), level)
    assert wins.low is not None
    assert wins.high is not None
    paper = [PAPER[name][PAPER_KEYS.index(claim.key)] for name in (entropic, plain)]
    return judged(
        f"A run of {entropic} {claim.says} a run of {plain} ({paper[0]:g} against {paper[1]:g}).",
        Estimate(value=wins.value - 0.5, low=wins.low - 0.5, high=wins.high - 0.5),
        f"This seed gives {one[0]:.2f} against {other[0]:.2f}. Of {len(one)} pairs of such runs the claim "
        f"comes out in {spoken(wins, 2)}; a coin would give 0.5.",
    )


# ---- tables ----------------------------------------------------------------------------------------


def _run_table(request: Request, recipes: Mapping[str, Recipe], answers: Mapping[str, Content]) -> Table:
    rows: list[dict[str, Cell]] = []
    for name, answer in answers.items():
        row: dict[str, Cell] = {"sampler": name, "settings": settings_of(recipes[name])}
        for key in ("paths", "cost", "spread", "best", "to_best", "band", "overall", "moves"):
            row[key] = mean_estimate(answer[key] if request.is_sound else answer[key][:1])
        if not request.is_sound:
            paper = dict(zip(PAPER_KEYS, PAPER[name], strict=True))
            row |= {f"{key}_paper": value for key, value in paper.items()}
            row["percentile"] = float(100 * np.mean(answer["spread"] < paper["spread"]))
        rows.append(row)
    columns = [
        Column(key="sampler", label="sampler"),
        Column(key="settings", label="settings"),
        Column(key="paths", label="distinct paths", digits=1),
        Column(key="cost", label="mean cost", digits=2, better="lower"),
        Column(key="spread", label="spread of cost", digits=2),
        Column(key="best", label="best cost", digits=2, better="lower"),
        Column(key="to_best", label="mismatch to best", digits=1),
        Column(key="band", label="its upper band", digits=1),
        Column(key="overall", label="mismatch overall", digits=1),
        Column(key="moves", label="changes of tour", digits=0),
    ]
    if not request.is_sound:
        columns += [
            Column(key="paths_paper", label="paths, paper", digits=0),
            Column(key="cost_paper", label="mean cost, paper", digits=2),
            Column(key="spread_paper", label="spread, paper", digits=2),
            Column(key="spread_of_file_paper", label="spread of the paper's own costs", digits=2),
            Column(key="percentile", label="percentile of the paper's spread", unit="%", digits=0),
            Column(key="to_best_paper", label="mismatch to best, paper", digits=1),
            Column(key="band_paper", label="upper band, paper", digits=1),
            Column(key="overall_paper", label="mismatch overall, paper", digits=1),
        ]
    return Table(
        key="runs",
        title="Runs as long as the paper's",
        columns=columns,
        rows=rows,
        notes=[
            (
                "Figures are over the distinct ordered paths of a run, each counted once: rotations of a "
                "cycle are different paths, and “best” is the best of that run. Mismatch counts pairs of "
                "places, of 36, that do not show the same pair of cities."
            ),
            "Intervals are 95 %, over seeds."
            if request.is_sound
            else "One run each, as in the paper; the percentile is among runs with other seeds.",
        ],
    )


def _law_table(recipes: Mapping[str, Recipe], answers: Mapping[str, Content]) -> Table:
    exact = exact_costs()
    rows: list[dict[str, Cell]] = [
        {"sampler": "π, enumerated", "mean": exact.mean, "std": exact.std, "optimal": exact.optimal_share}
    ]
    for name, answer in answers.items():
        spread = np.sqrt(answer["law_square"].mean() - answer["law_mean"].mean() ** 2)
        squares = mean_estimate((answer["law_square"] - 2 * exact.mean * answer["law_mean"]) + exact.mean**2)
        rows.append(
            {
                "sampler": name,
                "settings": settings_of(recipes[name]),
                "mean": mean_estimate(answer["law_mean"]),
                "std": _root(squares),
                "std_about_own_mean": float(spread),
                "optimal": mean_estimate(answer["law_optimal"]),
            }
        )
    return Table(
        key="law",
        title="Costs of all steps of chains that start at exact draws from π",
        columns=[
            Column(key="sampler", label="sampler"),
            Column(key="settings", label="settings"),
            Column(key="mean", label="mean cost", digits=4),
            Column(key="std", label="std about the exact mean", digits=4),
            Column(key="std_about_own_mean", label="std", digits=4),
            Column(key="optimal", label="time in the shortest cycle", digits=4),
        ],
        rows=rows,
        reference_rows=[0],
        notes=["A corrected sampler that starts in π stays in π; what leaves it is biased."],
    )


def _root(square: Estimate) -> Estimate:
    low, high = (None if end is None else float(np.sqrt(max(end, 0))) for end in (square.low, square.high))
    return Estimate(value=float(np.sqrt(square.value)), low=low, high=high)


def _minima_table(found: Minima) -> Table:
    return Table(
        key="minima",
        title="Affordable tours that no swap of two cities makes cheaper",
        columns=[
            Column(key="cost", label="cost", better="lower"),
            Column(key="rise", label="mean extra cost of a swap", better="lower"),
            Column(key="within", label="swaps within budget", digits=2, better="higher"),
        ],
        rows=[
            {"cost": float(cost), "rise": float(rise), "within": float(within)}
            for cost, rise, within in sorted(zip(found.costs, found.rises, found.within_budget, strict=True))
        ],
        notes=[f"The budget is the mean cost under π, {found.budget:.2f}. All by enumeration."],
    )


def _arrays(answers: Mapping[str, Content], found: Minima) -> dict[str, np.ndarray]:
    arrays = {
        "profiles": found.profiles,
        "minima": np.stack([found.costs, found.rises, found.within_budget], axis=1),
        "budget": np.asarray([found.budget]),
        "chosen_minima": np.asarray([found.flattest, found.sharpest], np.int64),
        "exact": np.asarray([OPTIMUM, exact_costs().mean, exact_costs().std]),
    }
    for name, answer in answers.items():
        arrays |= {f"{key}_{name}": answer[key] for key in ("spread", "band", "overall")}
        arrays |= {f"points_{name}": answer["points"], f"points_seed_{name}": answer["points_seed"]}
    return arrays
