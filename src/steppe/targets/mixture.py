"""Mixtures of independent sites: many modes of chosen width, and a local entropy in closed form.

Given its component, every site is drawn on its own. A component whose site probabilities are near 0 or 1
is a sharp mode, one with milder probabilities a wide one; weights say how much mass each holds. Sums over
all states factor over sites within a component, so what is normally out of reach (the normaliser, the local
entropy about any center) is known exactly in any dimension: a target for tests.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from steppe.arguments import checked
from steppe.domain import Binary, Categorical
from steppe.errors import TargetError
from steppe.target import Target

PLANTED_SEED = 3
PLANTED_SITES = 10
PLANTED_SEPARATION = 4


class Mixture(Target):
    """A mixture of independent sites: one row of scores per component, then one log-sum-exp.

    Attributes
    ----------
    domain
        Bits, or one-hot sites.
    log_weights
        Of the components.
    log_levels
        Log-probability of every level of every site: component × site × level.
    """

    log_weights: Array
    log_levels: Array

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return self._value_and_grad(position)[0]

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient."""
        return self._value_and_grad(position)

    def _value_and_grad(self, position: Array) -> tuple[Array, Array]:
        scores = self.log_weights + jnp.sum(self.log_levels * position, axis=(1, 2))
        return jax.nn.logsumexp(scores), jnp.tensordot(jax.nn.softmax(scores), self.log_levels, 1)

    def differences(self, position: Array) -> Array:
        """Exact differences of all one-site changes."""
        current = jnp.sum(self.log_levels * position, axis=2, keepdims=True)
        responsibilities = jax.nn.log_softmax(self.log_weights + jnp.sum(current, axis=(1, 2)))
        table = jax.nn.logsumexp(responsibilities[:, None, None] + self.log_levels - current, axis=0)
        return jnp.where(position == 1, 0.0, table)


