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


def switch(uniforms: Array, logits: Array, current: Array, overrelaxation: Array) -> Array:
    """Booleans that leave `sigmoid(logits)` invariant, away from the current ones where they can.

    With probability `r`, the overrelaxation, a Metropolis decision on the other value, else a fresh draw:
    with `e = exp(−|z|)` the less likely outcome has probability `e (1 + r e) / (1 + e)` after the more likely
    one and `e (1 − r) / (1 + e)` after itself. At `r = 0` this is `compare`.
    """
    rare = jnp.exp(-jnp.abs(logits))
    is_likely = logits >= 0
    tilt = jnp.where(current == is_likely, 1 + overrelaxation * rare, 1 - overrelaxation)
    return (uniforms * (1 + rare) < rare * tilt) ^ is_likely


def choose(uniforms: Array, log_weights: Array) -> Array:
    """Index along the first axis with probability proportional to `exp(log_weights)`, by one uniform each.

    The most likely index comes last, so that all others are decided where uniforms are fine.
    """
    weights = _weigh(log_weights)

    def invert(uniforms: Array, weights: Array) -> Array:
        return _find_level(uniforms * sum(weights), weights, _put_likeliest_last(weights))

    return materialize(invert, uniforms, weights)


def move(uniforms: Array, log_weights: Array, current: Array, overrelaxation: Array) -> Array:
    """Indices along the first axis that leave `exp(log_weights)` invariant, away from the current ones.

    With probability `r`, the overrelaxation, the move of Suwa and Todo (2010), else a fresh draw. Weights lie
    side by side on a circle, and a uniform point on the stretch of the current index is turned by the largest
    weight: uniform points stay uniform, and no move rejects less. Lengths are in units of the largest weight,
    which comes last; `rest` is the length of all others. At `r = 0` this is `choose`.
    """

    def invert(uniforms: Array, weights: Array, current: Array, overrelaxation: Array) -> Array:
        stays = 1 - overrelaxation
        last = _put_likeliest_last(weights)
        own, before, rest = (jnp.zeros_like(uniforms) for _ in range(3))
        for index, weight in enumerate(weights):
            others = jnp.where(last == index, 0, weight)
            own = jnp.where(current == index, weight, own)
            before = before + jnp.where(index < current, others, 0)
            rest = rest + others
        # One index outweighs all others together: in closed form, fine where the others are rare.
        is_last, total = current == last, 1 + rest
        close = uniforms * total / jnp.where(is_last, stays + overrelaxation * total, stays)
        part = uniforms / overrelaxation
        turned = jnp.where(is_last, part, 1 + before + part * own)
        fresh = (uniforms - overrelaxation) / stays * total
        place = jnp.where(rest <= 1, close, jnp.where(uniforms < overrelaxation, turned, fresh))
        return _find_level(place, weights, last)

    # Draws in one long row: XLA vectorises the last axis of arrays with several.
    row, weights = uniforms.reshape(-1), _weigh(log_weights.reshape(len(log_weights), -1))
    current = jnp.broadcast_to(current, uniforms.shape).reshape(-1)
    return materialize(invert, row, weights, current, overrelaxation).reshape(uniforms.shape)


def _weigh(log_weights: Array) -> Array:
    """Weights relative to the largest."""
    # One loop each: within one, every weight would look for the largest again.
    largest = materialize(partial(reduce, jnp.maximum), log_weights)
    return materialize(lambda log_weights, largest: jnp.exp(log_weights - largest), log_weights, largest)


def _put_likeliest_last(weights: Array) -> Array:
    """The first index with the largest weight, which is 1."""
    last = jnp.zeros(weights.shape[1:], jnp.int32)
    for index, weight in reversed(list(enumerate(weights))):
        last = jnp.where(weight == 1, index, last)
    return last


def _find_level(place: Array, weights: Array, last: Array) -> Array:
    """The first index, the most likely one put last, at which the sum of weights exceeds a place."""
    reached, chosen = jnp.zeros_like(place), jnp.zeros(place.shape, jnp.int32)
    for index, weight in enumerate(weights):
        reached = reached + jnp.where(last == index, 0, weight)
        chosen = chosen + (reached <= place)
    return jnp.where(reached <= place, last, chosen)


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


def logistic(key: Source, shape: tuple[int, ...]) -> Array:
    """Standard logistics, `log(u / (1 − u))`, right in both tails: one bit is the sign."""
    (_, words), (_, shared) = _words(key, shape)
    half = _with_shared_bits(words & jnp.uint32(0x7FFFFFFF), shared) * 2.0**-32  # in (0, 1/2)
    distance = jnp.log1p(-half) - jnp.log(half)
    return jnp.where(words >> 31 == 1, distance, -distance)


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
