"""Step-size adaptation in warm-up: dual averaging of the acceptance rate, one chain at a time.

Each chain adapts alone, so that what it does never depends on how many others there are. After warm-up
the averaged step size is frozen.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

# The acceptance rate adapted to. 0.574 is optimal for Langevin proposals in high dimension; on ring
# Ising models the best measured step sizes of discrete Langevin accepted between 0.47 and 0.71.
TARGET_ACCEPTANCE = 0.574

SHRINKAGE = 0.05
DELAY = 10.0
FORGETTING = 0.75
LEANING = 10.0
# In units of the shortest squared move. Beyond, the penalty on a move is nothing, or forbids all of them;
# a target of a few sites may accept more than is wanted at any step size.
RANGE = (1e-2, 1e2)


class DualAveraging(NamedTuple):
    """Nesterov's dual averaging of `log(step size)` (Hoffman and Gelman 2014, section 3.2).

    Attributes
    ----------
    log_step
        What the next warm-up step uses.
    log_average
        What is used once warm-up is over.
    error
        Running average of (wanted − observed) acceptance.
    anchor
        The point `log_step` shrinks towards.
    num_updates
        Number of updates so far.
    """

    log_step: Array
    log_average: Array
    error: Array
    anchor: Array
    num_updates: Array

    @classmethod
    def start(cls, step_size: Array) -> "DualAveraging":
        """Begin at a given step size, leaning towards larger ones."""
        log_step = jnp.log(step_size)
        zero = jnp.zeros_like(log_step)
        return cls(log_step, log_step, zero, log_step + jnp.log(LEANING), zero)

    def update(self, acceptance_rate: Array, squared_unit: float) -> "DualAveraging":
        """Take the acceptance rate of one step into account.

        Parameters
        ----------
        acceptance_rate
            Of the step just made with `exp(log_step)`.
        squared_unit
            Shortest squared move of the domain, in which the range of step sizes is meant.
        """
        num_updates = self.num_updates + 1
        weight = 1 / (num_updates + DELAY)
        error = (1 - weight) * self.error + weight * (TARGET_ACCEPTANCE - acceptance_rate)
        log_step = self.anchor - jnp.sqrt(num_updates) / SHRINKAGE * error
        log_step = jnp.clip(log_step, *(jnp.log(bound * squared_unit) for bound in RANGE))
        mixed = num_updates**-FORGETTING
        log_average = mixed * log_step + (1 - mixed) * self.log_average
        return DualAveraging(log_step, log_average, error, self.anchor, num_updates)
