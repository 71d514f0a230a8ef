"""Which statements are computed, and what they amount to."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from steppe.results import Cell, Column, Figure, Table
from steppe_edlp.request import Findings, Request
from steppe_edlp.theory import statements, verdicts
from steppe_edlp.work import Content, Work

# Grids by statement: (first, last), on a logarithmic scale.
GRIDS = {
    "marginal": (0.2, 2.0),
    "dula-four-bits": (0.05, 1.0),
    "dula-hidden-unit": (0.03, 1.0),
    "proposition-5-4": (0.015, 1.0),
    "theorem-5-5": (0.015, 1.0),
    "theorem-5-6": (0.005, 1.0),
    "edula-bias": (0.03, 1.0),
    "glu-gap": (0.1, 8.0),
    "effective-step": (0.08, 2.0),
    "drift": (0.0025, 3.5),
}
FUNCTIONS = {
    "marginal": statements.marginal,
    "dula-four-bits": statements.dula_on_four_bits,
    "dula-hidden-unit": statements.dula_on_a_hidden_unit,
    "proposition-5-4": statements.proposition_5_4,
    "theorem-5-5": statements.theorem_5_5,
    "theorem-5-6": statements.theorem_5_6,
    "edula-bias": statements.edula_bias,
    "glu-gap": statements.glu_gap,
    "effective-step": statements.effective_step,
    "drift": statements.drift,
}
POINTS = {"quick": 6, "full": 16}
# Every point of these integrates over centers in four dimensions.
FEW_POINTS = {"glu-gap", "marginal"}
CLOSED_FORM_POINTS = 60
WORDS = {
    "dula-four-bits": ("bias of dula, from which 5.4 descends", "printed", "four bits", "α", "L1 ≤"),
    "dula-hidden-unit": ("bias of dula, from which 5.4 descends", "printed", "hidden unit", "α", "L1 ≤"),
    "proposition-5-4": ("Proposition 5.4, bias of edula", "printed", "one flat bit", "α", "L1 ≤"),
    "theorem-5-5": ("Theorem 5.5, edula after many steps", "printed", "one flat bit", "α", "TV ≤"),
    "theorem-5-6": ("Theorem 5.6, rate of edmala", "printed", "one concave bit", "α_a", "gap ≥"),
    "edula-bias": ("bias of edula, quadratic U", "corrected", "ring of four bits", "α", "L1 ≤"),
    "glu-gap": ("rate of GLU with exact draws", "corrected", "four bits", "η", "gap ≥"),
}


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment; it has no random numbers, so protocols and seeds change nothing."""
    pieces = {key: partial(function, _grid(key, request)) for key, function in FUNCTIONS.items()}
    found = work.all(pieces)
    return Findings(
        verdicts=verdicts.all_verdicts(found),
        tables=[_table(found)],
        figures=_figures(),
        arrays=_arrays(found),
        settings={
            "one flat bit": "U = 0, η = 0.1, α_a = 0.1, centers in [−0.5, 1.5]",
            "one concave bit": "U = −θ²/2 + θ/2, α = 1, η = 10, centers in [−1, 2]",
            "hidden unit": "U = log(1 + exp(6θ − 5)) of one bit",
            "ring of four bits": "U = field·θ + Σ θ_i θ_{i+1}, η = 0.5, α_a = 0.1",
            "points per curve": POINTS[request.scale],
        },
        notes=[
            (
                "Exact numbers come from transition matrices; chains with a center are confined to a box, as "
                "the paper's Assumption 5.3 has it, and put on a grid. Nothing here is random."
            ),
        ],
    )


def _grid(key: str, request: Request) -> list[float]:
    num_points = 3 if key in FEW_POINTS and request.is_quick else POINTS[request.scale]
    num_points = CLOSED_FORM_POINTS if key == "drift" else num_points
    return [round(float(x), 5) for x in np.geomspace(*GRIDS[key], num_points)]


def _table(found: Mapping[str, Content]) -> Table:
    rows: list[dict[str, Cell]] = []
    for key, (statement, kind, target, symbol, relation) in WORDS.items():
        one = found[key]
        worst = _most_telling(one, relation)
        rows.append(
            {
                "statement": statement,
                "form": kind,
                "target": target,
                "at": f"{symbol} = {one['x'][worst]:g}",
                "claim": relation,
                "bound": float(one["bound"][worst]),
                "exact": float(one["exact"][worst]),
                "true": sum(held is True for held in one["holds"]),
                "points": len(one["holds"]),
                "assumptions": ", ".join(name for name, met in one["assumptions"].items() if not met)
                or "all met",
            }
        )
    return Table(
        key="bounds",
        title="Bounds against the numbers they bound",
        columns=[
            Column(key="statement", label="statement"),
            Column(key="form", label="form"),
            Column(key="target", label="target"),
            Column(key="at", label="most telling at"),
            Column(key="claim", label="claims"),
            Column(key="bound", label="bound", digits=5),
            Column(key="exact", label="exact", digits=5),
            Column(key="true", label="true at"),
            Column(key="points", label="of points"),
            Column(key="assumptions", label="assumptions not met"),
        ],
        rows=rows,
        notes=["“Most telling” is the point at which the bound is nearest to being wrong, or most wrong."],
    )


def _most_telling(one: Content, relation: str) -> int:
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(one["exact"] / one["bound"])
    return int(np.nanargmax(excess if relation.endswith("≤") else -excess))


def _figures() -> list[Figure]:
    return [
        Figure(
            key="bias",
            title="Bounds on the bias",
            caption="Line: the bound. Dots: the exact bias. Proposition 5.4 as printed falls below what it "
            "bounds as α → 0, because it forgets the center's own bias; the corrected bound stays above.",
            alternative="Two panels, bias against step size: printed bound and corrected bound.",
        ),
        Figure(
            key="gap",
            title="Bounds on the rate",
            caption="Line: the claimed lower bound of the spectral gap. Dots: the exact gap. Theorem 5.6 "
            "claims a rate that does not fall with α_a, and the true one does; the corrected bound of the "
            "Gibbs-like sampler stays below.",
            alternative="Two panels, spectral gap: printed bound over α_a and corrected bound over η.",
        ),
        Figure(
            key="drift",
            title="Drift of the center",
            caption="Factor by which E|a|² shrinks per step. The printed one is below 1 only for α_a/η "
            "between 0.29 and 1.71; the paper's networks ran at 0.0025, marked. The true one is "
            "below 1 for every α_a < 4η.",
            alternative="Drift factor against α_a over η, printed and true.",
        ),
    ]


def _arrays(found: Mapping[str, Content]) -> dict[str, np.ndarray]:
    return {
        f"{key}_{name}": values
        for key, one in found.items()
        for name, values in one.items()
        if isinstance(values, np.ndarray)
    }
