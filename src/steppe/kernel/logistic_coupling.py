"""A center tied to the position by a logistic density, as in hyperbolic-secant-squared Gibbs sampling (HiSS).

Notation: the joint density is `p(θ, a) ∝ exp{U(θ)} ∏_i sech²((θ_i − a_i) / (2s))`. Integrating `a` out leaves
`π(θ) ∝ exp U(θ)` for every scale `s`. A logistic has the variance `η = s² π²/3`, and tails that fall like
`exp(−|θ − a| / s)` where those of a Gaussian fall like `exp(−|θ − a|² / (2η))`: a center that is far away
pulls with a force of at most `1/s`.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steppe.domain.base import Domain
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.distributions import mask_padding
from steppe.kernel.keys import DrawKeys
from steppe.kernel.parameters import Number
from steppe.numerics import softplus
from steppe.random import draws


class Logistic(NamedTuple):
    """Independent logistics of one scale around a mean, on the columns that exist."""

    domain: Domain
    mean: Array
    scale: Number

    def sample(self, keys: DrawKeys) -> Array:
        """Draw a center: `s · logit(u)` from its mean."""
        return self.mean + self.scale * mask_padding(
            self.domain, draws.logistic(keys.center, self.mean.shape)
        )

    def log_prob_terms(self, value: Array) -> list[Array]:
        """Log-density of a center, one term per coordinate."""
        distance = jnp.abs(value - self.mean) / self.scale
        return [mask_padding(self.domain, log_sech_squared(distance) - jnp.log(self.scale))]


class LogisticCoupling(StarCoupling):
    """A center tied to one position by a logistic of variance `η`: adds `Σ_i log sech²((θ_i − a_i)/(2s))`.

    Attributes
    ----------
    coupling_variance
        `η = s² π²/3`, the variance of each center coordinate given the position. Larger is looser.
    """

    component_id = "logistic-coupling"

    formula = "2 log cosh((θ − a)/(2s))"

    @property
    def scale(self) -> Number:
        """`s = √(3η)/π`."""
        return jnp.sqrt(3 * jnp.asarray(self.coupling_variance)) / math.pi

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient with respect to the position, `tanh((a − θ) / (2s)) / s`."""
        assert center is not None
        return jnp.tanh((center - position) / (2 * self.scale)) / self.scale

    def log_density_terms(self, position: Array, center: Array | None) -> Array:
        """Log-density of the coupling, one term per coordinate, zero at no distance."""
        assert center is not None
        return log_sech_squared(jnp.abs(center - position) / self.scale) + 2 * math.log(2)

    def center_given(self, domain: Domain, position: Array) -> Logistic:
        """Logistic about the position."""
        return Logistic(domain, position, self.scale)


def log_sech_squared(distance: Array) -> Array:
    """Log-density of a standard logistic at `x ≥ 0`: `log(sech²(x/2) / 4) = −x − 2 log(1 + e⁻ˣ)`."""
    return -distance - 2 * softplus(-distance)