class BitMixture(Mixture):
    """The same on bits, where one number per site says which level it has."""

    def _value_and_grad(self, position: Array) -> tuple[Array, Array]:
        scores = self._scores(position)
        return jax.nn.logsumexp(scores), jax.nn.softmax(scores) @ self._logits

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips."""
        responsibilities = jax.nn.log_softmax(self._scores(position))
        flips = jax.nn.logsumexp(responsibilities[:, None] + (1 - 2 * position) * self._logits, axis=0)
        return jnp.where(position[:, None] == jnp.arange(2), 0.0, flips[:, None])

    def _scores(self, position: Array) -> Array:
        return self.log_weights + jnp.sum(self.log_levels[..., 0] + position * self._logits, axis=1)

    @property
    def _logits(self) -> Array:
        return self.log_levels[..., 1] - self.log_levels[..., 0]


class PlantedMixture(NamedTuple):
    """Six sharp modes and a flat one on ten bits.

    Attributes
    ----------
    target
        What to sample.
    weights, site_probabilities
        What it was made from, for `mixture_local_entropy` and `mixture_responsibilities`.
    patterns
        The most likely state of each component, `(7, 10)`.
    flat
        Which component is flat.

    Examples
    --------
    >>> from steppe.targets import planted_mixture
    >>> planted = planted_mixture()
    >>> planted.patterns.shape, planted.weights.round(2).tolist()
    ((7, 10), [0.13, 0.13, 0.13, 0.13, 0.13, 0.13, 0.22])
    >>> highest = planted.target.log_density(planted.patterns[0])
    >>> bool(planted.target.log_density(planted.patterns[planted.flat]) < highest)  # flat, and lower
    True
    """

    target: Mixture
    weights: np.ndarray
    site_probabilities: np.ndarray
    patterns: np.ndarray
    flat: int


@checked(TargetError)
def mixture(weights: ArrayLike, site_probabilities: ArrayLike) -> Mixture:
    """Target `U(θ) = log Σ_k w_k Π_i p_ki(θ_i)`, a normalised log-probability.

    Parameters
    ----------
    weights
        `K` positive numbers; divided by their sum.
    site_probabilities
        `(K, n)` for bits: the probability that bit `i` is 1 in component `k`. `(K, n, L)` for one-hot
        sites: the probability of each level, summing to 1 over the last axis. All strictly between 0 and 1.

    Notes
    -----
    Not multilinear: a gradient is not a difference. The exact difference table costs `n · L · K`.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.targets import mixture
    >>> target = mixture([0.5, 0.5], [[0.9, 0.9], [0.1, 0.1]])
    >>> [
    ...     round(float(np.exp(target.log_density(bits))), 2) for bits in target.domain.enumerate()
    ... ]  # 00, 01, 10, 11
    [0.41, 0.09, 0.09, 0.41]
    """
    log_weights, log_levels = _logarithms(weights, site_probabilities)
    num_sites, num_levels = log_levels.shape[1:]
    parts = jnp.asarray(log_weights), jnp.asarray(log_levels)
    if np.ndim(site_probabilities) == 2:
        return BitMixture(Binary(num_sites), *parts)
    return Mixture(Categorical(num_sites, num_levels), *parts)


@checked(TargetError, coupling_variance="(0, inf)", centers=1)
def mixture_local_entropy(
    weights: ArrayLike, site_probabilities: ArrayLike, centers: ArrayLike, coupling_variance: float
) -> np.ndarray:
    """Exact `F(a; η) = log Σ_θ exp{U(θ) − |θ − a|²/(2η)}` of a mixture, in any dimension.

    Parameters
    ----------
    weights, site_probabilities
        As for `mixture`.
    centers
        Positions, or any real points, of shape `(..., n)` or `(..., n, L)`.
    coupling_variance
        `η > 0`.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.flatness import local_entropy_enumerated
    >>> from steppe.targets import mixture_local_entropy, planted_mixture
    >>> planted = planted_mixture()
    >>> entropy = mixture_local_entropy(planted.weights, planted.site_probabilities, planted.patterns, 1.0)
    >>> summed = local_entropy_enumerated(planted.target, planted.patterns, 1.0).value  # over all 1024 states
    >>> bool(np.abs(entropy - summed).max() < 1e-4)
    True
    """
    log_weights, log_levels = _logarithms(weights, site_probabilities, np.float64)
    centers = _check_points("mixture_local_entropy(centers=...)", centers, np.shape(site_probabilities)[1:])
    embedding = np.arange(2.0)[:, None] if np.ndim(site_probabilities) == 2 else np.eye(log_levels.shape[2])
    sites = centers[..., None] if np.ndim(site_probabilities) == 2 else centers
    jumps = ((sites[..., None, :] - embedding) ** 2).sum(-1)  # (..., n, L)
    per_site = _logsumexp(log_levels - jumps[..., None, :, :] / (2 * coupling_variance))
    return _logsumexp(log_weights + per_site.sum(-1))


@checked(TargetError, positions=1)
def mixture_responsibilities(
    weights: ArrayLike, site_probabilities: ArrayLike, positions: ArrayLike
) -> np.ndarray:
    """Probability of each component given a position, shape `(..., K)`.

    Examples
    --------
    >>> from steppe.targets import mixture_responsibilities, planted_mixture
    >>> planted = planted_mixture()
    >>> given = mixture_responsibilities(planted.weights, planted.site_probabilities, planted.patterns)
    >>> given.shape, given.argmax(axis=-1).tolist()
    ((7, 7), [0, 1, 2, 3, 4, 5, 6])
    """
    log_weights, log_levels = _logarithms(weights, site_probabilities, np.float64)
    shape = np.shape(site_probabilities)[1:]
    levels = _check_points("mixture_responsibilities(positions=...)", positions, shape)
    if np.ndim(site_probabilities) == 2:
        levels = np.stack([1 - levels, levels], axis=-1)
    scores = log_weights + np.einsum("kil,...il->...k", log_levels, levels)
    return np.exp(scores - _logsumexp(scores)[..., None])


def planted_mixture() -> PlantedMixture:
    """Seven random patterns of ten bits, at least four flips apart; six sharp modes, one flat.

    A sharp component (weight .13) flips each bit of its pattern with probability .03, the flat one (weight
    .22) with probability .22.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import target_distribution
    >>> from steppe.targets import planted_mixture
    >>> planted = planted_mixture()
    >>> round(float(target_distribution(planted.target).sum()), 6), planted.flat
    (1.0, 6)
    """
    rng = np.random.default_rng(PLANTED_SEED)
    patterns: list[np.ndarray] = []
    while len(patterns) < 7:
        candidate = rng.integers(0, 2, PLANTED_SITES)
        if all((candidate != kept).sum() >= PLANTED_SEPARATION for kept in patterns):
            patterns.append(candidate)
    weights = np.array([0.13] * 6 + [0.22])
    flip = np.array([0.03] * 6 + [0.22])[:, None]
    probabilities = np.where(np.stack(patterns) == 1, 1 - flip, flip)
    return PlantedMixture(mixture(weights, probabilities), weights, probabilities, np.stack(patterns), flat=6)


def _check_points(given: str, points: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(points, float)
    if array.shape[-len(shape) :] != shape:
        raise TargetError(f"`{given}` must have shape (..., {str(shape)[1:]}; got {array.shape}.")
    return array


def _logarithms(
    weights: ArrayLike, site_probabilities: ArrayLike, dtype: DTypeLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Log-weights `(K,)` and log-probabilities of levels `(K, n, L)`, checked."""
    weights, table = np.asarray(weights, float), np.asarray(site_probabilities, float)
    if weights.ndim != 1 or table.ndim not in (2, 3) or len(weights) != len(table) or not weights.size:
        raise TargetError(
            "`mixture(weights, site_probabilities)` needs K weights and a table of shape (K, n) for bits or "
            f"(K, n, L) for one-hot sites; got shapes {weights.shape} and {table.shape}."
        )
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise TargetError(f"`weights` must be positive and finite; got {weights.tolist()}.")
    if not ((table > 0) & (table < 1)).all():  # also refuses NaN
        raise TargetError(
            "`site_probabilities` must lie strictly between 0 and 1, so that every state has a finite "
            f"log-density; got values from {table.min():g} to {table.max():g}. Replace 0 by a small number."
        )
    if table.ndim == 2:
        table = np.stack([1 - table, table], axis=-1)
    if np.abs(table.sum(-1) - 1).max() > 1e-6:
        raise TargetError(
            "`site_probabilities` must sum to 1 over the levels of each site; the sums range from "
            f"{table.sum(-1).min():g} to {table.sum(-1).max():g}. Divide by them."
        )
    dtype = jnp.result_type(float) if dtype is None else dtype
    return np.log(weights / weights.sum()).astype(dtype), np.log(table).astype(dtype)


def _logsumexp(scores: np.ndarray) -> np.ndarray:
    """Over the last axis, in double precision whatever precision JAX runs in."""
    top = scores.max(axis=-1, keepdims=True)
    return np.log(np.exp(scores - top).sum(axis=-1)) + top[..., 0]
