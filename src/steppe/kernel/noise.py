"""Random numbers fine enough to enter a Metropolis ratio.

The stock float32 uniforms of JAX are multiples of 2⁻²³, so an event of probability 10⁻⁹ decided by
`u < p` happens every 2²³ trials: the sampled law differs from the `q` in the acceptance ratio, and
detailed balance is lost in steep landscapes. Here a uniform has 64 random bits. In float32 the low 32
of them are *one word shared by all sites of a draw*: each site on its own is uniform to 2⁻⁶⁴, and two
sites depend on each other only in events of probability 2⁻⁶⁴. That costs one word per draw instead of
one per site. Values are fine near 0 and may round up to 1; callers put the rare event near 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Keys(NamedTuple):
    """Independent streams of one step, one per role, so that adding a piece never shifts another's."""

    center: Array
    position: Array
    accept: Array

    @classmethod
    def of_step(cls, key: Array, replicas: int | None = None) -> "Keys":
        """Split the key of a step into the streams of its roles.

        With replicas, `position` and `accept` have one key each per replica. Keys of a split do not depend
        on how many are split off, so one replica has the streams of a plain step.
        """
        center, *others = jax.random.split(key, 3 if replicas is None else 1 + 2 * replicas)
        if replicas is None:
            return cls(center, *others)
        return cls(center, jnp.stack(others[0::2]), jnp.stack(others[1::2]))


def uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniforms in (0, 1] that resolve 2⁻⁶⁴ near 0, in the default float type."""
    dtype = jnp.result_type(float)
    if dtype == jnp.float64:
        words = jax.random.bits(key, shape, jnp.uint64)
        return (words.astype(dtype) + 0.5) * 2.0**-64
    size = 1
    for length in shape:
        size *= length
    words = jax.random.bits(key, (size + 1,), jnp.uint32).astype(dtype)
    shared = (words[size] + 0.5) * 2.0**-32
    return ((words[:size] + shared) * 2.0**-32).reshape(shape)


def log_uniform(key: Array) -> Array:
    """Logarithm of one uniform, strictly negative."""
    dtype = jnp.result_type(float)
    return jnp.log(jnp.minimum(uniform(key, ()), 1 - jnp.finfo(dtype).epsneg))


def flips(key: Array, logits: Array) -> Array:
    """Independent booleans, true with probability `sigmoid(logits)`, right in both tails.

    With `e = exp(−|z|)` the less likely outcome has probability `e / (1 + e)`, so the comparison is
    made where uniforms are fine, whatever the sign of the logit.
    """
    rare = jnp.exp(-jnp.abs(logits))
    is_rare_outcome = uniform(key, logits.shape) * (1 + rare) < rare
    return is_rare_outcome ^ (logits >= 0)


def gumbel(key: Array, shape: tuple[int, ...]) -> Array:
    """Gumbel noise with a resolved upper tail: `−log E`, `E` exponential and fine near 0."""
    limit = 1 - jnp.finfo(jnp.result_type(float)).epsneg
    return -jnp.log(-jnp.log1p(-jnp.minimum(uniform(key, shape), limit)))


def categorical(key: Array, log_weights: Array) -> Array:
    """Index along the last axis with probability proportional to `exp(log_weights)`."""
    return jnp.argmax(log_weights + gumbel(key, log_weights.shape), axis=-1)


def normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Standard normals; in float32 they stop at 5.4 standard deviations (probability 10⁻⁷)."""
    return jax.random.normal(key, shape, jnp.result_type(float))
