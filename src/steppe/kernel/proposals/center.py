"""Proposals of the center: a Langevin step, or a refresh that keeps its conditional exactly."""

import equinox as eqx
from jax import Array

from steppe.errors import RecipeError
from steppe.kernel.density import JointDensity
from steppe.kernel.distributions import Gaussian
from steppe.kernel.parameters import FRACTION, POSITIVE, Number, is_relative, optional_parameter, parameter
from steppe.kernel.types import CENTER, ChainState, Distribution, Guided
from steppe.pytree import Relative, is_concrete
from steppe.target.log_density import Target


class CenterProposal(Guided, eqx.Module):
    """What all proposals of the center alone share."""

    moves = CENTER

    def apply(self, density: JointDensity, state: ChainState, value: Array) -> ChainState:
        """Put the center there; position, value and gradient are untouched."""
        return state._replace(center=value)

    def inverse(self, state: ChainState, value: Array) -> Array:
        """Return the value that leads back: the old center."""
        assert state.center is not None
        return state.center

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: none."""
        return 0

    def support(self, density: JointDensity, state: ChainState) -> Array:
        """Refuse: centers are not enumerated."""
        raise RecipeError("A center has no list of values to enumerate.")

    def check(self, name: str, target: Target) -> None:
        """Every domain has a center."""


class CenterLangevin(CenterProposal):
    """The paper's center step: `a + (α_a/2)(θ − a)/η + √α_a ξ`, drift at the old position.

    Notation: paper Algorithm 1. Alone, its variance about a fixed position is `η / (1 − α_a/(4η))`; it needs
    Metropolis, or `α_a < 4η` and a bias.

    Attributes
    ----------
    center_step_size
        `α_a`. Smaller values make the center lag behind the position for `2η/α_a` steps.
    """

    component_id = "center-langevin"

    center_step_size: Number = parameter(POSITIVE)

    is_conditional = False

    def at(self, density: JointDensity, state: ChainState) -> Gaussian:
        """Gaussian step along the pull of the position."""
        assert state.center is not None
        coupling = density.coupling
        rate = 0.5 * self.center_step_size / coupling.center_variance
        mean = state.center + rate * (coupling.anchor(state.position) - state.center)
        return Gaussian(density.domain, mean, self.center_step_size)


class CenterRefresh(CenterProposal):
    """Ornstein–Uhlenbeck refresh: `θ + ρ(a − θ) + √(η(1 − ρ²)) ξ`, which keeps `N(θ, η I)`.

    Attributes
    ----------
    persistence
        `ρ` in [0, 1): how much of the old deviation is kept. `None` draws the center afresh from its
        conditional, and leaves no number to set.
    """

    component_id = "center-refresh"

    persistence: Number | None = optional_parameter(FRACTION)

    is_conditional = True

    def at(self, density: JointDensity, state: ChainState) -> Distribution[Array]:
        """Distribution that keeps the conditional of the center."""
        fresh = density.coupling.center_given(density.domain, state.position)
        if self.persistence is None:
            return fresh
        assert state.center is not None
        anchor = density.coupling.anchor(state.position)
        kept = self.persistence * (state.center - anchor)
        variance = (1 - self.persistence**2) * density.coupling.center_variance
        return Gaussian(density.domain, anchor + kept, variance)


def check_center_is_stable(
    name: str, center_step_size: Number | Relative, coupling_variance: Number | Relative
) -> None:
    """Refuse an unadjusted center step that diverges: `α_a ≥ 4η`."""
    if is_relative(center_step_size) or is_relative(coupling_variance):
        return  # not known before a domain is
    if not is_concrete((center_step_size, coupling_variance)):
        return
    if float(center_step_size) >= 4 * float(coupling_variance):
        raise RecipeError(
            f"`{name}(center_step_size={float(center_step_size):g}, "
            f"coupling_variance={float(coupling_variance):g})`: unadjusted, the center multiplies its "
            "distance to the position by 1 − α_a/(2η) in every step and diverges for "
            f"α_a ≥ 4η = {4 * float(coupling_variance):g}. Use a smaller `center_step_size`."
        )
