"""Distributions a proposal draws from: flips, levels and lattice points of sites, Gaussian centers."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain.base import Domain
from steppe.kernel.keys import DrawKeys, SharedKeys
from steppe.kernel.parameters import Number
from steppe.numerics import log_sum_exp, softplus
from steppe.random import draws


class Flips(NamedTuple):
    """Every two-level site flips on its own, with probability `sigmoid(logits)`."""

    domain: Domain
    position: Array
    logits: Array

    def sample(self, keys: DrawKeys) -> Array:
        """Draw a position."""
        return self.domain.flip(self.position, draws.flips(keys.position, self.logits))

    def log_prob_terms(self, value: Array) -> list[Array]:
        """Log-probability of a position, one term per site: `log_sigmoid(±logit)`."""
        flipped = self.domain.differs(value, self.position)
        return [jnp.where(flipped, self.logits, 0) - softplus(self.logits)]


class Levels(NamedTuple):
    """Every site draws its level on its own, with probability `softmax(logits)` along a row."""

    domain: Domain
    logits: Array

    def sample(self, keys: DrawKeys) -> Array:
        """Draw a position."""
        return self.domain.from_levels(draws.categorical(keys.position, self.logits))

    def log_prob_terms(self, value: Array) -> list[Array]:
        """Log-probability of a position, one term per site."""
        levels = self.domain.to_levels(value).astype(jnp.int32)
        chosen = jnp.take_along_axis(self.logits, levels[:, None], axis=-1)[:, 0]
        return [chosen - log_sum_exp(self.logits)]


class LatticeCenter(NamedTuple):
    """Independent draws of every site of a center that lives on the levels of the domain."""

    domain: Domain
    logits: Array

    def sample(self, keys: DrawKeys) -> Array:
        """Draw a center."""
        own = SharedKeys(keys.center, keys.center)
        if not self.domain.is_two_level:
            return Levels(self.domain, self.logits).sample(own)
        lowest = self.domain.from_levels(jnp.zeros(self.domain.num_sites, jnp.int32))
        return Flips(self.domain, lowest, self.logits[:, 1] - self.logits[:, 0]).sample(own)

    def log_prob_terms(self, value: Array) -> list[Array]:
        """Log-probability of a center, one term per site."""
        return Levels(self.domain, self.logits).log_prob_terms(value)


class Gaussian(NamedTuple):
    """Independent normals of one variance around a mean, on the columns that exist."""

    domain: Domain
    mean: Array
    variance: Number

    def sample(self, keys: DrawKeys) -> Array:
        """Draw a center."""
        white = draws.normal(keys.center, self.mean.shape)
        return self.mean + jnp.sqrt(self.variance) * mask_padding(self.domain, white)

    def log_prob_terms(self, value: Array) -> list[Array]:
        """Log-density of a center, one term per coordinate."""
        norm = 0.5 * jnp.log(2 * jnp.pi * self.variance)
        return [mask_padding(self.domain, (value - self.mean) ** 2 * (-0.5 / self.variance) - norm)]


def mask_padding(domain: Domain, array: Array) -> Array:
    """Put zeros where a padded coordinate holds no variable: no noise, no density."""
    mask = domain.coordinate_mask
    return array if mask is None else array * mask.astype(np.float32)
