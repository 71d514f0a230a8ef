"""The normalising constant of a restricted Boltzmann machine: summed where small, else annealed.

Annealed importance sampling (AIS) goes from a machine without weights, whose constant is known, to the
one asked for, through `U_t(v) = ((1 − t) a + t b_v)·v + Σ_j softplus(t (Wv + b)_j)`, `t` from 0 to 1.
Every chain moves by layer-wise Gibbs at each `t` and multiplies its weight by the ratio of neighbouring
densities; the mean weight is an unbiased estimate of the ratio of the constants (Neal 2001; Salakhutdinov
and Murray 2008).
"""

from functools import partial
from typing import NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.errors import TargetError
from steppe.numerics import softplus
from steppe.random import draws
from steppe.targets.checks import array_of_shape, count, real_array

MAX_SUMMED_BITS = 20
MAX_ROWS = 2**12  # states summed at a time

# Fraction of the temperatures in each stretch of [0, 1]: most where the constant changes fastest
# (the proportions of Salakhutdinov and Murray 2008).
SCHEDULE_KNOTS = ((0.0, 0.0), (1 / 29, 0.5), (9 / 29, 0.9), (1.0, 1.0))


class LogNormalizer(NamedTuple):
    """A log-normaliser and its standard error, 0 where it was summed exactly."""

    value: float
    standard_error: float


class Annealing(TypedDict, total=False):
    """Options of `log_normalizer`."""

    num_chains: int
    num_temperatures: int
    base_bias: ArrayLike | None
    exact: bool | None


def log_normalizer(
    weights: ArrayLike,
    hidden_bias: ArrayLike,
    visible_bias: ArrayLike,
    key: Array,
    *,
    num_chains: int = 100,
    num_temperatures: int = 10_000,
    base_bias: ArrayLike | None = None,
    exact: bool | None = None,
) -> LogNormalizer:
    """`log Σ_v exp{Σ_j softplus((Wv)_j + b_j) + b_v·v}`.

    Parameters
    ----------
    weights, hidden_bias, visible_bias
        As for `rbm`.
    key
        Random key of the annealing; unused for an exact sum.
    num_chains
        Independent annealed chains. The standard error falls as one over its square root.
    num_temperatures
        Number of steps from the base to the machine. Raising it lowers the spread of the weights.
    base_bias
        Visible biases `a` of the machine the chains start from, by default `visible_bias`. The log-odds
        of the training data's mean are often closer.
    exact
        Sum exactly (`True`), anneal (`False`), or by default sum if one layer has at most 20 bits.

    Notes
    -----
    The standard error is that of the logarithm of the mean weight, from the sample variance of the
    weights. If it is above about 0.3, few chains carry all the weight and both figures are too
    low: use more temperatures.
    """
    W = real_array("log_normalizer(weights=...)", weights, ndim=2)
    b = array_of_shape("log_normalizer(hidden_bias=...)", hidden_bias, (W.shape[0],))
    b_v = array_of_shape("log_normalizer(visible_bias=...)", visible_bias, (W.shape[1],))
    can_sum = min(W.shape) <= MAX_SUMMED_BITS
    if exact and not can_sum:
        raise TargetError(
            f"`log_normalizer(exact=True)` sums over the smaller layer, of at most {MAX_SUMMED_BITS} bits; "
            f"it has {min(W.shape)}. Leave `exact` out to anneal."
        )
    if can_sum if exact is None else exact:
        return LogNormalizer(_sum_terms(W, b, b_v), 0.0)
    base = b_v if base_bias is None else base_bias
    base = array_of_shape("log_normalizer(base_bias=...)", base, (W.shape[1],))
    steps = count("log_normalizer(num_temperatures=...)", num_temperatures)
    chains = count("log_normalizer(num_chains=...)", num_chains, minimum=2)
    start = W.shape[0] * np.log(2.0) + float(np.logaddexp(0, np.asarray(base, float)).sum())
    increments = _anneal(W, b, b_v, base, jnp.asarray(_schedule(steps)), key, chains)
    return _estimate(start, np.asarray(increments, float).sum(axis=0))


def _schedule(num_temperatures: int) -> np.ndarray:
    fractions, knots = np.asarray(SCHEDULE_KNOTS).T
    return np.interp(np.linspace(0, 1, num_temperatures + 1), fractions, knots)


def _estimate(start: float, log_weights: np.ndarray) -> LogNormalizer:
    """Log of the mean weight, and its error to first order: the relative error of the mean."""
    largest = log_weights.max()
    relative = np.exp(log_weights - largest)
    error = relative.std(ddof=1) / (relative.mean() * np.sqrt(len(relative)))
    return LogNormalizer(float(start + largest + np.log(relative.mean())), float(error))


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
