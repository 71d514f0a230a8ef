"""The normalising constant of a restricted Boltzmann machine: summed where small, else annealed.

Annealed importance sampling (AIS) goes from an RBM without weights, whose constant is known, to the
one asked for, through `U_t(v) = ((1 − t) a + t b_v)·v + Σ_j softplus(t (Wv + b)_j)`, `t` from 0 to 1.
Every chain moves by layer-wise Gibbs at each `t` and multiplies its weight by the ratio of neighbouring
densities; the mean weight is an unbiased estimate of the ratio of the constants (Neal 2001; Salakhutdinov
and Murray 2008).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.numerics import softplus
from steppe.random import draws
from steppe.targets.checks import array_of_shape, count, real_array

MAX_SUMMED_BITS = 20
MAX_ROWS = 2**12  # states summed at a time

# Fraction of the temperatures in each stretch of [0, 1]: most where the constant changes fastest
# (the proportions of Salakhutdinov and Murray 2008).
SCHEDULE_KNOTS = ((0.0, 0.0), (1 / 29, 0.5), (9 / 29, 0.9), (1.0, 1.0))


class LogWeights(NamedTuple):
    """Log-weights of annealed chains, whose mean weight estimates `Z / Z_0`, and `log Z_0`."""

    start: float
    weights: np.ndarray

    @property
    def value(self) -> float:
        """Estimate of `log Z`."""
        return self.start + float(self.weights.max() + np.log(self._relative.mean()))

    @property
    def standard_error(self) -> float:
        """Its error to first order: the relative error of the mean weight."""
        relative = self._relative
        return float(relative.std(ddof=1) / (relative.mean() * np.sqrt(len(relative))))

    @property
    def _relative(self) -> np.ndarray:
        return np.exp(self.weights - self.weights.max())


def anneal_rbm(
    weights: ArrayLike,
    hidden_bias: ArrayLike,
    visible_bias: ArrayLike,
    key: Array,
    *,
    num_chains: int = 100,
    num_temperatures: int = 10_000,
    base_bias: ArrayLike | None = None,
) -> LogWeights:
    """Anneal an RBM from one without weights.

    Parameters
    ----------
    weights, hidden_bias, visible_bias
        As for `rbm`.
    key
        Random key.
    num_chains
        Independent annealed chains. The standard error falls as one over its square root.
    num_temperatures
        Number of steps. Raising it lowers the spread of the weights.
    base_bias
        Visible biases `a` of the RBM the chains start from, by default `visible_bias`. The log-odds of the
        training data's mean are often closer.

    Notes
    -----
    If the standard error is above about 0.3, few chains carry all the weight and both estimate and error are
    too low: use more temperatures.
    """
    W = real_array("anneal_rbm(weights=...)", weights, ndim=2)
    b = array_of_shape("anneal_rbm(hidden_bias=...)", hidden_bias, (W.shape[0],))
    b_v = array_of_shape("anneal_rbm(visible_bias=...)", visible_bias, (W.shape[1],))
    base = b_v if base_bias is None else base_bias
    base = array_of_shape("anneal_rbm(base_bias=...)", base, (W.shape[1],))
    steps = count("anneal_rbm(num_temperatures=...)", num_temperatures)
    chains = count("anneal_rbm(num_chains=...)", num_chains, minimum=2)
    start = W.shape[0] * np.log(2.0) + float(np.logaddexp(0, np.asarray(base, float)).sum())
    increments = _anneal(W, b, b_v, base, jnp.asarray(_schedule(steps)), key, chains)
    return LogWeights(start, np.asarray(increments, float).sum(axis=0))


def _schedule(num_temperatures: int) -> np.ndarray:
    fractions, knots = np.asarray(SCHEDULE_KNOTS).T
    return np.interp(np.linspace(0, 1, num_temperatures + 1), fractions, knots)


@partial(jax.jit, static_argnames="num_chains")
def _anneal(
    W: Array, b: Array, b_v: Array, base: Array, schedule: Array, key: Array, num_chains: int
) -> Array:
    """Log-weight increments, temperature × chain."""
    key_start, key_steps = jax.random.split(key)
    W_columns = W.T

    def draw(key: Array, logits: Array) -> Array:
        return draws.flips(key, logits).astype(W.dtype)

    def inputs(visible: Array) -> Array:
        return jnp.matmul(visible, W_columns, precision="highest") + b

    def move(visible: Array, step: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        key, old, new = step
        hidden_inputs = inputs(visible)
        increments = (new - old) * (visible @ (b_v - base)) + jnp.sum(
            softplus(new * hidden_inputs) - softplus(old * hidden_inputs), axis=-1
        )
        key_hidden, key_visible = jax.random.split(key)
        hidden = draw(key_hidden, new * hidden_inputs)
        return draw(key_visible, new * (hidden @ W + b_v) + (1 - new) * base), increments

    visible = draw(key_start, jnp.broadcast_to(base, (num_chains, len(base))))
    keys = jax.random.split(key_steps, len(schedule) - 1)
    return jax.lax.scan(move, visible, (keys, schedule[:-1], schedule[1:]))[1]


def sum_smaller_layer(W: Array, b: Array, b_v: Array) -> float | None:
    """`log Z` summed over all states of the smaller layer, or `None` if it has more than 20 bits."""
    return _sum_terms(W, b, b_v) if min(W.shape) <= MAX_SUMMED_BITS else None


def _sum_terms(W: Array, b: Array, b_v: Array) -> float:
    """Sum over all states of the smaller layer, the other one being summed in closed form."""
    if W.shape[0] > W.shape[1]:
        return _sum_terms(W.T, b_v, b)
    num_bits = W.shape[0]
    starts = jnp.arange(0, 2**num_bits, MAX_ROWS, dtype=jnp.uint32)
    parts = np.asarray(_log_sums(W, b, b_v, starts, min(2**num_bits, MAX_ROWS)), float)
    return float(parts.max() + np.log(np.exp(parts - parts.max()).sum()))


@partial(jax.jit, static_argnames="num_rows")
def _log_sums(W: Array, b: Array, b_v: Array, starts: Array, num_rows: int) -> Array:
    """Log-sums over runs of states whose bits are read from consecutive integers."""

    def over_rows(start: Array) -> Array:
        codes = start + jnp.arange(num_rows, dtype=jnp.uint32)
        states = (codes[:, None] >> jnp.arange(len(b), dtype=jnp.uint32)) & 1
        states = states.astype(W.dtype)
        inputs = jnp.matmul(states, W, precision="highest") + b_v
        return jax.nn.logsumexp(states @ b + jnp.sum(softplus(inputs), axis=-1))

    return jax.lax.map(over_rows, starts)
