"""Random numbers are fine where a Metropolis ratio looks, and have the frequencies they promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from contract.cases import quick_jit
from steppe.kernel import noise

FALSE_ALARM = 1e-6
NUM_DRAWS = 2**18


@pytest.fixture
def feed(monkeypatch):
    """Make the next random words these, whatever the key and shape."""

    def feed_words(*words):
        def bits(key, shape, dtype):
            return jnp.asarray(words, dtype).reshape(shape)

        monkeypatch.setattr(jax.random, "bits", bits)

    return feed_words


ALL_ONES = 2**32 - 1


# ---- Resolution, by feeding chosen words ------------------------------------------------------------


@pytest.mark.parametrize("word", [0, 1, 2, 3, 4, 1000, 2**20])
@pytest.mark.parametrize("shared", [0, 2**31, ALL_ONES])
def test_single_precision_uniform_lies_in_the_cell_of_its_word(feed, word, shared):
    # P(u < m 2⁻³²) is therefore m 2⁻³² for every m, up to the rounding of u: P(u < 2⁻³⁰) = 2⁻³⁰.
    feed(word, shared)
    uniform = float(noise.uniform(jax.random.key(0), (1,))[0])
    assert word * 2.0**-32 <= uniform <= (word + 1) * 2.0**-32


def test_smallest_uniform_is_two_to_the_minus_65(feed):
    feed(0, 0)
    assert float(noise.uniform(jax.random.key(0), ())) == 2.0**-65


def test_smallest_uniform_is_two_to_the_minus_65_in_double_precision(feed, float64):
    feed(0)
    assert float(noise.uniform(jax.random.key(0), ())) == 2.0**-65


def flip_threshold(feed, logit: float, *leading: int, bits: int) -> int:
    """Smallest last word at which a site with this logit no longer flips, by bisection."""
    low, high = 0, 2**bits
    while low < high:
        middle = (low + high) // 2
        feed(*leading, middle)
        does_flip = bool(noise.flips(jax.random.key(0), jnp.full((1,), logit))[0])
        low, high = (middle + 1, high) if does_flip else (low, middle)
    return low


def test_flip_of_logit_minus_25_has_its_probability_in_single_precision(feed):
    # The site's own word must be 0, a chance of 2⁻³², and the shared word below the threshold.
    feed(1, 0)
    assert not noise.flips(jax.random.key(0), jnp.full((1,), -25.0))[0]
    probability = 2.0**-64 * flip_threshold(feed, -25.0, 0, bits=32)
    assert probability == pytest.approx(np.exp(-25) / (1 + np.exp(-25)), rel=1e-6)


def test_flip_of_logit_minus_25_has_its_probability_in_double_precision(feed, float64):
    probability = 2.0**-64 * flip_threshold(feed, -25.0, bits=63)
    assert probability == pytest.approx(np.exp(-25) / (1 + np.exp(-25)), rel=1e-8)


def test_tails_of_flips_are_mirror_images():
    logits = jnp.concatenate([jnp.linspace(0.01, 5, 500), jnp.linspace(5, 300, 500)])
    key = jax.random.key(3)
    np.testing.assert_array_equal(noise.flips(key, logits), ~noise.flips(key, -logits))


@pytest.mark.parametrize("logit", [300.0, np.inf])
def test_certain_flips_are_certain(feed, logit):
    feed(0, 0)  # the smallest uniform there is
    assert noise.flips(jax.random.key(0), jnp.full((1,), logit))[0]
    assert not noise.flips(jax.random.key(0), jnp.full((1,), -logit))[0]


def test_logarithm_of_a_uniform_is_negative_and_gumbel_noise_finite(feed):
    for words in ((ALL_ONES, ALL_ONES), (0, 0)):
        feed(*words)
        assert -46 < float(noise.log_uniform(jax.random.key(0))) < 0
        assert abs(float(noise.gumbel(jax.random.key(0), ()))) < 46


# ---- Frequencies ------------------------------------------------------------------------------------

# False alarm 10⁻⁶ each, seeds fixed. With N = 2¹⁸ draws a test whose limit is L finds a cell of probability p
# that is off by the fraction δ when N p δ² (its noncentrality) is well above L: L is 24 for one degree of
# freedom and 40 for seven, so δ = 4 % is found at p = 0.3 (noncentrality 126) and δ = 40 % at p = 0.003.


def assert_frequencies(counts, probabilities) -> None:
    expected = np.sum(counts) * np.asarray(probabilities)
    statistic = np.sum((np.asarray(counts) - expected) ** 2 / expected)
    assert statistic < stats.chi2.isf(FALSE_ALARM, len(expected) - 1)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_uniforms_fill_their_bins_evenly(precision):
    with jax.enable_x64(precision == "float64"):
        draw = quick_jit(lambda key: noise.uniform(key, (NUM_DRAWS,)))
        uniforms = np.asarray(draw(jax.random.key(1)))
    assert uniforms.dtype == precision
    assert 0 < uniforms.min() < 14 * 2.0**-18  # false alarm e⁻¹⁴
    assert uniforms.max() <= 1
    assert_frequencies(np.histogram(uniforms, bins=64, range=(0, 1))[0], np.full(64, 1 / 64))


def test_flips_have_the_probability_of_their_logit():
    logits = np.array([-6.0, -2.0, -0.5, 0.0, 0.5, 2.0, 6.0])
    draw = quick_jit(lambda key: noise.flips(key, jnp.broadcast_to(logits, (NUM_DRAWS, logits.size))))
    counts = np.asarray(draw(jax.random.key(2))).sum(axis=0)
    for count, logit in zip(counts, logits, strict=True):
        probability = 1 / (1 + np.exp(-logit))
        assert_frequencies([count, NUM_DRAWS - count], [probability, 1 - probability])


def test_categorical_has_the_probabilities_of_its_weights():
    log_weights = np.array([-1.0, 0.0, -np.inf, -6.0, -0.3, -2.0, 0.4, -4.0, -3.0]) + 500
    draw = quick_jit(
        lambda key: noise.categorical(key, jnp.broadcast_to(log_weights, (NUM_DRAWS, log_weights.size)))
    )
    counts = np.bincount(np.asarray(draw(jax.random.key(3))), minlength=log_weights.size)
    weights = np.exp(log_weights - 500)
    assert counts[2] == 0
    assert_frequencies(np.delete(counts, 2), np.delete(weights / weights.sum(), 2))


# ---- Streams ----------------------------------------------------------------------------------------


def test_roles_of_a_step_have_their_own_streams():
    keys = noise.Keys.of_step(jax.random.key(0))
    words = {tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in keys}
    assert len(words) == 3


@pytest.mark.parametrize("replicas", [1, 3])
def test_first_replica_has_the_streams_of_a_plain_step(replicas):
    plain = noise.Keys.of_step(jax.random.key(0))
    many = noise.Keys.of_step(jax.random.key(0), replicas)
    assert many.position.shape == many.accept.shape == (replicas,)
    for ours, theirs in zip(plain, (many.center, many.position[0], many.accept[0]), strict=True):
        np.testing.assert_array_equal(jax.random.key_data(ours), jax.random.key_data(theirs))
