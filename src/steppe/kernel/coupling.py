"""Couplings: no center, or a center tied to the position by a Gaussian.

Notation: the joint density is `p(θ, a) ∝ exp{U(θ) − |θ − a|² / (2η)}`, paper eq. (3). Integrating `a` out
leaves `π(θ) ∝ exp U(θ)` for every `η`; integrating `θ` out leaves the local entropy of `a`.
"""

import dataclasses
from typing import NoReturn

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.domain.base import Domain
from steppe.errors import RecipeError
from steppe.kernel.distributions import Gaussian, LatticeCenter
from steppe.kernel.parameters import NOT_NEGATIVE, POSITIVE, Number, optional_parameter, parameter
from steppe.kernel.types import Distribution


class NoCoupling(eqx.Module):
    """The null coupling: no center, no pull."""

    component_id = "no-coupling"

    formula = ""
    has_center = False
    is_lattice = False
    replicas = None
    center_weight = None
    inverse_variance = 0.0
    center_variance = float("inf")

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient of the coupling with respect to the position: zero."""
        return jnp.zeros((), position.dtype)

    def log_density_terms(self, position: Array, center: Array | None) -> Array:
        """Log-density of the coupling, term by term: zero."""
        return jnp.zeros((), position.dtype)

    def anchor(self, position: Array) -> Array:
        """Return what a center would be tied to."""
        return position

    def center_given(self, domain: Domain, position: Array) -> NoReturn:
        """Refuse: there is no center."""
        raise RecipeError("A recipe without coupling has no center to draw.")

    def with_replicas(self, replicas: int) -> NoReturn:
        """Refuse: nothing ties replicas together."""
        raise RecipeError("A recipe without coupling has no replicas.")

    def move_differences(self, kind: str, position: Array, center: Array | None) -> Array:
        """No change."""
        return jnp.zeros((), position.dtype)


class StarCoupling(eqx.Module):
    """A center tied to the position, or to every replica of it: adds `−Σ_r |θ_r − a|² / (2η)`.

    Attributes
    ----------
    coupling_variance
        `η`, the variance of each center coordinate given one position. Larger is looser.
    replicas
        Number of positions tied to the one center, on a leading axis of the state, or `None` for a single
        position without that axis.
    is_lattice
        Whether the center lives on the levels of the domain.
    center_weight
        `γ`: the center itself counts with `γ U`, which needs `is_lattice`; `None` for not at all.
    """

    component_id = "star-coupling"

    coupling_variance: Number = parameter(POSITIVE)
    replicas: int | None = eqx.field(static=True, default=None)
    is_lattice: bool = eqx.field(static=True, default=False)
    center_weight: Number | None = optional_parameter(NOT_NEGATIVE)

    formula = "|θ − a|²/(2η)"
    has_center = True

    def anchor(self, position: Array) -> Array:
        """Mean of the replicas: all the center knows of them."""
        return position if self.replicas is None else jnp.mean(position, axis=0)

    @property
    def center_variance(self) -> Number:
        """Variance of a center coordinate given all replicas, `η / R`."""
        return self.coupling_variance / (self.replicas or 1)

    @property
    def inverse_variance(self) -> Number:
        """`1/η`."""
        return 1 / self.coupling_variance

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient with respect to the position, `(a − θ) / η`."""
        assert center is not None
        return (center - position) * self.inverse_variance

    def log_density_terms(self, position: Array, center: Array | None) -> Array:
        """Log-density of the coupling, one term per coordinate."""
        assert center is not None
        return (center - position) ** 2 * (-0.5 * self.inverse_variance)

    def center_given(self, domain: Domain, position: Array) -> Distribution[Array]:
        """`N(anchor, η/R)`, or on the levels of the domain the weight `exp{−Σ_r |θ_r − c|² / (2η)}`."""
        if not self.is_lattice:
            return Gaussian(domain, self.anchor(position), self.center_variance)
        origin = jnp.zeros(domain.shape, position.dtype)
        overlap = domain.slopes(origin, self.anchor(position))
        logits = (overlap - 0.5 * domain.squared_jumps(origin)) / self.center_variance
        return LatticeCenter(domain, jnp.where(domain.level_mask, logits, -jnp.inf))

    def with_replicas(self, replicas: int) -> "StarCoupling":
        """Return the coupling of another number of replicas."""
        return dataclasses.replace(self, replicas=replicas)

    def move_differences(self, kind: str, position: Array, center: Array | None) -> Array:
        """Refuse: sites of a permutation are tied in their one-hot embedding, by `PermutationCoupling`."""
        raise RecipeError("Moves of a permutation need a `PermutationCoupling`.")
