"""Which extra variable bends the landscape: none, or a center tied to the position by a Gaussian.

Notation: the joint is `p(θ, a) ∝ exp{U(θ) − |θ − a|² / (2η)}`, paper eq. (3). Integrating `a` out
leaves `π(θ) ∝ exp U(θ)` for every `η`; integrating `θ` out leaves the local entropy of `a`.
"""

import jax.numpy as jnp
from jax import Array

from steppe.pytree import piece


@piece
class NoCoupling:
    """The null coupling: no center, no pull."""

    has_center = False

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient of the coupling with respect to the position: zero."""
        return jnp.zeros((), position.dtype)

    def terms(self, position: Array, center: Array | None) -> Array:
        """Log-density of the coupling, term by term: zero."""
        return jnp.zeros((), position.dtype)

    @property
    def inverse_variance(self) -> float:
        """`1/η`: zero, the loosest coupling."""
        return 0.0


@piece
class StarCoupling:
    """A center tied to the position: adds `−|θ − a|² / (2η)` to the log-density.

    Attributes
    ----------
    coupling_variance
        `η`, the variance of each center coordinate given the position. Larger is looser.
    """

    coupling_variance: Array | float

    has_center = True

    def pull(self, position: Array, center: Array) -> Array:
        """Gradient with respect to the position, `(a − θ) / η`."""
        return (center - position) * self.inverse_variance

    def terms(self, position: Array, center: Array) -> Array:
        """Log-density of the coupling, one term per coordinate."""
        return (center - position) ** 2 * (-0.5 * self.inverse_variance)

    @property
    def inverse_variance(self) -> Array | float:
        """`1/η`."""
        return 1 / self.coupling_variance


Coupling = NoCoupling | StarCoupling
