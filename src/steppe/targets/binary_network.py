"""Bayesian neural networks whose weights are bits, on a table of inputs and outputs."""

from functools import partial
from typing import Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.pytree import is_concrete
from steppe.targets.binary_network_model import MAX_ACTIVATIONS, NetworkOnTable
from steppe.targets.checks import choice, count, number, positive, real_array

Preset = Literal["well_posed", "published", "printed"]

PUBLISHED_TEMPERATURE = 100.0
WELL_POSED_STEEPNESS = 500.0  # U per unexplained fraction of the variance of y
LOGIT_SPREADS = 1.5  # how much wider than the data the outputs of random networks are, in logits


class BinaryNetwork(NetworkOnTable):
    """A posterior over networks of binary weights. A position is one network, a stack of them many."""

    def with_temperature(self, temperature: ArrayLike) -> "BinaryNetwork":
        """Return the same posterior at another likelihood temperature; nothing is compiled again."""
        checked = positive("with_temperature(temperature)", temperature)
        return eqx.tree_at(lambda network: network.temperature, self, jnp.asarray(checked))

    def predictions(self, positions: Array, x: ArrayLike) -> Array:
        """Outputs in [0, 1] of every network on every row.

        Parameters
        ----------
        positions
            One network or a stack with any leading axes.
        x
            Rows × features.
        """
        stack = self._stack(positions)
        outputs = jnp.concatenate([_outputs(self, stack, rows) for rows in self._blocks(x)], axis=1)
        return outputs.reshape(*jnp.shape(positions)[:-1], -1)

    def posterior_mean(self, positions: Array, x: ArrayLike) -> Array:
        """Mean over networks of the outputs, one per row; arguments as for `predictions`."""
        stack = self._stack(positions)
        return jnp.concatenate([_mean_output(self, stack, rows) for rows in self._blocks(x)])

    def rmse(self, positions: Array, x: ArrayLike, y: ArrayLike) -> float:
        """Root of the mean squared error of the posterior mean.

        Parameters
        ----------
        positions, x
            As for `predictions`.
        y
            One per row.
        """
        errors = np.asarray(self.posterior_mean(positions, x), float) - _targets(y, np.shape(x)[0])
        return float(np.sqrt(np.mean(errors**2)))

    def log_likelihood(self, positions: Array, x: ArrayLike, y: ArrayLike) -> Array:
        """`−mean (f(x) − y)²` of every network: what the paper calls the average log-likelihood.

        Parameters
        ----------
        positions, x, y
            As for `rmse`.
        """
        table = _with_ones(self._check_inputs(x)), jnp.asarray(_targets(y, np.shape(x)[0]))
        network = eqx.tree_at(lambda network: (network.x, network.y), self, table)
        return -_errors(network, self._stack(positions)).reshape(jnp.shape(positions)[:-1])

    def _stack(self, positions: Array) -> Array:
        if jnp.shape(positions)[-1:] != self.domain.shape:
            raise TargetError(
                f"Networks of {self.domain.num_sites} bits have positions of shape (…, "
                f"{self.domain.num_sites}); got {jnp.shape(positions)}."
            )
        return jnp.asarray(positions, jnp.result_type(float)).reshape(-1, self.domain.num_sites)

    def _check_inputs(self, x: ArrayLike) -> Array:
        table = real_array("x", x, ndim=2)
        if table.shape[1] != self.x.shape[1] - 1:
            raise TargetError(
                f"The network has {self.x.shape[1] - 1} inputs; got a table of shape {table.shape}."
            )
        return table

    def _blocks(self, x: ArrayLike) -> list[Array]:
        """Rows with a column of ones, few enough at a time for the activations of one network."""
        table = _with_ones(self._check_inputs(x))
        size = max(1, MAX_ACTIVATIONS // self.num_hidden)
        return [table[first : first + size] for first in range(0, len(table), size)]


@checked(TargetError)
def binary_network(
    x: ArrayLike,
    y: ArrayLike,
    hidden: int,
    *,
    temperature: ArrayLike | None = None,
    preset: Preset = "well_posed",
    input_scale: ArrayLike | None = None,
    output_scale: ArrayLike | None = None,
    output_offset: ArrayLike | None = None,
) -> BinaryNetwork:
    """Posterior over networks of ±1 weights: `U = −temperature · mean (f(x) − y)²`.

    `f(x) = sigmoid(s_o (w₂·tanh(s_i (W₁ᵀx + b₁)) + b₂) + o)`, with one bit per weight and bias in the
    order `W₁` by rows, `b₁`, `w₂`, `b₂`.

    Parameters
    ----------
    x
        Features, rows × columns; standardised ones suit the default scales.
    y
        Targets in [0, 1], one per row.
    hidden
        Hidden units.
    temperature
        The factor of the mean squared error; a larger one concentrates the posterior. A traced leaf:
        anneal it with `with_temperature`, or let the recipe's `inverse_temperature` do it.
    preset
        `"well_posed"`: inputs of `tanh` and of the output stay of order one for any number of features
        and hidden units, and a network of random weights predicts the mean of `y` with about the spread
        of `y`; temperature `500 / var(y)`, so that `U` is −500 times the fraction of the variance of `y` that
        is not explained. `"published"`: no scaling and temperature 100, as the paper's numbers
        were made. `"printed"`: no scaling and the sum of squares, as the paper prints it.
    input_scale
        `s_i`; default `1/√features`, or 1.
    output_scale
        `s_o`; default `1.5 · std(y) / (ȳ (1 − ȳ)) / √hidden`, or 1.
    output_offset
        `o`; default the logit of the mean of `y`, or 0.

    Notes
    -----
    A step of any number of chains costs two matrix products for all of them. Rows are taken in blocks, so
    memory does not grow with the table. Single-site samplers remember the inputs of the hidden units and
    cost `O(rows)` per site, unless rows × hidden exceeds 2²¹.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.targets import binary_network
    >>> x = np.random.default_rng(0).normal(size=(40, 3))
    >>> target = binary_network(x, (x[:, 0] > 0).astype(float), hidden=4)
    >>> target.domain  # 3 · 4 weights and 4 biases, then 4 weights and a bias
    Binary(21)
    """
    if not is_concrete((x, y)):
        raise TargetError("`binary_network(x, y, ...)` reads its scales off the data; make it outside `jit`.")
    table = real_array("binary_network(x=...)", x, ndim=2)
    if not table.size:
        raise TargetError(f"`binary_network(x=...)` needs rows and columns; got shape {table.shape}.")
    choice("binary_network(preset=...)", preset, ("well_posed", "published", "printed"))
    num_rows, num_features = table.shape
    num_hidden = count("binary_network(hidden=...)", hidden)
    targets = _targets(y, num_rows)
    defaults = _scales(preset, targets, num_features, num_hidden)
    given = (temperature, input_scale, output_scale, output_offset)
    names = ("temperature", "input_scale", "output_scale", "output_offset")
    checks = (positive, positive, positive, number)
    checked = {
        name: check(f"binary_network({name}=...)", default if value is None else value)
        for name, check, value, default in zip(names, checks, given, defaults, strict=True)
    }
    return BinaryNetwork(
        domain=Binary((num_features + 2) * num_hidden + 1),
        x=_with_ones(table),
        y=targets,
        num_hidden=num_hidden,
        **checked,
    )


def _scales(
    preset: Preset, y: Array, num_features: int, num_hidden: int
) -> tuple[float, float, float, float]:
    """Temperature, scale of the inputs, scale and offset of the output."""
    if preset == "published":
        return PUBLISHED_TEMPERATURE, 1.0, 1.0, 0.0
    if preset == "printed":
        return float(len(y)), 1.0, 1.0, 0.0
    minimum = 1 / (2 + len(y))  # a mean of 0 or 1 has no logit; this is the rule of succession
    mean = float(np.clip(y.mean(), minimum, 1 - minimum))
    spread = max(float(y.std()), minimum) / (mean * (1 - mean))
    scale = LOGIT_SPREADS * spread / np.sqrt(num_hidden)
    temperature = WELL_POSED_STEEPNESS / max(float(y.var()), minimum**2)
    return temperature, 1 / np.sqrt(num_features), scale, float(np.log(mean / (1 - mean)))


def _targets(y: ArrayLike, num_rows: int) -> Array:
    targets = real_array("y", y, ndim=1)
    if len(targets) != num_rows:
        raise TargetError(f"`y` must have one entry per row of `x`, {num_rows}; got {len(targets)}.")
    if not (targets.min() >= 0 and targets.max() <= 1):
        raise TargetError(
            f"`y` must lie in [0, 1], the range of the output; got {targets.min():g} to {targets.max():g}. "
            "Map it there first."
        )
    return targets


def _with_ones(table: Array) -> Array:
    return cast("Array", np.concatenate((table, np.ones((len(table), 1), table.dtype)), axis=1))


@jax.jit
def _errors(network: NetworkOnTable, stack: Array) -> Array:
    return jax.lax.map(network.mean_squared_error, stack)


@jax.jit
def _outputs(network: NetworkOnTable, stack: Array, rows: Array) -> Array:
    return jax.lax.map(partial(network.outputs, x=rows), stack)


@jax.jit
def _mean_output(network: NetworkOnTable, stack: Array, rows: Array) -> Array:
    def add(total: Array, position: Array) -> tuple[Array, None]:
        return total + network.outputs(position, rows), None

    return jax.lax.scan(add, jnp.zeros(len(rows), rows.dtype), stack)[0] / len(stack)
