"""Robbins and Monro's search for the value of a number at which something that rises with it is right."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steppe.run.adaptation.dual_averaging import average_iterates

GAIN_DELAY = 10.0
GAIN_DECAY = 0.6


class RobbinsMonro(NamedTuple):
    """The state of a search for `log(value)`.

    Attributes
    ----------
    log_value
        What the next warm-up step uses.
    log_average
        What is used once warm-up is over.
    num_updates
        Number of updates so far.
    """

    log_value: Array
    log_average: Array
    num_updates: Array

    @classmethod
    def start(cls, value: Array) -> "RobbinsMonro":
        """Begin at a given value."""
        log_value = jnp.log(value)
        return cls(log_value, log_value, jnp.zeros_like(log_value))

    def update(self, observed: Array, bounds: tuple[float, float]) -> "RobbinsMonro":
        """Take one observation, divided by the wanted value, into account."""
        num_updates = self.num_updates + 1
        gain = (num_updates + GAIN_DELAY) ** -GAIN_DECAY
        log_value = jnp.clip(self.log_value + gain * (1 - observed), *map(math.log, bounds))
        average = average_iterates(self.log_average, log_value, num_updates)
        return RobbinsMonro(log_value, average, num_updates)
