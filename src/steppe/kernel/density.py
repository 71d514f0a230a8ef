"""The joint density a step sees: `β U(θ)`, minus a penalty, plus the coupling between position and center.

The state caches the user's value and gradient only. Coupling terms are closed forms of position and
center, so a move of the center never calls the user's function, and a move of the position calls it
once.

Notation of the penalty: the penalised distribution is `exp{U(θ) − λ R(θ)}` with the roughness `R` the mean of
`|ΔU|` over all one-site changes that exist. `R` is small on plateaus and large on peaks: `λ > 0` moves mass
to flat modes.
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.domain.base import Domain
from steppe.kernel.parameters import NOT_NEGATIVE, Number, parameter
from steppe.kernel.types import ChainState, Coupling
from steppe.numerics import total
from steppe.target.log_density import Target


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


def evaluations_per_site_table(target: Target) -> int:
    """Evaluations of one table of all one-site differences: every entry, and the state itself."""
    return 1 if target.has_differences else target.domain.num_sites * target.domain.max_levels + 1


Penalty = NoPenalty | RoughnessPenalty


class JointDensity(eqx.Module):
    """Everything a block may ask about the density it leaves invariant.

    Attributes
    ----------
    target
        Whose log-density `U` is sampled.
    coupling
        What ties a center to the position.
    penalty
        What is subtracted from `β U` at a state.
    inverse_temperature
        `β`.
    field
        Log-weights `ℓ` of the levels of every site, (site, level): `Σ_i ℓ_i(θ_i)` is added to `β U`. `None`
        for none, which is all that a block without `takes_field` may be given.
    """

    target: Target
    coupling: Coupling
    penalty: Penalty = NoPenalty()
    inverse_temperature: Number = 1.0
    field: Array | None = None

    @property
    def domain(self) -> Domain:
        """Where the position lives."""
        return self.target.domain

    @property
    def evaluations(self) -> int:
        """What evaluating a state costs: value and gradient, and what the penalty asks for."""
        return 1 + self.penalty.count_evaluations(self.target)

    def evaluate(self, position: Array, center: Array | None, *, with_gradient: bool = True) -> ChainState:
        """Evaluate a position, with its gradient unless it is not used: the one evaluation of a step."""
        if with_gradient:
            value, gradient = self.target.value_and_grad(position)
        else:
            value, gradient = self.target.log_density(position), None
        return ChainState(position, center, value, gradient, self.penalty.measure(self.target, position))

    def gradient(self, state: ChainState) -> Array:
        """Gradient of `β U` and the coupling, which guides proposals; a penalty is left to the decision.

        So is a field on more than two ordered levels, which has no gradient.
        """
        assert state.gradient is not None
        gradient = self.inverse_temperature * state.gradient + self.coupling.pull(
            state.position, state.center
        )
        if self.field is None:
            return gradient
        return gradient + field_gradient(self.domain, self.field)

    def change(self, new: ChainState, old: ChainState) -> Array:
        """Change of `β U` minus penalty between two states; differences before products and sums."""
        rise = self.inverse_temperature * (new.log_density - old.log_density)
        rise = rise - self.penalty.change(self.domain, new, old)
        if self.field is None:
            return rise
        return rise + total(
            field_terms(self.domain, self.field, new.position)
            - field_terms(self.domain, self.field, old.position)
        )

    def coupling_terms(self, state: ChainState) -> Array:
        """Coupling log-density at a state, term by term."""
        return self.coupling.log_density_terms(state.position, state.center)


def field_terms(domain: Domain, field: Array, position: Array) -> Array:
    """`ℓ_i(θ_i)` of every site."""
    levels = domain.to_levels(position)
    if domain.is_two_level:
        return jnp.where(levels == 0, field[:, 0], field[:, 1])
    return jnp.take_along_axis(field, levels[:, None].astype(jnp.int32), axis=1)[:, 0]


def field_gradient(domain: Domain, field: Array) -> Array:
    """Gradient of a field where it is linear in a position: on two levels, or one-hot; else 0."""
    if domain.is_two_level and len(domain.shape) == 1:
        low, high = (domain.from_levels(jnp.full(domain.num_sites, level)) for level in (0, 1))
        return (field[:, 1] - field[:, 0]) / (high - low)
    return field if domain.shape == field.shape else jnp.zeros(domain.shape, field.dtype)


def subtract_sums(first: Sequence[Array], second: Sequence[Array]) -> Array:
    """`sum(first) − sum(second)` for matching lists of terms, subtracted before they are summed.

    Sums over many sites can be large while their difference is small; in float32 the order matters.
    Terms of equal shape share one reduction.
    """
    by_shape: dict[tuple[int, ...], Array] = {}
    for a, b in zip(first, second, strict=True):
        shape = jnp.shape(a)
        by_shape[shape] = by_shape[shape] + (a - b) if shape in by_shape else a - b
    return jnp.asarray(sum(map(total, map(jnp.ravel, by_shape.values()))))
