"""JAX's default random bits, computed without a loop.

On a CPU, JAX compiles the twenty rounds of Threefry as a loop around small kernels, which takes twice as
long. Here the rounds are written out, so that they fuse with whatever uses the words. Keys are the same two
words and give the same `split`, `fold_in` and `bits`; `tests/unit/test_threefry.py` compares them. Keys of
other types are left to JAX.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import define_prng_impl

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
# Blocks for bulk draws are counted apart from those that make keys.
BULK = np.uint32(0x57E99E)


@jax.jit  # traced once, however many draws a program makes
def block(key: Array, high: Any, low: Any) -> tuple[Array, Array]:
    """Threefry-2x32-20: two random words for a key (two words) and a counter (two words)."""
    schedule = key[0], key[1], key[0] ^ key[1] ^ PARITY
    left, right = high + schedule[0], low + schedule[1]
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            left = left + right
            right = left ^ ((right << np.uint32(distance)) | (right >> np.uint32(32 - distance)))
        left = left + schedule[(group + 1) % 3]
        right = right + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return left, right


def _fold_in(key: Array, data: Any) -> Array:
    return jnp.stack(block(key, jnp.uint32(0), jnp.asarray(data, jnp.uint32)))


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(block(key, *_counters(shape)), axis=-1)


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    first, second = block(key, *_counters(shape))
    if bit_width == 64:
        return (first.astype(jnp.uint64) << 32) | second.astype(jnp.uint64)
    return (first ^ second).astype(f"uint{bit_width}")


def _counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    count = jnp.arange(int(np.prod(shape)), dtype=jnp.uint32).reshape(shape)
    return jnp.zeros_like(count), count


def _seed(seed: Array) -> Array:
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


UNROLLED = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="unrolled threefry2x32",
    tag="unr",
)


def unroll(key: Array) -> Array:
    """Return the same key with its rounds written out, if it is one of JAX's default type."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if str(jax.random.key_impl(key)) != "threefry2x32":
            return key
        key = jax.random.key_data(key)
    return jax.random.wrap_key_data(key, impl=UNROLLED)


def word_pairs(key: Array, places: Array) -> tuple[Array, Array]:
    """Two random words for every place, which a block of Threefry gives at the price of one."""
    if jax.random.key_impl(key) == UNROLLED:
        return block(jax.random.key_data(key), BULK, places)
    keys = jax.vmap(partial(jax.random.fold_in, key))(places.reshape(-1))
    words = jax.vmap(lambda own: jax.random.bits(own, (2,), jnp.uint32))(keys)
    return words[:, 0].reshape(places.shape), words[:, 1].reshape(places.shape)


def word_columns(keys: Array, places: Array, fold: int = 1) -> tuple[Array, Array]:
    """The same for several keys at the same places, a column each: what stands in a row vectorises.

    `fold` consecutive places stand side by side, of shape `(len(places) / fold, fold · len(keys))`.
    """
    if jax.random.key_impl(keys) == UNROLLED:
        beside = jnp.repeat(places.reshape(-1, fold), len(keys), axis=1)
        return block(jnp.tile(jax.random.key_data(keys).T, fold)[:, None], BULK, beside)
    first, second = jax.vmap(word_pairs, (0, None), -1)(keys, places)
    return first.reshape(-1, fold * len(keys)), second.reshape(-1, fold * len(keys))
