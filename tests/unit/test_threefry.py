"""Unrolled keys are JAX's default keys: the same bits, whatever is asked of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe.random.threefry import block, unroll, word_pairs

REQUESTS = {
    "words": lambda key: jax.random.bits(key, (3, 5)),
    "bytes": lambda key: jax.random.bits(key, (7,), jnp.uint8),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 77)),
    "integers": lambda key: jax.random.randint(key, (4,), 0, 9),
    "normals": lambda key: jax.random.normal(key, (6,)),
}


@pytest.mark.parametrize("ask", REQUESTS.values(), ids=REQUESTS.keys())
def test_unrolled_keys_give_the_bits_of_jax(ask):
    key, keys = jax.random.key(7), jax.random.split(jax.random.key(8), 3)
    np.testing.assert_array_equal(ask(unroll(key)), ask(key))
    np.testing.assert_array_equal(jax.vmap(ask)(unroll(keys)), jax.vmap(ask)(keys))


def test_unrolled_keys_give_the_64_bit_words_of_jax(float64):
    key = jax.random.key(3)
    ask = lambda key: jax.random.bits(key, (5,), jnp.uint64)  # noqa: E731
    np.testing.assert_array_equal(ask(unroll(key)), ask(key))


def test_block_gives_the_published_answers():
    # Known answers of Threefry-2x32, 20 rounds (Salmon et al. 2011).
    ones = np.uint32(0xFFFFFFFF)
    pi = [np.uint32(word) for word in (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)]
    cases = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ones, ones), (ones, ones), (0x1CB996FC, 0xBB002BE7)),
        ((pi[2], pi[3]), (pi[0], pi[1]), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, counter, expected in cases:
        words = block(jnp.asarray(key, jnp.uint32), *map(jnp.uint32, counter))
        assert tuple(map(int, words)) == expected


def test_old_style_keys_are_unrolled_too():
    old, new = jax.random.PRNGKey(5), jax.random.key(5)
    np.testing.assert_array_equal(jax.random.key_data(unroll(old)), jax.random.key_data(unroll(new)))


def test_keys_of_other_types_are_left_alone_and_draw_in_pairs():
    key = jax.random.key(0, impl="rbg")
    assert unroll(key) is key
    first, second = word_pairs(key, jnp.arange(4, dtype=jnp.uint32))
    assert first.shape == second.shape == (4,)
    assert len({*first.tolist(), *second.tolist()}) == 8
