"""What can be known of a chain at fixed memory, without keeping its draws."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.domain.base import Domain
from steppe.kernel.types import SamplerState

MAX_COUNTED_STATES = 4096


class Observers(NamedTuple):
    """Running statistics of one chain, updated at every kept step after warm-up.

    Attributes
    ----------
    num_seen
        Number of kept steps.
    mean, sum_of_squares
        Running mean of the position and sum of squared deviations from it (Welford).
    best_log_density, best_position
        The best state met at a kept step.
    visits
        How often each state of a small domain was met, in the order of `domain.enumerate()`; else `None`.
    """

    num_seen: Array
    mean: Array
    sum_of_squares: Array
    best_log_density: Array
    best_position: Array
    visits: Any

    @classmethod
    def start(cls, domain: Domain) -> "Observers":
        """Nothing seen yet."""
        zeros = jnp.zeros(domain.shape)
        is_small = domain.num_states <= MAX_COUNTED_STATES
        return cls(
            num_seen=jnp.zeros((), jnp.int32),
            mean=zeros,
            sum_of_squares=zeros,
            best_log_density=jnp.asarray(-jnp.inf, zeros.dtype),
            best_position=zeros,
            visits=jnp.zeros(domain.num_states, jnp.int32) if is_small else None,
        )

    def update(self, domain: Domain, state: SamplerState, counts: Array) -> "Observers":
        """Look at a state, if it counts."""
        best, position, value = state.position, state.position, state.log_density
        if (
            value.ndim
        ):  # an ensemble: its first replica stands for the distribution, its best replica for the record
            best, position, value = best[jnp.argmax(value)], position[0], jnp.max(value)
        num_seen = self.num_seen + 1
        step = position - self.mean
        mean = self.mean + step / num_seen
        is_better = value > self.best_log_density
        visits = self.visits
        updated = Observers(
            num_seen=num_seen,
            mean=mean,
            sum_of_squares=self.sum_of_squares + step * (position - mean),
            best_log_density=jnp.maximum(value, self.best_log_density),
            best_position=jnp.where(is_better, best, self.best_position),
            visits=None if visits is None else visits.at[domain.index(position)].add(1),
        )
        return jax.tree.map(lambda new, old: jnp.where(counts, new, old), updated, self)
