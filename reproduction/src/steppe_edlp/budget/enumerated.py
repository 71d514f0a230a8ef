"""A problem all of whose solutions are known: which are within a budget, and how far they are apart."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax import Array

from steppe.target import Target


class Instance(NamedTuple):
    """A target, and everything about the solutions within a budget.

    Attributes
    ----------
    target
        In bits.
    log_density
        Of every solution by its number.
    excess
        By how much every solution is worse than the best.
    affordable
        Numbers of the solutions that are little worse.
    distances
        Between two affordable solutions.
    near
        Largest distance of solutions that are near each other.
    number
        From positions to numbers of solutions, −1 where a position is none.
    draw_starts
        From a key and a number to random solutions.
    """

    target: Target
    log_density: np.ndarray
    excess: np.ndarray
    affordable: np.ndarray
    distances: np.ndarray
    near: int
    number: Callable[[np.ndarray], np.ndarray]
    draw_starts: Callable[[Array, int], Array]

    @property
    def num_near(self) -> np.ndarray:
        """Other affordable solutions near each affordable one."""
        return (self.distances <= self.near).sum(axis=1) - 1
