"""Random bits of many chains side by side in words: bit `c` of a word belongs to chain `c`.

A word then holds one bit of a uniform of every chain, and logical operations on it decide for all of them at
once. Every chain has its own bits, from its own key: how many chains share a word does not change them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import materialize, materialize_words
from steppe.random.draws import SHARED
from steppe.random.threefry import unroll, word_pairs

# Bits of a uniform that are drawn at once; more of them only where these leave something open.
NUM_PLANES = 16
WIDTHS = (8, 16, 32)


def choose_width(num_chains: int) -> int:
    """Bits of the words that hold so many chains."""
    return next(width for width in WIDTHS if num_chains <= width)


def transpose_bits(rows: Array) -> Array:
    """Exchange rows and bits, of which there are as many: bit `b` of row `c` becomes bit `c` of row `b`."""
    width, distance = len(rows), len(rows) // 2
    assert rows.dtype.itemsize * 8 == width
    while distance:
        low = np.array(sum(1 << bit for bit in range(width) if not bit & distance), rows.dtype)
        rows = materialize(partial(_exchange, distance, low), rows)
        distance //= 2
    return rows


def _exchange(distance: int, low: np.ndarray, rows: Array) -> Array:
    """Swap the upper bits of the rows in front with the lower bits of those a distance behind."""
    pairs = rows.reshape(-1, 2, distance, *rows.shape[1:])
    front, behind = pairs[:, 0], pairs[:, 1]
    shift = np.array(distance, low.dtype)
    swapped = [(front & low) | ((behind & low) << shift), ((front >> shift) & low) | (behind & ~low)]
    return jnp.stack(swapped, axis=1).reshape(rows.shape)


def random_planes(keys: Array, first: ArrayLike, size: int) -> Array:
    """Planes of random bits, (plane, place), for `size` places; their words are counted from `first` on."""
    num_blocks = -(-size // 4)  # a block has two words, and a word serves two places
    places = jnp.arange(num_blocks, dtype=jnp.uint32) + jnp.asarray(first, jnp.uint32)
    drawn = materialize_words(_draw_rows, unroll(keys), places)
    planes = _spread(jnp.concatenate(drawn, axis=1))
    return jnp.concatenate([planes[:NUM_PLANES], planes[NUM_PLANES:]], axis=1)[:, :size]


def shared_planes(keys: Array, place: ArrayLike) -> Array:
    """Planes of the 32 random bits that all sites of a chain share, (plane, 1)."""
    return _spread(
        _draw_rows(unroll(keys), jnp.full(1, SHARED, jnp.uint32) - jnp.asarray(place, jnp.uint32))[0]
    )


def number_planes(numbers: Array) -> Array:
    """Planes of the bits of 32-bit numbers of chains, which stand last; the highest bit first."""
    return _spread(numbers.T)[::-1]


def _draw_rows(keys: Array, places: Array) -> tuple[Array, Array]:
    """Two words for every place, a row per key."""
    return jax.vmap(word_pairs, (0, None))(keys, places)


def _spread(rows: Array) -> Array:
    """From rows of 32-bit words, one per chain, to a plane per bit, (32, column)."""
    num_chains, num_columns = rows.shape
    width = choose_width(num_chains)
    rows = jnp.pad(rows, ((0, width - num_chains), (0, 0)))
    pieces = [(rows >> np.uint32(shift)).astype(f"uint{width}") for shift in range(0, 32, width)]
    planes = transpose_bits(jnp.concatenate(pieces, axis=1)).reshape(width, len(pieces), num_columns)
    return jnp.moveaxis(planes, 0, 1).reshape(32, num_columns)


def pack_chains(is_set: Array) -> Array:
    """Words of booleans of chains, which stand last: (place, chain) → (place,)."""
    num_chains = is_set.shape[1]
    bits = is_set.astype(f"uint{choose_width(num_chains)}")
    return jnp.sum(bits << np.arange(num_chains, dtype=bits.dtype), axis=1, dtype=bits.dtype)


def unpack_chains(words: Array, num_chains: int) -> Array:
    """Booleans of chains, which stand last: (place,) → (place, chain)."""
    bits = words[:, None] >> np.arange(num_chains, dtype=words.dtype)
    return (bits & np.ones((), words.dtype)).astype(bool)


def count_by_chain(planes: Array, num_chains: int) -> Array:
    """How many places have their bit set, (plane, place) → (plane, chain)."""
    num_planes, size = planes.shape
    width = planes.dtype.itemsize * 8
    rows = jnp.pad(planes, ((0, 0), (0, -size % width))).reshape(num_planes, width, -1)
    chains = transpose_bits(jnp.moveaxis(rows, 1, 0).reshape(width, -1)).reshape(width, num_planes, -1)
    return jnp.sum(jax.lax.population_count(chains), axis=2, dtype=jnp.int32).T[:, :num_chains]
