"""Chains in the bits of words: transposition, counts, and comparison of uniforms bit by bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe.kernel.blocks.spin_planes import _compare, _count_planes
from steppe.random import bit_planes

rng = np.random.default_rng(5)


@pytest.mark.parametrize("width", bit_planes.WIDTHS)
def test_transposition_exchanges_rows_and_bits(width):
    rows = rng.integers(2**width, size=(width, 3), dtype=np.uint64).astype(f"uint{width}")
    found = np.asarray(jax.jit(bit_planes.transpose_bits)(rows))
    bits = np.arange(width)
    expected = (rows[:, None] >> bits[:, None].astype(rows.dtype)) & 1
    np.testing.assert_array_equal(
        (found[:, None] >> bits[:, None].astype(rows.dtype)) & 1, expected.swapaxes(0, 1)
    )


def test_the_bits_of_a_chain_do_not_depend_on_how_many_share_its_words():
    keys = jax.random.split(jax.random.key(0), 20)
    planes = {
        count: jax.jit(bit_planes.random_planes, static_argnums=(1, 2))(keys[:count], 4, 11)
        for count in (1, 8, 9, 20)
    }
    for count, few in planes.items():
        for chain in range(count):
            of_many = (planes[20] >> np.uint32(chain)) & 1
            np.testing.assert_array_equal((few >> np.array(chain, few.dtype)) & 1, of_many)


def test_random_bits_are_fair_and_differ_between_planes_places_and_chains():
    """Counts of 32 · 16 · 4096 bits by plane and by chain, within 6 standard deviations: alarms < 1e-7."""
    keys = jax.random.split(jax.random.key(1), 32)
    planes = jax.jit(bit_planes.random_planes, static_argnums=(1, 2))(keys, 0, 4096)
    counts = np.asarray(bit_planes.count_by_chain(planes, 32))
    assert np.abs(counts - 2048).max() < 6 * 32
    assert len(np.unique(np.asarray(planes))) > 0.99 * planes.size


@pytest.mark.parametrize("num_chains", [3, 12, 32])
def test_chains_are_packed_unpacked_and_counted(num_chains):
    is_set = rng.random((37, num_chains)) < 0.4
    words = bit_planes.pack_chains(jnp.asarray(is_set))
    np.testing.assert_array_equal(bit_planes.unpack_chains(words, num_chains), is_set)
    np.testing.assert_array_equal(bit_planes.count_by_chain(words[None], num_chains)[0], is_set.sum(axis=0))


def test_planes_compare_as_the_numbers_they_are_made_of():
    """Half of the pairs agree in their first 16 bits, some of them in 32."""
    first, second = rng.integers(2**32, size=(2, 64, 32), dtype=np.uint64).astype(np.uint32)
    second[:32] = (first[:32] & np.uint32(0xFFFF0000)) | (second[:32] & np.uint32(0xFFFF))
    second[:8] = first[:8]
    planes = [bit_planes.number_planes(jnp.asarray(numbers)) for numbers in (first, second)]
    is_less, is_open = jnp.zeros(64, jnp.uint32), ~jnp.zeros(64, jnp.uint32)
    for drawn, limit in zip(*planes, strict=True):
        is_less, is_open = _compare([~jnp.zeros(64, jnp.uint32)], limit[None], drawn, is_less, is_open)
    np.testing.assert_array_equal(bit_planes.unpack_chains(is_less, 32), first < second)
    np.testing.assert_array_equal(bit_planes.unpack_chains(is_open, 32), first == second)


def test_planes_add_up():
    words = [jnp.asarray(rng.integers(2**32, size=5, dtype=np.uint64).astype(np.uint32)) for _ in range(6)]
    total = sum(bit_planes.unpack_chains(word, 32).astype(int) for word in words)
    planes = _count_planes(words)
    found = sum(
        bit_planes.unpack_chains(plane, 32).astype(int) << place for place, plane in enumerate(planes)
    )
    np.testing.assert_array_equal(found, total)
