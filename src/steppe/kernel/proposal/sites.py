"""Independent draws at every site: one flip logit on two-level sites, a softmax row otherwise."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel import noise
from steppe.kernel.noise import Keys, SharedKeys
from steppe.numerics import log_sum_exp, softplus


class Flips(NamedTuple):
    """Every two-level site flips on its own, with probability `sigmoid(logits)`."""

    domain: Domain
    position: Array
    logits: Array

    def sample(self, keys: Keys | SharedKeys) -> Array:
        """Draw a position."""
        return self.domain.flip(self.position, noise.flips(keys.position, self.logits))

    def terms(self, value: Array) -> list[Array]:
        """Log-probability of a position, one term per site: `log_sigmoid(±logit)`."""
        flipped = self.domain.differs(value, self.position)
        return [jnp.where(flipped, self.logits, 0) - softplus(self.logits)]


class Levels(NamedTuple):
    """Every site draws its level on its own, with probability `softmax(logits)` along a row."""

    domain: Domain
    logits: Array

    def sample(self, keys: Keys | SharedKeys) -> Array:
        """Draw a position."""
        return self.domain.from_levels(noise.categorical(keys.position, self.logits))

    def terms(self, value: Array) -> list[Array]:
        """Log-probability of a position, one term per site."""
        levels = self.domain.to_levels(value).astype(jnp.int32)
        chosen = jnp.take_along_axis(self.logits, levels[:, None], axis=-1)[:, 0]
        return [chosen - log_sum_exp(self.logits)]
