"""What is run about flatness: enumerable laws, and binary perceptrons."""

from functools import partial
from typing import NamedTuple

import numpy as np

from steppe.targets.perceptron import perceptron, teacher_student
from steppe_edlp.flatness import report, small_laws
from steppe_edlp.flatness.perceptron import Span, methods, solved
from steppe_edlp.request import Findings, Request
from steppe_edlp.work import Content, Piece, Work

NUM_SEEDS, LOAD, LOSS = 20, 0.6, "softplus"
SCHEDULES: tuple[Span, ...] = ((0.3, 30.0), (0.3, 100.0), (1.0, 200.0))
FIRST_CHAIN_SEED = 1000


class Size(NamedTuple):
    """How much is run."""

    num_inputs: int
    num_test: int
    budget: int
    flips: tuple[int, ...]
    num_draws: int


SIZES = {
    "quick": Size(201, 2_000, 3_000, (1, 2, 5, 10, 20), 2_000),
    "full": Size(1_001, 4_000, 30_000, (1, 2, 5, 10, 20, 50, 100), 10_000),
}


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment; the paper has nothing like it, so both protocols are the sound one."""
    size, seeds = SIZES[request.scale], request.seeds(NUM_SEEDS)
    names = request.chosen(methods(size.budget))
    pieces: dict[str, Piece] = {}
    if "roughness_tilted" in request.chosen(("roughness_tilted",)):
        pieces["mixture"] = small_laws.mixture
        pieces["four-bits"] = partial(small_laws.four_bits, seeds, 20, 500, size.num_draws)
    pieces |= {f"{name}-{seed:03d}": partial(_instance, name, seed, size) for seed in seeds for name in names}
    found = work.all(pieces)
    solutions = {
        name: report.Solutions(**_stacked([found[f"{name}-{seed:03d}"] for seed in seeds])) for name in names
    }
    return report.findings(size, seeds, solutions, found.get("four-bits"), found.get("mixture"))


def _instance(name: str, seed: int, size: Size) -> Content:
    """One method on one instance, along every schedule."""
    problem = teacher_student(seed, size.num_inputs, LOAD, size.num_test)
    target = perceptron(problem.patterns, problem.labels, LOSS)
    method = methods(size.budget)[name]
    rows = [solved(problem, target, method, span, FIRST_CHAIN_SEED + seed, size.flips) for span in SCHEDULES]
    return {key: np.asarray([row[key] for row in rows]) for key in rows[0]}


def _stacked(parts: list[Content]) -> dict[str, np.ndarray]:
    """Schedules × instances, and × numbers of flips."""
    return {key: np.stack([part[key] for part in parts], axis=1) for key in parts[0]}
