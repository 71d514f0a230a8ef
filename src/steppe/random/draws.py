"""Random numbers fine enough to enter a Metropolis ratio.

The stock float32 uniforms of JAX are multiples of 2⁻²³, so an event of probability 10⁻⁹ decided by
`u < p` happens every 2²³ trials: what is sampled differs from the `q` in the acceptance ratio, and
detailed balance is lost on steep targets. Here a uniform has 64 random bits, of which the low 32 are
*one word shared by all sites of a draw*: each site on its own is uniform to 2⁻⁶⁴, and two sites depend on
each other only in events of probability 2⁻⁶⁴. That costs one word per draw instead of one per site. Values
are fine near 0 and may round up to 1; callers put the rare event near 0.

Random words come in pairs. Uniforms use the first word of a pair and normals the second.
"""

import math
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.compiling import materialize, materialize_words
from steppe.numerics import first_maximum, normal_quantile
from steppe.random.threefry import unroll, word_columns, word_pairs

# The place of the shared words, beyond any site.
SHARED = 2**32 - 1
# Fewer places than this are drawn twice in less time than a call takes.
WORTH_KEEPING = 64

# Numbers that a processor adds at once, on the widest there are.
VECTOR = 16

Pair = tuple[Array, Array]


class WordPairs(NamedTuple):
    """The pairs of words of a key at its first places, drawn once for uniforms and for normals.

    Stands in for the key and gives the same numbers.
    """

    key: Array
    first: Array
    second: Array

    @classmethod
    def draw(cls, key: Array, size: int) -> "WordPairs":
        """Draw the pairs of `size` places."""
        draw = word_pairs if size < WORTH_KEEPING else partial(materialize_words, word_pairs)
        return cls(key, *draw(unroll(key), jnp.arange(size, dtype=jnp.uint32)))


Source = Array | WordPairs


def uniform(key: Source, shape: tuple[int, ...]) -> Array:
    """Uniforms in (0, 1] that resolve 2⁻⁶⁴ near 0, in the default float type."""
    (words, _), (shared, _) = _words(key, shape)
    return _with_shared_bits(words, shared) * 2.0**-32


def uniform_columns(keys: Array, size: int) -> Array:
    """Uniforms as `uniform` makes them, a column of `size` for each of several keys.

    Both words of every pair are used: the first ones for the first half of the column.
    """
    keys, half = unroll(keys), -(-size // 2)
    # Several places side by side, so that rows are whole vectors however many keys there are.
    fold = VECTOR // math.gcd(VECTOR, len(keys))
    places = jnp.arange(-(-half // fold) * fold, dtype=jnp.uint32)
    halves = materialize_words(partial(word_columns, fold=fold), keys, places)
    shared, _ = materialize_words(word_columns, keys, jnp.full(1, SHARED, jnp.uint32))
    shared = jnp.tile(shared, fold)
    columns = [(_with_shared_bits(words, shared) * 2.0**-32).reshape(-1, len(keys)) for words in halves]
    return jnp.concatenate([column[:half] for column in columns])[:size]


def log_uniform(key: Array) -> Array:
    """Logarithm of one uniform, strictly negative."""
    dtype = jnp.result_type(float)
    return jnp.log(jnp.minimum(uniform(key, ()), 1 - jnp.finfo(dtype).epsneg))


def flips(key: Source, logits: Array) -> Array:
    """Independent booleans, true with probability `sigmoid(logits)`, right in both tails."""
    return compare(uniform(key, logits.shape), logits)


def compare(uniforms: Array, logits: Array) -> Array:
    """Booleans, true with probability `sigmoid(logits)`, each by one uniform.

    With `e = exp(−|z|)` the less likely outcome has probability `e / (1 + e)`, so the comparison is
    made where uniforms are fine, whatever the sign of the logit.
    """
    rare = jnp.exp(-jnp.abs(logits))
    is_rare_outcome = uniforms * (1 + rare) < rare
    return is_rare_outcome ^ (logits >= 0)


def choose(uniforms: Array, log_weights: Array) -> Array:
    """Index along the first axis with probability proportional to `exp(log_weights)`, by one uniform each.

    The most likely index comes last, so that all others are decided where uniforms are fine.
    """
    # One loop each: within one, every weight would look for the largest again.
    largest = materialize(partial(reduce, jnp.maximum), log_weights)
    weights = materialize(_exponentiate, log_weights, largest)
    return materialize(_invert, uniforms, weights)


def _exponentiate(log_weights: Array, largest: Array) -> Array:
    return jnp.exp(log_weights - largest)


def _invert(uniforms: Array, weights: Array) -> Array:
    """The first index, the most likely one put last, at which the sum of weights exceeds a share of it."""
    bound = uniforms * sum(weights)
    reached, is_found = jnp.zeros_like(bound), jnp.zeros(bound.shape, bool)
    last = chosen = jnp.zeros(bound.shape, jnp.int32)
    for index, weight in enumerate(weights):
        is_last = (weight == 1) & ~is_found
        is_found, last = is_found | is_last, jnp.where(is_last, index, last)
        reached = reached + jnp.where(is_last, 0, weight)
        chosen = chosen + (reached <= bound)
    return jnp.where(reached <= bound, last, chosen)


def gumbel(key: Source, shape: tuple[int, ...]) -> Array:
    """Gumbel noise with a resolved upper tail: `−log E`, `E` exponential and fine near 0."""
    limit = 1 - jnp.finfo(jnp.result_type(float)).epsneg
    return -jnp.log(-jnp.log1p(-jnp.minimum(uniform(key, shape), limit)))


def categorical(key: Source, log_weights: Array) -> Array:
    """Index along the last axis with probability proportional to `exp(log_weights)`."""
    # Noise in one long row: XLA vectorises the last axis only, and there are few levels.
    perturbed = log_weights.reshape(-1) + gumbel(key, (log_weights.size,))
    return first_maximum(perturbed.reshape(log_weights.shape))


def normal(key: Source, shape: tuple[int, ...]) -> Array:
    """Standard normals; in float32 they stop at 5.4 standard deviations (probability 10⁻⁷)."""
    (_, words), (_, shared) = _words(key, shape)
    centred = _with_shared_bits(jax.lax.bitcast_convert_type(words, jnp.int32), shared) * 2.0**-31
    limit = 1 - jnp.finfo(centred.dtype).epsneg
    return normal_quantile(jnp.clip(centred, -limit, limit))


def _with_shared_bits(words: Array, shared: Array) -> Array:
    dtype = jnp.result_type(float)
    return words.astype(dtype) + (shared.astype(dtype) + 0.5) * 2.0**-32


def _words(source: Source, shape: tuple[int, ...]) -> tuple[Pair, Pair]:
    """Pairs of words, one per element, and the pair that all of them share."""
    size = math.prod(shape)
    key = unroll(source.key if isinstance(source, WordPairs) else source)
    if isinstance(source, WordPairs) and source.first.size == size:
        own = source.first.reshape(shape), source.second.reshape(shape)
    else:
        own = word_pairs(key, jnp.arange(size, dtype=jnp.uint32).reshape(shape))
    return own, word_pairs(key, jnp.uint32(SHARED))
