"""Which extra variable bends the landscape: none, or a center tied to the position by a Gaussian.

Notation: the joint is `p(θ, a) ∝ exp{U(θ) − |θ − a|² / (2η)}`, paper eq. (3). Integrating `a` out
leaves `π(θ) ∝ exp U(θ)` for every `η`; integrating `θ` out leaves the local entropy of `a`.
"""

import jax.numpy as jnp
from jax import Array

from steppe.pytree import piece, static


@piece
class NoCoupling:
    """The null coupling: no center, no pull."""

    has_center = False
    replicas = None

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient of the coupling with respect to the position: zero."""
        return jnp.zeros((), position.dtype)

    def terms(self, position: Array, center: Array | None) -> Array:
        """Log-density of the coupling, term by term: zero."""
        return jnp.zeros((), position.dtype)

    def anchor(self, position: Array) -> Array:
        """Return what a center would be tied to."""
        return position

    @property
    def center_variance(self) -> float:
        """The loosest coupling."""
        return float("inf")

    @property
    def inverse_variance(self) -> float:
        """`1/η`: zero."""
        return 0.0


@piece
class StarCoupling:
    """A center tied to the position, or to every replica of it: adds `−Σ_r |θ_r − a|² / (2η)`.

    Attributes
    ----------
    coupling_variance
        `η`, the variance of each center coordinate given one position. Larger is looser.
    replicas
        Number of copies of the position tied to the one center, on a leading axis of the state, or `None`
        for a single position without that axis.
    """

    coupling_variance: Array | float
    replicas: int | None = static(default=None)

    has_center = True

    def anchor(self, position: Array) -> Array:
        """Mean of the replicas: all the center knows of them."""
        return position if self.replicas is None else jnp.mean(position, axis=0)

    @property
    def center_variance(self) -> Array | float:
        """Variance of a center coordinate given all replicas, `η / R`."""
        return self.coupling_variance / (self.replicas or 1)

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
