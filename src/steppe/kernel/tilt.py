"""Which term of the state alone bends the landscape: none, or a price on rough neighbourhoods.

Notation: the tilted law is `exp{U(θ) − λ R(θ)}` with `R` the mean of `|ΔU|` over all one-site changes that
exist. `R` is small on plateaus and large on peaks, so `λ > 0` moves mass to flat modes.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel.cost import evaluations_per_site_table
from steppe.kernel.state import State
from steppe.pytree import piece, static
from steppe.target import Target


@piece
class NoTilt:
    """The null tilt."""

    def remember(self, target: Target, position: Array) -> Any:
        """Return nothing to remember."""
        return None

    def price(self, domain: Domain, state: State) -> Array:
        """No price."""
        return jnp.zeros((), state.log_density.dtype)

    def evaluations(self, target: Target) -> int:
        """Evaluations beyond value and gradient: none."""
        return 0

    def rise(self, domain: Domain, new: State, old: State) -> Array:
        """No price."""
        return self.price(domain, new)


@piece
class RoughnessTilt:
    """The price `λ R` on the mean absolute one-site difference.

    Attributes
    ----------
    strength
        `λ`. 0 leaves the law alone.
    differences
        `"gradient"`: `R` is the mean of `|gradient · jump|`, which costs nothing and is the true one where
        `U` is linear in each site. `"exact"`: `R` from the target's table of differences.
    """

    strength: Array | float
    differences: str = static(default="gradient")

    def remember(self, target: Target, position: Array) -> Any:
        """Keep `R` of a state beside it when it does not follow from the gradient."""
        if self.differences == "gradient":
            return None
        return mean_roughness(target.domain, position, target.differences(position))

    def price(self, domain: Domain, state: State) -> Array:
        """`λ R` of a state."""
        return self.strength * self.roughness(domain, state)

    def evaluations(self, target: Target) -> int:
        """Evaluations beyond value and gradient: a table, if `R` is made from one."""
        return 0 if self.differences == "gradient" else evaluations_per_site_table(target)

    def rise(self, domain: Domain, new: State, old: State) -> Array:
        """`λ (R(new) − R(old))`."""
        return self.strength * (self.roughness(domain, new) - self.roughness(domain, old))

    def roughness(self, domain: Domain, state: State) -> Array:
        """`R` of a state."""
        if self.differences == "exact":
            return state.cache
        if domain.is_two_level:
            return jnp.mean(jnp.abs(domain.flip_slopes(state.position, state.gradient)))
        return mean_roughness(domain, state.position, domain.slopes(state.position, state.gradient))


def mean_roughness(domain: Domain, position: Array, table: Array) -> Array:
    """Mean of `|ΔU|` over the one-site changes that exist and lead to a valid state."""
    is_change = domain.squared_jumps(position) > 0
    counts = domain.level_mask & is_change & jnp.isfinite(table)
    return jnp.sum(jnp.where(counts, jnp.abs(table), 0)) / jnp.maximum(jnp.sum(counts), 1)


Tilt = NoTilt | RoughnessTilt
