"""Random numbers fine enough to enter a Metropolis ratio.

The stock float32 uniforms of JAX are multiples of 2⁻²³, so an event of probability 10⁻⁹ decided by
`u < p` happens every 2²³ trials: the sampled law differs from the `q` in the acceptance ratio, and
detailed balance is lost in steep landscapes. Here a uniform has 64 random bits, of which the low 32 are
*one word shared by all sites of a draw*: each site on its own is uniform to 2⁻⁶⁴, and two sites depend on
each other only in events of probability 2⁻⁶⁴. That costs one word per draw instead of one per site. Values
are fine near 0 and may round up to 1; callers put the rare event near 0.

Random words come in pairs. Uniforms use the first word of a pair and normals the second.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.threefry import unrolled, word_pairs
from steppe.numerics import first_maximum, normal_quantile

# The place of the shared words, beyond any site.
SHARED = 2**32 - 1
# Keys of roles are folded with numbers that no piece reaches when it splits its own key.
ROLES = 2**31


class Keys(NamedTuple):
    """Keys of one step, one per role, so that adding a piece never shifts another's numbers."""

    center: Array
    position: Array
    accept: Array

    @classmethod
    def of_step(cls, key: Array, replicas: int | None = None) -> "Keys":
        """Derive the keys of the roles from the key of a step.

        With replicas, `position` and `accept` have one key each per replica, and the first replica has the
        keys of a plain step.
        """
        key = unrolled(key)
        numbers = ROLES + np.arange(2 * (replicas or 1), dtype=np.uint32)
        center, *others = jax.vmap(partial(jax.random.fold_in, key))(numbers)
        if replicas is None:
            return cls(center, key, others[0])
        return cls(center, jnp.stack([key, *others[1::2]]), jnp.stack(others[0::2]))


def uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniforms in (0, 1] that resolve 2⁻⁶⁴ near 0, in the default float type."""
    (words, _), (shared, _) = _words(key, shape)
    return _with_shared_bits(words, shared) * 2.0**-32


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
    # Noise in one long row: XLA vectorises the last axis only, and there are few levels.
    perturbed = log_weights.reshape(-1) + gumbel(key, (log_weights.size,))
    return first_maximum(perturbed.reshape(log_weights.shape))


def normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Standard normals; in float32 they stop at 5.4 standard deviations (probability 10⁻⁷)."""
    (_, words), (_, shared) = _words(key, shape)
    centred = _with_shared_bits(jax.lax.bitcast_convert_type(words, jnp.int32), shared) * 2.0**-31
    limit = 1 - jnp.finfo(centred.dtype).epsneg
    return normal_quantile(jnp.clip(centred, -limit, limit))


def _with_shared_bits(words: Array, shared: Array) -> Array:
    dtype = jnp.result_type(float)
    return words.astype(dtype) + (shared.astype(dtype) + 0.5) * 2.0**-32


def _words(key: Array, shape: tuple[int, ...]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Pairs of words, one per element, and the pair that all of them share."""
    key = unrolled(key)
    places = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return word_pairs(key, places), word_pairs(key, jnp.uint32(SHARED))
