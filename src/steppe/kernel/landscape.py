"""The target bent by a coupling, a tilt and a temperature: everything a block may ask about it.

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
from steppe.kernel.tilt import NoTilt, Tilt
from steppe.numerics import total
from steppe.pytree import piece
from steppe.target import Target


@piece
class Landscape:
    """`β U(θ)`, minus a tilt, plus the coupling between position and center."""

    target: Target
    coupling: Coupling
    tilt: Tilt = NoTilt()
    inverse_temperature: Array | float = 1.0

    @property
    def domain(self) -> Domain:
        """Where the position lives."""
        return self.target.domain

    @property
    def evaluations(self) -> int:
        """What evaluating a state costs: value and gradient, and what the tilt asks for."""
        return 1 + self.tilt.evaluations(self.target)

    def at(self, position: Array, center: Array | None) -> State:
        """Evaluate value and gradient at a position: the one model evaluation of a step."""
        value, gradient = self.target.value_and_grad(position)
        return State(position, center, value, gradient, self.tilt.remember(self.target, position))

    def slope(self, state: State) -> Array:
        """Gradient of `β U` and the coupling, which guides proposals; a tilt is left to the decision."""
        return self.inverse_temperature * state.gradient + self.coupling.pull(state.position, state.center)

    def gain(self, new: State, old: State) -> Array:
        """Difference of `β U` minus tilt between two states; differences before products and sums."""
        rise = self.inverse_temperature * (new.log_density - old.log_density)
        return rise - self.tilt.rise(self.domain, new, old)

    def coupling_terms(self, state: State) -> Array:
        """Coupling log-density at a state, term by term."""
        return self.coupling.terms(state.position, state.center)


def difference_of_sums(first: Any, second: Any) -> Array:
    """`sum(first) − sum(second)` for matching lists of terms, subtracted before they are summed.

    Sums over many sites can be large while their difference is small; in float32 the order matters.
    Terms of equal shape share one reduction.
    """
    by_shape: dict[tuple[int, ...], Array] = {}
    for a, b in zip(first, second, strict=True):
        shape = jnp.shape(a)
        by_shape[shape] = by_shape[shape] + (a - b) if shape in by_shape else a - b
    return jnp.asarray(sum(total(terms.reshape(-1)) for terms in by_shape.values()))
