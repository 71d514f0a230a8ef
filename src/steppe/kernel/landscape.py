"""The target bent by a coupling: everything a block may ask about it.

The state caches the user's value and gradient only. Coupling terms are closed forms of position and
center, so a move of the center never calls the user's function, and a move of the position calls it
once.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel.coupling import Coupling
from steppe.kernel.state import State
from steppe.pytree import piece
from steppe.target import Target


@piece
class Landscape:
    """`U(θ)` plus the coupling between position and center."""

    target: Target
    coupling: Coupling

    @property
    def domain(self) -> Domain:
        """Where the position lives."""
        return self.target.domain

    def at(self, position: Array, center: Array | None) -> State:
        """Evaluate value and gradient at a position: the one model evaluation of a step."""
        value, gradient = self.target.value_and_grad(position)
        return State(position, center, value, gradient)

    def slope(self, state: State) -> Array:
        """Gradient of the bent landscape with respect to the position."""
        return state.gradient + self.coupling.pull(state.position, state.center)

    def coupling_terms(self, state: State) -> Array:
        """Coupling log-density at a state, term by term."""
        return self.coupling.terms(state.position, state.center)

    def log_joint(self, state: State) -> Array:
        """`U(θ) − |θ − a|² / (2η)`."""
        return state.log_density + jnp.sum(self.coupling_terms(state))


def difference_of_sums(first: Any, second: Any) -> Array:
    """`sum(first) − sum(second)` for matching lists of terms, subtracted before they are summed.

    Sums over many sites can be large while their difference is small; in float32 the order matters.
    Terms of equal shape share one reduction.
    """
    by_shape: dict[tuple[int, ...], Array] = {}
    for a, b in zip(first, second, strict=True):
        shape = jnp.shape(a)
        by_shape[shape] = by_shape[shape] + (a - b) if shape in by_shape else a - b
    return jnp.stack([jnp.sum(terms) for terms in by_shape.values()]).sum()
