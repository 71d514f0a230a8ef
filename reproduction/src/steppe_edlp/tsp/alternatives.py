"""Robust tours: those of the good ones that have good alternatives close by.

A tour is flat, in the sense of this library, if tours near it cost hardly more. Two numbers say so: how many
other tours of the run lie within a few edges and a small extra cost, and what the tour costs on average
after one random move.
"""

from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Permutation
from steppe.errors import DomainError, RunError
from steppe.kernel.proposals.permutation_moves import differences, is_move
from steppe.run.result import Run
from steppe.targets.tsp import Tsp
from steppe.targets.tsp_bits import TourBits
from steppe.validation import count
from steppe_edlp.tsp.tour_measures import Edges, canonical_tours, distinct_tours


class RobustSolutions(NamedTuple):
    """Tours with the most good alternatives first; the first axis counts tours.

    Attributes
    ----------
    tours
        Distinct cycles in canonical form.
    costs
        Their lengths.
    num_visits
        How often each was drawn.
    num_alternatives
        How many other tours of the run lie within the radius and the tolerance.
    alternative_cost
        Mean cost of those; the tour's own cost where there is none.
    disrupted_cost
        Mean cost after one random move, exact over all moves; `None` without a target.
    """

    tours: np.ndarray
    costs: np.ndarray
    num_visits: np.ndarray
    num_alternatives: np.ndarray
    alternative_cost: np.ndarray
    disrupted_cost: np.ndarray | None


@checked(RunError, tolerance="[0, inf)")
def robust_solutions(
    run: Run,
    top: int = 20,
    radius: int = 4,
    *,
    target: Tsp | TourBits | None = None,
    tolerance: float = 0.02,
) -> RobustSolutions:
    """Return the `top` cheapest distinct tours of a run, the most robust first.

    Parameters
    ----------
    run
        A run on `targets.tsp` or `targets.tsp_paper` whose draws were kept.
    top
        How many tours.
    radius
        An alternative differs in at most this many edges; a 2-opt move changes two, an insertion three.
    target
        What was sampled. Needed for runs in bits, and for `disrupted_cost`; without it every direction is
        taken to matter, and the cost is `−log_density`.
    tolerance
        An alternative costs at most this fraction more.
    """
    if not run.trace.has("levels"):
        raise DomainError("`robust_solutions(run)` needs the draws: sample with `keep='draws'`.")
    levels = run.trace.levels()
    if target is not None:
        # A tour in bits is decoded by the target; that of a permutation is the permutation.
        tours = target.tour(target.domain.from_levels(levels))
        costs = -run.trace.statistic("log_density") / float(target.inverse_temperature)
    elif isinstance(run.trace.domain, Permutation):
        tours, costs = levels, -run.trace.statistic("log_density")
    else:
        raise DomainError(
            f"`robust_solutions(run)` of a run on {run.trace.domain!r} needs `target=...` to read its tours."
        )
    return rank_robust(tours, costs, top, radius, target=target, tolerance=tolerance)


@checked(RunError, tours=1, costs=1, tolerance="[0, inf)")
def rank_robust(
    tours: ArrayLike,
    costs: ArrayLike,
    top: int = 20,
    radius: int = 4,
    *,
    target: Tsp | TourBits | None = None,
    tolerance: float = 0.02,
) -> RobustSolutions:
    """Rank tours that were found in any way; arguments as in `robust_solutions`.

    Parameters
    ----------
    tours, costs
        Tours with all leading axes one batch, and their costs.
    top, radius, target, tolerance
        As in `robust_solutions`.
    """
    for name, value in (("top", top), ("radius", radius)):
        count(name, value, error=DomainError)
    directed = target is None or not target.is_symmetric
    cycles, first, visits = distinct_tours(tours, directed=directed)
    if np.size(costs) != np.prod(np.shape(tours)[:-1]):
        raise DomainError(
            f"`rank_robust` needs one cost per tour; got {np.size(costs)} for {np.shape(tours)}."
        )
    values = np.asarray(costs, float).ravel()[first]
    chosen = np.argsort(values, kind="stable")[:top]
    edges = Edges.of(cycles)
    is_near = [
        (edges.row(index).distance(edges, directed=directed) <= radius)
        & (values <= (1 + tolerance) * values[index])
        for index in chosen
    ]
    num_alternatives = np.asarray([near.sum() - 1 for near in is_near])
    means = np.asarray([_mean_of_others(values, near, i) for near, i in zip(is_near, chosen, strict=True)])
    order = np.lexsort((values[chosen], -num_alternatives))
    kept = chosen[order]
    disrupted = None
    if target is not None and target.has_move_differences:
        disrupted = disrupted_costs(target, cycles[kept])
    return RobustSolutions(
        cycles[kept], values[kept], visits[kept], num_alternatives[order], means[order], disrupted
    )


def disrupted_costs(target: Tsp | TourBits, tours: ArrayLike, moves: str = "two_opt") -> np.ndarray:
    """Mean cost of every tour after one random move.

    Parameters
    ----------
    target
        The problem.
    tours
        A stack of tours.
    moves
        `"two_opt"`, `"swap"` or `"insert"`.
    """
    stack = canonical_tours(tours, directed=True)
    positions = target.domain.from_levels(stack)
    mask = is_move(moves, target.domain.num_sites)
    rises = jax.vmap(lambda position: differences(target, moves, position))(positions)
    mean_rise = np.where(mask, -np.asarray(rises, float), 0).sum(axis=(1, 2)) / mask.sum()
    return np.asarray(target.cost(positions), float) + mean_rise / float(target.inverse_temperature)


def _mean_of_others(values: np.ndarray, is_near: np.ndarray, own: int) -> float:
    others = is_near & (np.arange(len(values)) != own)
    return float(values[others].mean()) if others.any() else float(values[own])
