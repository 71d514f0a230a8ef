"""What the paper reports of its tours: costs and mismatches over the distinct ordered paths of a run."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steppe.arguments import checked
from steppe.errors import DomainError, RunError
from steppe_edlp.tsp.tour_measures import pairwise_mismatch_count


class Spread(NamedTuple):
    """Where numbers lie.

    Attributes
    ----------
    mean, std
        Mean and population standard deviation.
    smallest, largest
        The ends.
    """

    mean: float
    std: float
    smallest: float
    largest: float


class RouteFigures(NamedTuple):
    """The paper's figures of a run.

    Attributes
    ----------
    num_paths
        Distinct ordered paths; rotations of one cycle count as different.
    cost
        Spread of their costs, each path counted once.
    mismatch_to_best
        Spread of `pairwise_mismatch_count` to the cheapest of them, itself included.
    mismatch_overall
        The same over all pairs of different paths.
    cost_of_draws
        Spread of the costs of all draws, each as often as it was drawn.
    """

    num_paths: int
    cost: Spread
    mismatch_to_best: Spread
    mismatch_overall: Spread
    cost_of_draws: Spread


@checked(RunError, costs=0)
def cost_spread(costs: ArrayLike) -> Spread:
    """Mean, standard deviation and ends of some costs.

    Parameters
    ----------
    costs
        Any array of at least one number.
    """
    values = np.asarray(costs, float).ravel()
    if not values.size:
        raise DomainError("`cost_spread(costs)` needs at least one cost.")
    return Spread(float(values.mean()), float(values.std()), float(values.min()), float(values.max()))


@checked(RunError, tours=1, costs=1)
def route_figures(tours: ArrayLike, costs: ArrayLike) -> RouteFigures:
    """Return the paper's figures of some tours.

    Parameters
    ----------
    tours
        Tours as they were drawn; all leading axes are one batch.
    costs
        Their costs.

    Notes
    -----
    As in the paper, "best" is the cheapest of these tours, not the shortest there is, and every path counts
    once however often it was drawn: these are figures of the set of paths, not of the distribution.
    """
    rows, values = np.asarray(tours), np.asarray(costs, float).ravel()
    rows = rows.reshape(-1, rows.shape[-1])
    if len(rows) != len(values):
        raise DomainError(
            f"`route_figures` needs one cost per tour; got {len(values)} for {len(rows)} tours."
        )
    paths, first = np.unique(rows, axis=0, return_index=True)
    best = paths[np.argmin(values[first])]
    return RouteFigures(
        num_paths=len(paths),
        cost=cost_spread(values[first]),
        mismatch_to_best=cost_spread(pairwise_mismatch_count(paths, best)),
        mismatch_overall=_over_pairs(paths),
        cost_of_draws=cost_spread(values),
    )


def _over_pairs(paths: np.ndarray) -> Spread:
    """Spread over all pairs of different paths, one row of pairs at a time; zero for a single path."""
    if len(paths) == 1:
        return Spread(0.0, 0.0, 0.0, 0.0)
    size = paths.shape[-1] + 1
    counts = np.zeros(size * (size - 1) // 2 + 1, np.int64)
    for row in range(1, len(paths)):
        counts += np.bincount(pairwise_mismatch_count(paths[:row], paths[row]), minlength=len(counts))
    values = np.arange(len(counts))
    mean = (counts * values).sum() / counts.sum()
    variance = (counts * (values - mean) ** 2).sum() / counts.sum()
    met = np.flatnonzero(counts)
    return Spread(float(mean), float(variance**0.5), float(met[0]), float(met[-1]))
