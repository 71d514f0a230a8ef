"""What proposals that change the levels of sites share."""

import equinox as eqx
from jax import Array

from steppe.errors import RecipeError
from steppe.kernel.density import JointDensity
from steppe.kernel.types import POSITION, ChainState
from steppe.target import Target


class SiteProposal(eqx.Module):
    """A proposal of positions; its value is the new position unless a subclass says otherwise."""

    moves = POSITION
    is_conditional = False

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: none."""
        return 0

    def check(self, name: str, target: Target) -> None:
        """Refuse domains whose sites cannot be changed one by one."""
        check_sites(name, target, 1)


class PositionProposal(SiteProposal):
    """A proposal whose value is the new position itself."""

    def apply(self, density: JointDensity, state: ChainState, value: Array) -> ChainState:
        """Evaluate the drawn position; the center stays."""
        return density.evaluate(value, state.center)

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
