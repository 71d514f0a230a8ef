"""The paper's eight cities by enumeration: the exact distribution of costs, and which cheap tours are robust.

A cycle is a tour begun at city 0 (the cost does not depend on where a tour begins): 5040 of them. Two cycles
are neighbours if one swap of two cities leads from one to the other; that is the smallest disruption of a
plan that visits all cities.
"""

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from steppe.targets.tsp import tsp_paper
from steppe_edlp.tsp.tour_measures import canonical_tours

MAX_SWAPS = 4
SAME_COST = 0.1


class Costs(NamedTuple):
    """The distribution of costs under π ∝ exp(−cost) over all tours.

    Attributes
    ----------
    mean, std
        Under π.
    optimum, worst
        The ends.
    optimal_share
        Mass of the shortest cycle.
    tours, costs, distribution
        All 40 320 tours, their costs and probabilities.
    """

    mean: float
    std: float
    optimum: float
    worst: float
    optimal_share: float
    tours: np.ndarray
    costs: np.ndarray
    distribution: np.ndarray


class Minima(NamedTuple):
    """The cycles no swap makes cheaper.

    Attributes
    ----------
    costs
        Their costs.
    rises
        Mean extra cost of one swap.
    within_budget
        Fraction of the cycles one swap away that the budget allows.
    budget
        Largest cost that counts as affordable.
    flattest, sharpest
        Numbers of the two minima of nearly the same cost whose shares differ most: at the same cost, the one
        with more affordable neighbours is the flatter one.
    profiles
        Costs of all cycles at 0 … 4 swaps from the flattest and the sharpest: their 10, 50 and 90 %
        quantiles and share within the budget; (2, swaps, 4).
    """

    costs: np.ndarray
    rises: np.ndarray
    within_budget: np.ndarray
    budget: float
    flattest: int
    sharpest: int
    profiles: np.ndarray


@cache
def enumerate_costs() -> Costs:
    """Enumerate all tours."""
    target: Any = tsp_paper("permutation")
    tours = np.asarray(list(itertools.permutations(range(8))))
    costs = np.asarray(target.cost(jnp.asarray(tours, float)), float)
    distribution = np.exp(-costs) / np.exp(-costs).sum()
    mean = float(distribution @ costs)
    return Costs(
        mean,
        float(np.sqrt(distribution @ (costs - mean) ** 2)),
        float(costs.min()),
        float(costs.max()),
        float(distribution[costs < costs.min() + 1e-4].sum()),
        tours,
        costs,
        distribution,
    )


def draw_exactly(seeds: Sequence[int], draws_per_seed: int) -> np.ndarray:
    """Tours from π, seed by seed.

    Those of a seed are spread evenly over costs, which lowers the noise of their mean. Every one of them by
    itself has distribution π, and those of different seeds are independent.

    Parameters
    ----------
    seeds
        Seeds.
    draws_per_seed
        Tours of each.
    """
    exact = enumerate_costs()
    order = np.argsort(exact.costs, kind="stable")
    offsets = np.asarray([np.random.default_rng(seed).uniform() for seed in seeds])
    levels = (offsets[:, None] + np.arange(draws_per_seed)).ravel() / draws_per_seed
    found = np.searchsorted(np.cumsum(exact.distribution[order]), levels)
    return exact.tours[order[np.minimum(found, len(order) - 1)]]


def find_minima(share_of_mean: float = 1.0) -> Minima:
    """Find the local minima under swaps and how they fare when disrupted.

    Parameters
    ----------
    share_of_mean
        The budget as a fraction of the mean cost under π.
    """
    exact = enumerate_costs()
    starts_at_zero = exact.tours[:, 0] == 0
    cycles, costs = exact.tours[starts_at_zero], exact.costs[starts_at_zero]
    nearby = _find_neighbours(cycles)
    budget = share_of_mean * exact.mean
    is_minimum = (costs[nearby] >= costs[:, None]).all(axis=1) & (costs <= budget)
    found = np.flatnonzero(is_minimum)
    within = (costs[nearby[found]] <= budget).mean(axis=1)
    flattest, sharpest = _find_unlike_pair(costs[found], within)
    profiles = [_find_profile(costs, nearby, found[number], budget) for number in (flattest, sharpest)]
    return Minima(
        costs[found],
        (costs[nearby[found]] - costs[found, None]).mean(axis=1),
        within,
        budget,
        flattest,
        sharpest,
        np.asarray(profiles),
    )


def _find_unlike_pair(costs: np.ndarray, within: np.ndarray) -> tuple[int, int]:
    """The two of nearly the same cost whose shares differ most, the larger share first."""
    is_alike = np.abs(costs[:, None] - costs) <= SAME_COST
    first, second = np.unravel_index(
        np.argmax(np.where(is_alike, within[:, None] - within, -1)), is_alike.shape
    )
    return int(first), int(second)


def _find_neighbours(cycles: np.ndarray) -> np.ndarray:
    """Numbers of the cycles one swap away, cycle × swap."""
    codes = cycles @ 8 ** np.arange(8)[::-1]  # in increasing order, as permutations come
    nearby = []
    for first, second in itertools.combinations(range(8), 2):
        swapped = cycles.copy()
        swapped[:, [first, second]] = cycles[:, [second, first]]
        again = canonical_tours(swapped, directed=True)
        nearby.append(np.searchsorted(codes, again @ 8 ** np.arange(8)[::-1]))
    return np.stack(nearby, axis=1)


def _find_profile(costs: np.ndarray, nearby: np.ndarray, start: int, budget: float) -> np.ndarray:
    """Quantiles of the cost, and share within the budget, by the number of swaps away."""
    distance = np.full(len(costs), -1)
    distance[start] = 0
    for swaps in range(1, MAX_SWAPS + 1):
        reached = np.unique(nearby[distance == swaps - 1])
        distance[reached[distance[reached] < 0]] = swaps
    shells = [costs[distance == swaps] for swaps in range(MAX_SWAPS + 1)]
    return np.asarray([[*np.quantile(shell, [0.1, 0.5, 0.9]), (shell <= budget).mean()] for shell in shells])
