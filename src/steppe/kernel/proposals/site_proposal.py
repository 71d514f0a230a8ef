"""What proposals that change the levels of sites share: how they weigh changes, and what they refuse.

An informed proposal gives a change the weight `g(t)` of its ratio of densities `t = exp Δ`. With a balancing
function, `g(t) = t g(1/t)`, it is reversible where changes are small (Zanella 2020); Metropolis repairs
the rest, for these and any others. `Δ` is predicted by the gradient, or exact; `"auto"` leaves the choice to
the target.
"""

import dataclasses
from typing import Literal, Self, TypedDict

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.errors import RecipeError
from steppe.kernel.density import JointDensity, evaluations_per_site_table
from steppe.kernel.types import POSITION, ChainState, Guided
from steppe.target.audit import needs_exact_differences
from steppe.target.log_density import Target
from steppe.validation import choice

Balancing = Literal["sqrt", "barker", "min", "max"]
Differences = Literal["auto", "exact", "gradient"]


class Weights(TypedDict):
    """How a proposal weighs changes."""

    balancing: Balancing
    differences: Differences


def choose_weights(name: str, balancing: Balancing, differences: Differences) -> Weights:
    """Return how a recipe weighs changes, refusing words that mean nothing."""
    return {
        "balancing": choice(f"{name}(balancing=...)", balancing, Balancing),
        "differences": choice(f"{name}(differences=...)", differences, Differences),
    }


def log_balance(balancing: Balancing, change: Array) -> Array:
    """`log g(exp Δ)` for `g(t) = √t`, `t/(1 + t)`, `min(1, t)` or `max(1, t)`."""
    if balancing == "barker":
        return jax.nn.log_sigmoid(change)
    if balancing == "min":
        return jnp.minimum(change, 0)
    return jnp.maximum(change, 0) if balancing == "max" else 0.5 * change


def flip_changes(density: JointDensity, state: ChainState, differences: Differences) -> Array:
    """Change of the joint log-density by every flip of a two-level site, predicted or exact."""
    domain, position = density.domain, state.position
    if differences != "exact":
        return domain.flip_slopes(position, density.gradient(state))
    others = 1 - domain.to_levels(position).astype(jnp.int32)
    exact = jnp.take_along_axis(density.target.differences(position), others[:, None], axis=1)[:, 0]
    change = density.inverse_temperature * exact
    if not density.coupling.has_center:
        return change
    return change + domain.flip_slopes(position, density.coupling.pull(position, state.center))


def level_changes(density: JointDensity, state: ChainState, differences: Differences) -> Array:
    """Change of the joint log-density by every level of every site, predicted or exact."""
    domain, position = density.domain, state.position
    if differences != "exact":
        return domain.slopes(position, density.gradient(state))
    change = density.inverse_temperature * density.target.differences(position)
    if not density.coupling.has_center:
        return change
    return change + domain.slopes(position, density.coupling.pull(position, state.center))


class SiteProposal(Guided, eqx.Module):
    """A proposal of positions; its value is the new position unless a subclass says otherwise."""

    moves = POSITION
    is_conditional = False

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: none."""
        return 0

    def check(self, name: str, target: Target) -> None:
        """Refuse domains whose sites cannot be changed one by one."""
        check_sites(name, target, 1)


class WeighedChanges(SiteProposal):
    """What proposals share that weigh changes of single sites.

    Attributes
    ----------
    balancing
        How a change is weighed.
    differences
        Whether changes are predicted by the gradient, or exact.
    """

    balancing: Balancing = eqx.field(static=True, default="sqrt", kw_only=True)
    differences: Differences = eqx.field(static=True, default="gradient", kw_only=True)

    @property
    def uses_gradient(self) -> bool:
        """Whether changes are predicted by the gradient, as far as a target has not decided it yet."""
        return self.differences != "exact"

    def prepare(self, target: Target) -> Self:
        """Decide for a target whether changes are predicted or exact."""
        if self.differences != "auto":
            return self
        chosen = "exact" if needs_exact_differences(target) else "gradient"
        return dataclasses.replace(self, differences=chosen)

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: tables of exact differences, there and back."""
        return 0 if self.uses_gradient else 2 * evaluations_per_site_table(density.target)


class PositionProposal(SiteProposal):
    """A proposal whose value is the new position itself."""

    def apply(self, density: JointDensity, state: ChainState, value: Array) -> ChainState:
        """Evaluate the drawn position; the center stays."""
        return density.evaluate(value, state.center, with_gradient=self.uses_gradient)

    def inverse(self, state: ChainState, value: Array) -> Array:
        """Return the value that leads back: the old position."""
        return state.position

    def support(self, density: JointDensity, state: ChainState) -> Array:
        """All positions, for enumeration on small domains."""
        return density.domain.enumerate()


def check_sites(name: str, target: Target, num_changed: int) -> None:
    """Refuse a domain without single sites, or with fewer than are changed at once."""
    domain = target.domain
    if not domain.is_site_product:
        raise RecipeError(
            f"`{name}` moves single sites, and {domain!r} has none. Use `informed_permutation()`."
        )
    if num_changed > domain.num_sites:
        raise RecipeError(
            f"`{name}` changes {num_changed} sites at once, but {domain!r} has only {domain.num_sites}. "
            f"Use at most {domain.num_sites}."
        )
