"""A network of binary weights on a table: outputs, value and gradient, differences, block of rows by block.

Notation: `f(x) = σ(s_o (w₂·tanh(s_i (W₁ᵀx + b₁)) + b₂) + o)`, every weight `2θ − 1` for a bit `θ`, and
`U = −T · mean (f(x) − y)²`. The bits are laid out as `[W₁ by rows | b₁ | w₂ | b₂]`; with a column of ones
appended to the inputs, `b₁` is the last row of `W₁`.

Activations of a network are made for a block of rows at a time by one matrix product, and a second product
gives the gradient while they are in the cache. Networks take turns. So memory does not grow with the number
of rows.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.target import Incremental, Target

Summed = TypeVar("Summed")
# Inputs of the hidden units, and their weighted sum, row by row.
Inputs = tuple[Array, Array]

# Activations held at a time. Larger blocks leave the processor's cache, smaller ones cost in overhead.
MAX_ACTIVATIONS = 2**17

# Single-site moves remember all pre-activations of a chain; beyond this they are computed afresh.
MAX_REMEMBERED = 2**21


class Weights(NamedTuple):
    """Weights of ±1, of one network or a stack of them.

    Attributes
    ----------
    inner
        Features and a row of biases × hidden.
    outer
        One per hidden unit.
    bias
        Of the output.
    """

    inner: Array
    outer: Array
    bias: Array


class NetworkOnTable(Target):
    """`U = −T · mean (f(x) − y)²` over the rows of a table.

    Attributes
    ----------
    domain
        One bit per weight.
    x
        Rows × (features + 1), the last column ones.
    y
        One per row.
    temperature
        `T`.
    input_scale, output_scale, output_offset
        `s_i`, `s_o`, `o`.
    num_hidden
        Hidden units.
    """

    x: Array
    y: Array
    temperature: Array
    input_scale: Array
    output_scale: Array
    output_offset: Array
    num_hidden: int = eqx.field(static=True)

    def weights(self, position: Array) -> Weights:
        """The weights a position, or each of a stack of them, stands for."""
        signs = 2 * position - 1
        inner, outer, bias = jnp.split(signs, [self.num_inner, self.num_inner + self.num_hidden], axis=-1)
        return Weights(inner.reshape(*inner.shape[:-1], -1, self.num_hidden), outer, bias[..., 0])

    @property
    def num_inner(self) -> int:
        """Weights and biases of the hidden units."""
        return self.x.shape[1] * self.num_hidden

    # ---- value and gradient --------------------------------------------------------------------

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return -self.temperature * self.mean_squared_error(position)

    def mean_squared_error(self, position: Array) -> Array:
        """Mean squared error of one network."""
        weights = self.weights(position)

        def squares(x: Array, y: Array, counts: Array) -> Array:
            errors = jax.nn.sigmoid(self._logits(weights, self._activations(weights, x))) - y
            return errors**2 @ counts

        return self.over_rows(squares, jnp.zeros((), position.dtype)) / len(self.y)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient: two matrix products per block of rows."""
        return self._value_and_grad(position)

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """`U` and its gradient for a stack of positions, as many together as stay in the cache."""
        together = max(1, MAX_ACTIVATIONS // (len(self.y) * self.num_hidden))
        if together >= len(stack):
            return jax.vmap(self._value_and_grad)(stack)
        return jax.lax.map(self._value_and_grad, stack, batch_size=together)

    def _value_and_grad(self, position: Array) -> tuple[Array, Array]:
        weights = self.weights(position)

        def block(x: Array, y: Array, counts: Array) -> tuple[Array, Weights]:
            activations = self._activations(weights, x)
            outputs = jax.nn.sigmoid(self._logits(weights, activations))
            errors = outputs - y
            slopes = 2 * counts * errors * outputs * (1 - outputs)
            inner_slopes = slopes[:, None] * weights.outer * (1 - activations**2)
            inner = jnp.matmul(x.T, inner_slopes, precision="highest")
            outer = jnp.matmul(slopes, activations, precision="highest")
            return errors**2 @ counts, Weights(inner, outer, jnp.sum(slopes))

        start = (jnp.zeros((), position.dtype), jax.tree.map(jnp.zeros_like, weights))
        squares, slopes = self.over_rows(block, start)
        parts = [self.input_scale * slopes.inner.ravel(), slopes.outer, slopes.bias[None]]
        scale = -self.temperature / len(self.y)
        # A bit moves its weight by 2.
        return scale * squares, 2 * scale * self.output_scale * jnp.concatenate(parts)

    def _activations(self, weights: Weights, x: Array) -> Array:
        """`tanh` of the inputs of every hidden unit, row × unit."""
        # Accelerators may round products to a few bits by default; a Metropolis ratio needs them all.
        return jnp.tanh(self.input_scale * jnp.matmul(x, weights.inner, precision="highest"))

    def _logits(self, weights: Weights, activations: Array) -> Array:
        """The input of the output unit, row by row."""
        sums = jnp.matmul(activations, weights.outer, precision="highest") + weights.bias
        return self.output_scale * sums + self.output_offset

    def over_rows(self, function: Callable[[Array, Array, Array], Summed], start: Summed) -> Summed:
        """Add up `function(x, y, counts)` over blocks of rows; `counts` is 0 for a row met before."""
        num_rows = len(self.y)
        num_blocks = -(-num_rows * max(self.num_hidden, self.x.shape[1]) // MAX_ACTIVATIONS)
        size = -(-num_rows // min(num_blocks, num_rows))

        def add(index: Array, total: Summed) -> Summed:
            first = jnp.minimum(index * size, num_rows - size)  # the last block overlaps the one before
            x, y = (jax.lax.dynamic_slice_in_dim(part, first, size) for part in (self.x, self.y))
            counts = (first + jnp.arange(size) >= index * size).astype(x.dtype)
            return jax.tree.map(jnp.add, total, function(x, y, counts))

        return jax.lax.fori_loop(0, -(-num_rows // size), add, start)

    # ---- outputs -------------------------------------------------------------------------------

    def outputs(self, position: Array, x: Array) -> Array:
        """`f` of one network on rows with a column of ones."""
        weights = self.weights(position)
        return jax.nn.sigmoid(self._logits(weights, self._activations(weights, x)))

    # ---- one-site changes ----------------------------------------------------------------------

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips, `O(sites · rows)`."""
        weights = self.weights(position)
        signs = 2 * position - 1

        def block(x: Array, y: Array, counts: Array) -> Array:
            inputs = jnp.matmul(x, weights.inner, precision="highest")
            logits = self._logits(weights, self._activations(weights, x))

            def unit(weight_signs: Array, outer: Array, unit_inputs: Array) -> Array:
                moved = jnp.tanh(self.input_scale * (unit_inputs[:, None] - 2 * weight_signs * x))
                return outer * (moved - jnp.tanh(self.input_scale * unit_inputs)[:, None])

            def gains(changes: Array) -> Array:
                moved = jax.nn.sigmoid(logits[:, None] + self.output_scale * changes) - y[:, None]
                before = jax.nn.sigmoid(logits) - y
                return counts @ (moved**2 - before[:, None] ** 2)

            def of_unit(arguments: tuple[Array, Array, Array]) -> Array:
                return gains(unit(*arguments))

            inner = jax.lax.map(of_unit, (weights.inner.T, weights.outer, inputs.T)).T
            activations = jnp.tanh(self.input_scale * inputs)
            outer = gains(-2 * weights.outer * activations)
            bias = gains(jnp.broadcast_to(-2 * weights.bias, (len(y), 1)))
            return jnp.concatenate([inner.ravel(), outer, bias])

        total = self.over_rows(block, jnp.zeros_like(position))
        return self._table(signs, -self.temperature / len(self.y) * total)

    @property
    def incremental(self) -> Incremental[Inputs] | None:
        """Inputs are remembered, where the pre-activations of a chain are few enough."""
        if self.x.shape[0] * self.num_hidden > MAX_REMEMBERED:
            return None
        return Incremental(self.init_inputs, self.differences_at, self.update_inputs)

    def init_inputs(self, position: Array) -> Inputs:
        """Inputs of the hidden units and their weighted sum, row by row."""
        weights = self.weights(position)
        inputs = jnp.matmul(self.x, weights.inner, precision="highest")
        return inputs.T, self._sums(weights, inputs.T)

    def _sums(self, weights: Weights, inputs: Array) -> Array:
        activations = jnp.tanh(self.input_scale * inputs)
        return jnp.matmul(weights.outer, activations, precision="highest") + weights.bias

    def differences_at(self, remembered: Inputs, position: Array, sites: Array) -> Array:
        """Exact differences of flips at a few sites, `O(rows)` each."""
        _, sums = remembered
        before = jax.nn.sigmoid(self.output_scale * sums + self.output_offset) - self.y

        def difference(site: Array) -> Array:
            change = self._change(remembered, position, site)[1]
            moved = jax.nn.sigmoid(self.output_scale * (sums + change) + self.output_offset) - self.y
            return jnp.mean(moved**2 - before**2)

        gains = -self.temperature * jax.lax.map(difference, sites)
        return self._table(2 * position[sites] - 1, gains)

    def update_inputs(self, remembered: Inputs, position: Array, site: Array, level: Array) -> Inputs:
        """Move inputs and sums along with a change of one site."""
        inputs, sums = remembered
        is_flip = self.domain.from_levels(level) != position[site]
        unit_inputs, change = self._change(remembered, position, site)
        unit = self._unit(site)
        kept = jnp.where(is_flip, unit_inputs, inputs[unit])
        return inputs.at[unit].set(kept), sums + jnp.where(is_flip, change, 0)

    def _unit(self, site: Array) -> Array:
        return jnp.where(site < self.num_inner, site % self.num_hidden, 0)

    def _change(self, remembered: Inputs, position: Array, site: Array) -> tuple[Array, Array]:
        """The inputs of the unit a flipped site belongs to, and the change of the weighted sum."""
        inputs, _ = remembered
        sign = 2 * position[site] - 1
        unit = self._unit(site)
        column = jnp.take(self.x, site // self.num_hidden, axis=1, mode="clip")
        is_inner = site < self.num_inner
        moved = inputs[unit] - jnp.where(is_inner, 2 * sign, 0) * column
        outer_sign = 2 * jnp.take(position, self.num_inner + unit) - 1
        inner_change = outer_sign * (
            jnp.tanh(self.input_scale * moved) - jnp.tanh(self.input_scale * inputs[unit])
        )
        unit_of_outer = jnp.clip(site - self.num_inner, 0, self.num_hidden - 1)
        activation = jnp.tanh(self.input_scale * inputs[unit_of_outer])
        is_bias = site == self.num_inner + self.num_hidden
        outer_change = -2 * sign * jnp.where(is_bias, 1, activation)
        return moved, jnp.where(is_inner, inner_change, outer_change)

    def _table(self, signs: Array, gains: Array) -> Array:
        """Differences by level from the gain of a flip: nothing where the site already is."""
        return jnp.stack([jnp.where(signs > 0, gains, 0), jnp.where(signs < 0, gains, 0)], axis=1)
