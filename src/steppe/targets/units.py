"""Units: log-densities that are a sum over functions of one linear input each (RBMs, perceptrons).

`U(x) = Σ_j f(z_j) + b·x` with inputs `z = Wx + c`. Value and gradient share the inputs, so a stack of
positions costs two matrix products. The inputs are also all that single-site moves have to remember.
"""

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.numerics import log1p_of_fraction, softplus, total
from steppe.target import Incremental, Target


class Unit(Protocol):
    """What one unit adds to the log-density as a function of its input."""

    def value(self, inputs: Array) -> Array: ...  # noqa: D102
    def value_and_slope(self, inputs: Array) -> tuple[Array, Array]: ...  # noqa: D102


class Softplus(eqx.Module):
    """`log(1 + exp z)`: a hidden bit summed out."""

    def value(self, inputs: Array) -> Array:
        """`log(1 + exp z)`."""
        return softplus(inputs)

    def value_and_slope(self, inputs: Array) -> tuple[Array, Array]:
        """The value and `sigmoid(z)`, from one exponential."""
        small = jnp.exp(-jnp.abs(inputs))
        slope = jnp.where(inputs >= 0, 1, small) / (1 + small)
        return jnp.maximum(inputs, 0) + log1p_of_fraction(small), slope


class LinearUnits(Target):
    """`U(x) = Σ_j f((Wx + c)_j) + b·x` on sites of two real levels.

    Attributes
    ----------
    domain
        Where the position lives.
    matrix
        `W`, units × sites.
    columns
        `Wᵀ`, stored as such: single-site moves read one contiguous row of it.
    bias
        `c`, one per unit.
    linear
        `b`, one per site.
    unit
        `f`.
    """

    matrix: Array
    columns: Array
    bias: Array
    linear: Array
    unit: Unit

    def inputs(self, position: Array) -> Array:
        """`Wx + c` of one position or a stack of them."""
        # Accelerators may round products to a few bits by default; a Metropolis ratio needs them all.
        # One matrix serves both products, so that it can stay in the cache. XLA would copy its transpose for
        # a single position, so that one is multiplied from the other side.
        if position.size == self.domain.num_sites:
            product = jnp.matmul(self.matrix, position.reshape(-1), precision="highest")
            return product.reshape(*position.shape[:-1], -1) + self.bias
        return jnp.matmul(position, self.matrix.T, precision="highest") + self.bias

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return self.total(self.unit.value(self.inputs(position)), position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient."""
        return self._value_and_grad(position)

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """`U` and its gradient for a stack of positions: two matrix products."""
        return self._value_and_grad(stack)

    def _value_and_grad(self, position: Array) -> tuple[Array, Array]:
        values, slopes = self.unit.value_and_slope(self.inputs(position))
        return self.total(values, position), slopes @ self.matrix + self.linear

    def total(self, values: Array, position: Array) -> Array:
        """`U` from the values of the units."""
        return total(values) + jnp.matmul(position, self.linear, precision="highest")

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips, `O(sites · units)`."""
        every_site = jnp.arange(self.domain.num_sites)
        return self.differences_at(self.inputs(position), position, every_site)

    @property
    def incremental(self) -> Incremental[Array]:
        """The inputs are remembered."""
        return Incremental(self.inputs, self.differences_at, self.update_inputs)

    def differences_at(self, inputs: Array, position: Array, sites: Array) -> Array:
        """Exact differences of flips at a few sites, `O(units)` each."""
        jumps = self.domain.slopes(position[sites], jnp.ones(sites.shape))
        flips = jnp.sum(jumps, axis=1)  # one of the two levels is where the site is
        now = self.unit.value(inputs)

        def difference(flip: tuple[Array, Array]) -> Array:
            site, change = flip
            # Subtracted unit by unit before the sum, which is large where the difference is small.
            moved = self.unit.value(inputs + change * self.columns[site]) - now
            return total(moved) + change * self.linear[site]

        # One site after another: the inputs and their values are made once, and few arrays are in use.
        changes = jax.lax.map(difference, (sites, flips))
        return jnp.where(jumps == 0, 0, changes[:, None])

    def update_inputs(self, inputs: Array, position: Array, site: Array, level: Array) -> Array:
        """Move the inputs along with a change of one site."""
        change = self.domain.from_levels(level) - position[site]
        return inputs + change * self.columns[site]
