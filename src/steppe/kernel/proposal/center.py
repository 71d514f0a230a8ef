"""Moves of the center: a Langevin step, or a refresh that keeps its conditional exactly."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain import Domain
from steppe.errors import RecipeError
from steppe.kernel import noise
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys, SharedKeys
from steppe.kernel.state import State
from steppe.pytree import is_concrete, piece


class Gaussian(NamedTuple):
    """Independent normals of one variance around a mean, on the columns that exist."""

    domain: Domain
    mean: Array
    variance: Array | float

    def sample(self, keys: Keys | SharedKeys) -> Array:
        """Draw a center."""
        white = noise.normal(keys.center, self.mean.shape)
        return self.mean + jnp.sqrt(self.variance) * self._existing(white)

    def terms(self, value: Array) -> list[Array]:
        """Log-density of a center, one term per coordinate."""
        norm = 0.5 * jnp.log(2 * jnp.pi * self.variance)
        return [self._existing((value - self.mean) ** 2 * (-0.5 / self.variance) - norm)]

    def _existing(self, array: Array) -> Array:
        # Padded columns of a ragged one-hot domain hold no variable: no noise, no density.
        if not self.domain.is_ragged:
            return array
        return array * self.domain.level_mask.astype(np.float32)


class CenterMove:
    """What all moves of the center alone share."""

    moves = ("center",)

    def move(self, landscape: Landscape, state: State, value: Array) -> State:
        """Put the center there; position, value and gradient are untouched."""
        return state._replace(center=value)

    def reverse(self, old: State, value: Array) -> Array:
        """Return the value that leads back: the old center."""
        return old.center


@piece
class CenterLangevin(CenterMove):
    """The paper's center step: `a + (α_a/2)(θ − a)/η + √α_a ξ`, drift at the old position.

    Notation: paper Algorithm 1. Not exact: alone, its variance about a fixed position is
    `η / (1 − α_a/(4η))`; it needs Metropolis, or `α_a < 4η` and a bias.

    Attributes
    ----------
    center_step_size
        `α_a`. Smaller values make the center lag behind the position for `2η/α_a` steps.
    """

    center_step_size: Array | float

    is_exact = False

    def distribution(self, landscape: Landscape, state: State) -> Gaussian:
        """Gaussian step along the pull of the position."""
        coupling = landscape.coupling
        rate = 0.5 * self.center_step_size / coupling.center_variance
        mean = state.center + rate * (coupling.anchor(state.position) - state.center)
        return Gaussian(landscape.domain, mean, self.center_step_size)


@piece
class CenterRefresh(CenterMove):
    """Ornstein–Uhlenbeck refresh: `θ + ρ(a − θ) + √(η(1 − ρ²)) ξ`, exact for `N(θ, η I)`.

    Attributes
    ----------
    persistence
        `ρ` in [0, 1): how much of the old deviation is kept. `None` draws the center afresh, and leaves
        no number to set.
    """

    persistence: Array | float | None = None

    is_exact = True

    def distribution(self, landscape: Landscape, state: State) -> Gaussian:
        """Gaussian that keeps the conditional law of the center."""
        anchor = landscape.coupling.anchor(state.position)
        if self.persistence is None:
            return Gaussian(landscape.domain, anchor, landscape.coupling.center_variance)
        kept = self.persistence * (state.center - anchor)
        variance = (1 - self.persistence**2) * landscape.coupling.center_variance
        return Gaussian(landscape.domain, anchor + kept, variance)


def check_center_is_stable(name: str, center_step_size: Any, coupling_variance: Any) -> None:
    """Refuse an uncorrected center step that diverges: `α_a ≥ 4η`."""
    numbers = (center_step_size, coupling_variance)
    if is_concrete(numbers) and float(center_step_size) >= 4 * float(coupling_variance):
        raise RecipeError(
            f"`{name}(center_step_size={float(center_step_size):g}, "
            f"coupling_variance={float(coupling_variance):g})`: uncorrected, the center multiplies its "
            "distance to the position by 1 − α_a/(2η) in every step and diverges for "
            f"α_a ≥ 4η = {4 * float(coupling_variance):g}. Use a smaller `center_step_size`."
        )
