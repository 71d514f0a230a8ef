"""Penalties: nothing, or a price on rough neighbourhoods, subtracted from the log-density of a state.

Notation: the penalised distribution is `exp{U(θ) − λ R(θ)}` with the roughness `R` the mean of `|ΔU|` over
all one-site changes that exist. `R` is small on plateaus and large on peaks, so `λ > 0` moves mass to flat
modes.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel.cost import evaluations_per_site_table
from steppe.kernel.parameters import NOT_NEGATIVE, Number, parameter
from steppe.kernel.types import ChainState
from steppe.target import Target


class NoPenalty(eqx.Module):
    """The null penalty."""

    component_id = "no-penalty"

    is_null = True

    def measure(self, target: Target, position: Array) -> None:
        """Return nothing to keep."""

    def at(self, domain: Domain, state: ChainState) -> Array:
        """No penalty."""
        return jnp.zeros((), state.log_density.dtype)

    def count_evaluations(self, target: Target) -> int:
        """Evaluations beyond value and gradient: none."""
        return 0

    def change(self, domain: Domain, new: ChainState, old: ChainState) -> Array:
        """No penalty."""
        return self.at(domain, new)


class RoughnessPenalty(eqx.Module):
    """The penalty `λ R` on the mean absolute single-site difference.

    Attributes
    ----------
    strength
        `λ`. 0 leaves the distribution alone.
    differences
        `"gradient"`: `R` is the mean of `|gradient · jump|`, which costs nothing and is the true one where
        `U` is linear in each site. `"exact"`: `R` from the target's table of differences.
    """

    component_id = "roughness-penalty"

    strength: Number = parameter(NOT_NEGATIVE)
    differences: Literal["gradient", "exact"] = eqx.field(static=True, default="gradient")

    is_null = False

    def measure(self, target: Target, position: Array) -> Array | None:
        """Return `R` to be kept beside a state when it does not follow from the gradient."""
        if self.differences == "gradient":
            return None
        return mean_roughness(target.domain, position, target.differences(position))

    def at(self, domain: Domain, state: ChainState) -> Array:
        """`λ R` of a state."""
        return self.strength * self.roughness(domain, state)

    def count_evaluations(self, target: Target) -> int:
        """Evaluations beyond value and gradient: a table, if `R` is made from one."""
        return 0 if self.differences == "gradient" else evaluations_per_site_table(target)

    def change(self, domain: Domain, new: ChainState, old: ChainState) -> Array:
        """`λ (R(new) − R(old))`."""
        return self.strength * (self.roughness(domain, new) - self.roughness(domain, old))

    def roughness(self, domain: Domain, state: ChainState) -> Array:
        """`R` of a state."""
        if state.roughness is not None:
            return state.roughness
        assert state.gradient is not None
        if domain.is_two_level:
            return jnp.mean(jnp.abs(domain.flip_slopes(state.position, state.gradient)))
        return mean_roughness(domain, state.position, domain.slopes(state.position, state.gradient))


def mean_roughness(domain: Domain, position: Array, table: Array) -> Array:
    """Mean of `|ΔU|` over the one-site changes that exist and lead to a valid state."""
    is_change = domain.squared_jumps(position) > 0
    counts = domain.level_mask & is_change & jnp.isfinite(table)
    return jnp.sum(jnp.where(counts, jnp.abs(table), 0)) / jnp.maximum(jnp.sum(counts), 1)


Penalty = NoPenalty | RoughnessPenalty
