"""Running statistics of chains whose draws were not kept."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from steppe.run.observers import Observers


class RunningStatistics(NamedTuple):
    """What was kept of every chain at fixed memory; the first axis is the chain.

    Attributes
    ----------
    num_seen
        Number of kept draws they are made of.
    mean, variance
        Of the position, element by element; the variance is unbiased, and NaN after a single draw. For an
        ensemble, both are those of the best replica of each draw.
    best_log_density, best_position
        The best state met.
    visits
        How often each state was met, in the order of `domain.enumerate()`; `None` on large domains.
    """

    num_seen: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    best_log_density: np.ndarray
    best_position: np.ndarray
    visits: np.ndarray | None

    @classmethod
    def of(cls, observers: "Observers", num_chains: int) -> "RunningStatistics":
        """Gather observers with axes (block, lane, …) by chain, idle lanes dropped."""

        def by_chain(values: object) -> np.ndarray:
            array = np.asarray(values)
            return array.reshape(-1, *array.shape[2:])[:num_chains]

        num_seen, squares = by_chain(observers.num_seen), by_chain(observers.sum_of_squares)
        degrees = np.where(num_seen > 1, num_seen - 1.0, np.nan)
        return cls(
            num_seen=num_seen,
            mean=by_chain(observers.mean),
            variance=squares / degrees.reshape(-1, *(1,) * (squares.ndim - 1)),
            best_log_density=by_chain(observers.best_log_density),
            best_position=by_chain(observers.best_position),
            visits=None if observers.visits is None else by_chain(observers.visits),
        )
