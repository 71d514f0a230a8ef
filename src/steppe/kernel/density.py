"""The joint density a step sees: `β U(θ)`, minus a penalty, plus the coupling between position and center.

The state caches the user's value and gradient only. Coupling terms are closed forms of position and
center, so a move of the center never calls the user's function, and a move of the position calls it
once.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel.parameters import Number
from steppe.kernel.penalty import NoPenalty, Penalty
from steppe.kernel.types import ChainState, Coupling
from steppe.numerics import total
from steppe.target import Target


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
    """

    target: Target
    coupling: Coupling
    penalty: Penalty = NoPenalty()
    inverse_temperature: Number = 1.0

    @property
    def domain(self) -> Domain:
        """Where the position lives."""
        return self.target.domain

    @property
    def evaluations(self) -> int:
        """What evaluating a state costs: value and gradient, and what the penalty asks for."""
        return 1 + self.penalty.count_evaluations(self.target)

    def evaluate(self, position: Array, center: Array | None) -> ChainState:
        """Evaluate value and gradient at a position: the one model evaluation of a step."""
        value, gradient = self.target.value_and_grad(position)
        return ChainState(position, center, value, gradient, self.penalty.measure(self.target, position))

    def gradient(self, state: ChainState) -> Array:
        """Gradient of `β U` and the coupling, which guides proposals; a penalty is left to the decision."""
        assert state.gradient is not None
        return self.inverse_temperature * state.gradient + self.coupling.pull(state.position, state.center)

    def change(self, new: ChainState, old: ChainState) -> Array:
        """Change of `β U` minus penalty between two states; differences before products and sums."""
        rise = self.inverse_temperature * (new.log_density - old.log_density)
        return rise - self.penalty.change(self.domain, new, old)

    def coupling_terms(self, state: ChainState) -> Array:
        """Coupling log-density at a state, term by term."""
        return self.coupling.log_density_terms(state.position, state.center)


def subtract_sums(first: Sequence[Array], second: Sequence[Array]) -> Array:
    """`sum(first) − sum(second)` for matching lists of terms, subtracted before they are summed.

    Sums over many sites can be large while their difference is small; in float32 the order matters.
    Terms of equal shape share one reduction.
    """
    by_shape: dict[tuple[int, ...], Array] = {}
    for a, b in zip(first, second, strict=True):
        shape = jnp.shape(a)
        by_shape[shape] = by_shape[shape] + (a - b) if shape in by_shape else a - b
    return jnp.asarray(sum(total(terms.reshape(-1)) for terms in by_shape.values()))
