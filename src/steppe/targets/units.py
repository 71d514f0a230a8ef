"""Log-densities that are a sum over units, each a function of one linear input: RBMs, perceptrons.

`U(x) = Σ_j f(z_j) + b·x` with inputs `z = Wx + c`. Value and gradient share the inputs, so a stack of
positions costs two matrix products. The inputs are also all that single-site moves have to remember.
"""

from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array

from steppe.domain import Ordinal
from steppe.numerics import log1p_of_fraction, softplus, total
from steppe.pytree import piece, static


class Unit(Protocol):
    """What one unit adds to the log-density as a function of its input."""

    def value(self, inputs: Array) -> Array: ...  # noqa: D102
    def value_and_slope(self, inputs: Array) -> tuple[Array, Array]: ...  # noqa: D102


@piece
class Softplus:
    """`log(1 + exp z)`: a hidden bit summed out."""

    def value(self, inputs: Array) -> Array:
        """`log(1 + exp z)`."""
        return softplus(inputs)

    def value_and_slope(self, inputs: Array) -> tuple[Array, Array]:
        """The value and `sigmoid(z)`, from one exponential."""
        small = jnp.exp(-jnp.abs(inputs))
        slope = jnp.where(inputs >= 0, 1, small) / (1 + small)
        return jnp.maximum(inputs, 0) + log1p_of_fraction(small), slope


@piece
class LinearUnits:
    """`U(x) = Σ_j f((Wx + c)_j) + b·x` on sites of two real levels.

    Attributes
    ----------
    weights
        `W`, units × sites.
    columns
        `Wᵀ`, stored as such: single-site moves read one contiguous row of it.
    bias
        `c`, one per unit.
    linear
        `b`, one per site.
    unit
        `f`.
    domain
        Where the position lives.
    """

    weights: Array
    columns: Array
    bias: Array
    linear: Array
    unit: Unit
    domain: Ordinal = static()

    is_incremental = True

    def inputs(self, position: Array) -> Array:
        """`Wx + c` of one position or a stack of them."""
        # Accelerators may round products to a few bits by default; a Metropolis ratio needs them all.
        # One matrix serves both products, so that it can stay in the cache. XLA would copy its transpose for
        # a single position, so that one is multiplied from the other side.
        if position.size == self.domain.num_sites:
            product = jnp.matmul(self.weights, position.reshape(-1), precision="highest")
            return product.reshape(*position.shape[:-1], -1) + self.bias
        return jnp.matmul(position, self.weights.T, precision="highest") + self.bias

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return self.total(self.unit.value(self.inputs(position)), position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient."""
        values, slopes = self.unit.value_and_slope(self.inputs(position))
        return self.total(values, position), slopes @ self.weights + self.linear

    def total(self, values: Array, position: Array) -> Array:
        """`U` from the values of the units."""
        return total(values) + jnp.matmul(position, self.linear, precision="highest")

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """`U` and its gradient for a stack of positions: two matrix products."""
        return self.value_and_grad(stack)

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips, `O(sites · units)`."""
        every_site = jnp.arange(self.domain.num_sites)
        return self.differences_at(self.start(position), position, every_site)

    def start(self, position: Array) -> Array:
        """Remember the inputs."""
        return self.inputs(position)

    def differences_at(self, memory: Array, position: Array, sites: Array) -> Array:
        """Exact differences of flips at a few sites, `O(units)` each."""
        jumps = self.domain.slopes(position[sites], jnp.ones(sites.shape))
        flips = jnp.sum(jumps, axis=1)  # one of the two levels is where the site is
        now = self.unit.value(memory)

        def gain(flip: tuple[Array, Array]) -> Array:
            site, change = flip
            # Subtracted unit by unit before the sum, which is large where the difference is small.
            moved = self.unit.value(memory + change * self.columns[site]) - now
            return total(moved) + change * self.linear[site]

        # One site after another: the memory and its values are made once, and few arrays are in use.
        gains = jax.lax.map(gain, (sites, flips))
        return jnp.where(jumps == 0, 0, gains[:, None])

    def follow(self, memory: Array, position: Array, site: Array, level: Array) -> Array:
        """Move the inputs along with a change of one site."""
        change = self.domain.from_levels(level) - position[site]
        return memory + change * self.columns[site]
