"""Draws that are compared with an enumeration: how far they are from the distribution they should have."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base.array import array_stats
from scipy import stats

import steppe
from steppe.diagnostics.exact import expected_total_variation, target_distribution
from steppe.samplers import gibbs, parallel_tempering
from steppe.target import Target
from steppe.targets import Formula
from steppe_bench.rivals import Found

NUM_DRAWS = 2**20
NUM_CHAINS = 64
# Draws of solutions: chains, kept draws of each, and steps between two of them.
SOLUTION_CHAINS, SOLUTION_DRAWS, SOLUTION_THINNING = 32, 500, 4
LADDER = (0.0, 0.1, 0.25, 0.45, 0.7, 1.0)


def draw(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """`steppe.sample(target, key=key)`, nothing chosen but the number of draws, which stand in one row."""
    begun = time.process_time()
    run = steppe.sample(
        target,
        key=jax.random.key(seed),
        num_chains=NUM_CHAINS,
        num_draws=NUM_DRAWS // NUM_CHAINS,
        progress=False,
    )
    return Found(np.asarray(run.positions)[None], time.process_time() - begun)


def measure_distance(target: Target, positions: np.ndarray) -> float:
    """Total variation between draws and the enumerated distribution."""
    places = np.asarray(target.domain.index(jnp.asarray(positions))).ravel()
    counts = np.bincount(places, minlength=target.domain.num_states)
    return 0.5 * float(np.abs(counts / counts.sum() - np.asarray(target_distribution(target))).sum())


# ---- solutions of formulas ---------------------------------------------------------------------------------


def draw_solutions(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """Tempered Gibbs sweeps; chains × draws × sites, whether they satisfy the formula or not.

    Given that it satisfies all clauses, a draw at any temperature is uniform among the solutions.
    """
    recipe = parallel_tempering(base=gibbs(num_updates=target.domain.num_sites), inverse_temperatures=LADDER)
    begun = time.process_time()
    run = steppe.sample(
        target,
        recipe,
        key=jax.random.key(seed),
        num_chains=SOLUTION_CHAINS,
        num_draws=SOLUTION_DRAWS,
        thinning=SOLUTION_THINNING,
        progress=False,
    )
    return Found(np.asarray(run.positions)[None], time.process_time() - begun)


class Uniformity:
    """Draws of solutions against the list of all of them.

    Attributes
    ----------
    num_solutions, num_used
        Solutions there are, and draws that are counted, thinned to independence.
    p_value
        Of the χ² test that all solutions are equally likely; of an exact test where draws are few.
    distance, floor
        Total variation from uniform, and what as many independent draws have on average.
    """

    def __init__(self, target: Formula, positions: np.ndarray) -> None:
        solutions = enumerate_solutions(target)
        used = _thin(target, positions, solutions)
        counts = np.bincount(used, minlength=len(solutions))
        self.num_solutions, self.num_used = len(solutions), len(used)
        uniform = np.full(len(solutions), 1 / len(solutions))
        self.p_value = float(stats.chisquare(counts).pvalue) if len(solutions) > 1 else 1.0
        self.distance = 0.5 * float(np.abs(counts / counts.sum() - uniform).sum())
        self.floor = float(expected_total_variation(uniform, len(used)))

    @property
    def certificate(self) -> str:
        """A sentence for whoever relies on the draws."""
        verdict = "cannot be told from" if self.p_value > 1e-6 else "are NOT"
        return (
            f"{self.num_used} draws thinned to independence {verdict} uniform draws among the "
            f"{self.num_solutions} solutions, all of which were enumerated: χ² p = {self.p_value:.2g}, total "
            f"variation {self.distance:.3f} where independent draws have {self.floor:.3f}."
        )


def enumerate_solutions(target: Formula) -> np.ndarray:
    """Numbers of the states that satisfy every clause, rising; bit `i` of a number is variable `i`."""
    size = target.domain.num_sites
    numbers = np.arange(2**size, dtype=np.uint32)
    holds = np.ones(len(numbers), bool)
    variables, signs = (np.asarray(array) for array in target.literals)
    for sites, polarity in zip(variables, signs, strict=True):
        is_true = np.zeros(len(numbers), bool)
        for site, sign in zip(sites, polarity, strict=True):
            if sign:
                is_true |= ((numbers >> np.uint32(site)) & 1) == (sign > 0)
        holds &= is_true
        numbers, holds = numbers[holds], holds[holds]
    return numbers


def _thin(target: Formula, positions: np.ndarray, solutions: np.ndarray) -> np.ndarray:
    """Places among the solutions of draws far enough apart, by the slowest of a few indicators."""
    chains = np.asarray(positions)  # (chains, draws, sites)
    powers = 2 ** np.arange(chains.shape[-1], dtype=np.int64)
    numbers = (chains > 0.5).astype(np.int64) @ powers
    places = np.searchsorted(solutions, numbers)
    found = np.minimum(places, len(solutions) - 1)
    is_solution = solutions[found] == numbers
    signals = (signal for signal in _list_signals(chains, is_solution) if signal.std())
    least = min(
        (float(np.asarray(array_stats.ess(signal))) for signal in signals), default=float(numbers.size)
    )
    stride = max(1, int(np.ceil(numbers.size / least)))
    kept = np.zeros_like(is_solution)
    kept[:, stride - 1 :: stride] = True
    return found[kept & is_solution]


def _list_signals(chains: np.ndarray, is_solution: np.ndarray) -> list[np.ndarray]:
    """Every variable and whether all clauses hold, (chains, draws)."""
    return [*np.moveaxis(chains, -1, 0).astype(float), is_solution.astype(float)]


def measure_uniformity(target: Target, positions: np.ndarray) -> float:
    """p-value that all solutions are equally likely."""
    assert isinstance(target, Formula)
    return Uniformity(target, positions).p_value


def certify(target: Target, positions: np.ndarray) -> str:
    """Sentence on the uniformity of draws of solutions."""
    assert isinstance(target, Formula)
    return Uniformity(target, positions).certificate
