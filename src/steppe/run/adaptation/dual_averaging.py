"""Dual averaging of a step size (Nesterov 2009; Hoffman and Gelman 2014, section 3.2)."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

# Hoffman and Gelman's γ, t₀, κ, and the factor 10 of μ = log(10 ε₁).
GAMMA = 0.05
T0 = 10.0
KAPPA = 0.75
MU_FACTOR = 10.0


class DualAveraging(NamedTuple):
    """The state of dual averaging of `log(step size)`.

    Attributes
    ----------
    log_value
        What the next warm-up step uses.
    log_average
        What is used once warm-up is over.
    error
        Running average of (wanted − observed) acceptance.
    mu
        `μ`, the point `log_value` shrinks towards.
    num_updates
        Number of updates so far.
    """

    log_value: Array
    log_average: Array
    error: Array
    mu: Array
    num_updates: Array

    @classmethod
    def start(cls, step_size: Array) -> "DualAveraging":
        """Begin at a given step size, leaning towards larger ones."""
        log_step = jnp.log(step_size)
        zero = jnp.zeros_like(log_step)
        return cls(log_step, log_step, zero, log_step + jnp.log(MU_FACTOR), zero)

    def update(self, observed: Array, wanted: float, bounds: tuple[float, float]) -> "DualAveraging":
        """Take one observation into account.

        Parameters
        ----------
        observed
            Acceptance rate of the step just made with `exp(log_value)`.
        wanted
            The wanted acceptance rate.
        bounds
            Least and largest step size.
        """
        num_updates = self.num_updates + 1
        weight = 1 / (num_updates + T0)
        error = (1 - weight) * self.error + weight * (wanted - observed)
        log_step = self.mu - jnp.sqrt(num_updates) / GAMMA * error
        log_step = jnp.clip(log_step, *map(math.log, bounds))
        average = average_iterates(self.log_average, log_step, num_updates)
        return DualAveraging(log_step, average, error, self.mu, num_updates)


def average_iterates(average: Array, newest: Array, num_updates: Array) -> Array:
    """Weighted average `t^−κ x + (1 − t^−κ) x̄`, which forgets the first iterates."""
    weight = num_updates**-KAPPA
    return weight * newest + (1 - weight) * average
