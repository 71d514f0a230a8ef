"""Random numbers are fine where a Metropolis ratio looks, and have the frequencies they promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from contract.cases import quick_jit
from steppe.kernel.keys import Keys
from steppe.random import draws
from steppe.random.draws import SHARED

FALSE_ALARM = 1e-6
NUM_DRAWS = 2**18


@pytest.fixture
def feed(monkeypatch):
    """Make the next random words these, whatever the key and shape."""

    def feed_words(word, shared):
        def word_pairs(key, places):
            chosen = shared if places.ndim == 0 and int(places) == SHARED else word
            words = jnp.full(places.shape, np.uint32(chosen))
            return words, words

        monkeypatch.setattr(draws, "word_pairs", word_pairs)

    return feed_words


ALL_ONES = 2**32 - 1


# ---- Resolution, by feeding chosen words ------------------------------------------------------------


@pytest.mark.parametrize("word", [0, 1, 2, 3, 4, 1000, 2**20])
@pytest.mark.parametrize("shared", [0, 2**31, ALL_ONES])
def test_single_precision_uniform_lies_in_the_cell_of_its_word(feed, word, shared):
    # P(u < m 2⁻³²) is therefore m 2⁻³² for every m, up to the rounding of u: P(u < 2⁻³⁰) = 2⁻³⁰.
    feed(word, shared)
    uniform = float(draws.uniform(jax.random.key(0), (1,))[0])
    assert word * 2.0**-32 <= uniform <= (word + 1) * 2.0**-32


def test_smallest_uniform_is_two_to_the_minus_65(feed):
    feed(0, 0)
    assert float(draws.uniform(jax.random.key(0), ())) == 2.0**-65


def test_smallest_uniform_is_two_to_the_minus_65_in_double_precision(feed, float64):
    feed(0, 0)
    assert float(draws.uniform(jax.random.key(0), ())) == 2.0**-65


def flip_threshold(feed, logit: float) -> int:
    """Smallest shared word at which a site whose own word is 0 no longer flips, by bisection."""
    low, high = 0, 2**32
    while low < high:
        middle = (low + high) // 2
        feed(0, middle)
        does_flip = bool(draws.flips(jax.random.key(0), jnp.full((1,), logit))[0])
        low, high = (middle + 1, high) if does_flip else (low, middle)
    return low


def test_flip_of_logit_minus_25_has_its_probability_in_single_precision(feed):
    # The site's own word must be 0, a chance of 2⁻³², and the shared word below the threshold.
    feed(1, 0)
    assert not draws.flips(jax.random.key(0), jnp.full((1,), -25.0))[0]
    probability = 2.0**-64 * flip_threshold(feed, -25.0)
    assert probability == pytest.approx(np.exp(-25) / (1 + np.exp(-25)), rel=1e-6)


def test_flip_of_logit_minus_25_has_its_probability_in_double_precision(feed, float64):
    probability = 2.0**-64 * flip_threshold(feed, -25.0)
    assert probability == pytest.approx(np.exp(-25) / (1 + np.exp(-25)), rel=1e-8)


def test_tails_of_flips_are_mirror_images():
    logits = jnp.concatenate([jnp.linspace(0.01, 5, 500), jnp.linspace(5, 300, 500)])
    key = jax.random.key(3)
    np.testing.assert_array_equal(draws.flips(key, logits), ~draws.flips(key, -logits))


@pytest.mark.parametrize("logit", [300.0, np.inf])
def test_certain_flips_are_certain(feed, logit):
    feed(0, 0)  # the smallest uniform there is
    assert draws.flips(jax.random.key(0), jnp.full((1,), logit))[0]
    assert not draws.flips(jax.random.key(0), jnp.full((1,), -logit))[0]


def test_logarithm_of_a_uniform_is_negative_and_gumbel_noise_finite(feed):
    for words in ((ALL_ONES, ALL_ONES), (0, 0)):
        feed(*words)
        assert -46 < float(draws.log_uniform(jax.random.key(0))) < 0
        assert abs(float(draws.gumbel(jax.random.key(0), ()))) < 46


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
        draw = quick_jit(lambda key: draws.uniform(key, (NUM_DRAWS,)))
        uniforms = np.asarray(draw(jax.random.key(1)))
    assert uniforms.dtype == precision
    assert 0 < uniforms.min() < 14 * 2.0**-18  # false alarm e⁻¹⁴
    assert uniforms.max() <= 1
    assert_frequencies(np.histogram(uniforms, bins=64, range=(0, 1))[0], np.full(64, 1 / 64))


def test_flips_have_the_probability_of_their_logit():
    logits = np.array([-6.0, -2.0, -0.5, 0.0, 0.5, 2.0, 6.0])
    draw = quick_jit(lambda key: draws.flips(key, jnp.broadcast_to(logits, (NUM_DRAWS, logits.size))))
    counts = np.asarray(draw(jax.random.key(2))).sum(axis=0)
    for count, logit in zip(counts, logits, strict=True):
        probability = 1 / (1 + np.exp(-logit))
        assert_frequencies([count, NUM_DRAWS - count], [probability, 1 - probability])


def test_categorical_has_the_probabilities_of_its_weights():
    log_weights = np.array([-1.0, 0.0, -np.inf, -6.0, -0.3, -2.0, 0.4, -4.0, -3.0]) + 500
    draw = quick_jit(
        lambda key: draws.categorical(key, jnp.broadcast_to(log_weights, (NUM_DRAWS, log_weights.size)))
    )
    counts = np.bincount(np.asarray(draw(jax.random.key(3))), minlength=log_weights.size)
    weights = np.exp(log_weights - 500)
    assert counts[2] == 0
    assert_frequencies(np.delete(counts, 2), np.delete(weights / weights.sum(), 2))


# ---- Streams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key_type", ["threefry2x32", "rbg"])
def test_uniforms_and_normals_of_one_key_are_independent(key_type):
    # Correlation of 2¹⁸ pairs: one standard deviation is 2⁻⁹; false alarm 10⁻⁶ each, found from 2 % up.
    draw = quick_jit(lambda key: (draws.uniform(key, (NUM_DRAWS,)), draws.normal(key, (NUM_DRAWS,))))
    uniforms, normals = map(np.asarray, draw(jax.random.key(4, impl=key_type)))
    limit = stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(NUM_DRAWS)
    for first, second in ((uniforms, normals), (abs(uniforms - 0.5), abs(normals)), (uniforms, normals**2)):
        assert abs(np.corrcoef(first, second)[0, 1]) < limit
        assert abs(np.corrcoef(first[1:], second[:-1])[0, 1]) < limit


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_normals_fill_the_bins_of_the_normal_distribution(precision):
    with jax.enable_x64(precision == "float64"):
        normals = np.asarray(quick_jit(lambda key: draws.normal(key, (NUM_DRAWS,)))(jax.random.key(5)))
    assert normals.dtype == precision
    edges = np.concatenate([[-np.inf], np.linspace(-3.5, 3.5, 29), [np.inf]])
    assert_frequencies(np.histogram(normals, bins=edges)[0], np.diff(stats.norm.cdf(edges)))


@pytest.mark.parametrize(("word", "limit"), [(2**31, -5.5), (2**31 - 1, 5.5)])
def test_normals_of_extreme_words_are_finite(feed, word, limit):
    feed(word, ALL_ONES)
    assert 5 < float(draws.normal(jax.random.key(0), (1,))[0]) / np.sign(limit) < 5.5


def test_roles_of_a_step_draw_different_uniforms():
    keys = Keys.of_step(jax.random.key(0))
    assert len({float(draws.uniform(key, ())) for key in keys}) == 3


@pytest.mark.parametrize("replicas", [1, 3])
def test_first_replica_has_the_keys_of_a_plain_step_and_no_two_share_one(replicas):
    plain = Keys.of_step(jax.random.key(0))
    many = Keys.of_step(jax.random.key(0), replicas)
    assert many.position.shape == many.accept.shape == (replicas,)
    for ours, theirs in zip(plain, (many.center, many.position[0], many.accept[0]), strict=True):
        np.testing.assert_array_equal(jax.random.key_data(ours), jax.random.key_data(theirs))
    words = np.concatenate([jax.random.key_data(many.position), jax.random.key_data(many.accept)])
    assert len({tuple(pair) for pair in words.tolist()}) == 2 * replicas


def test_keys_that_a_piece_splits_off_are_none_of_the_roles():
    keys = Keys.of_step(jax.random.key(0), 3)
    children = jax.random.key_data(jax.random.split(keys.position[0], 64)).tolist()
    roles = jax.random.key_data(jnp.concatenate([keys.center[None], keys.position, keys.accept])).tolist()
    assert not {tuple(child) for child in children} & {tuple(role) for role in roles}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_logistics_fill_the_bins_of_the_logistic_distribution(precision):
    with jax.enable_x64(precision == "float64"):
        drawn = np.asarray(quick_jit(lambda key: draws.logistic(key, (NUM_DRAWS,)))(jax.random.key(6)))
    assert drawn.dtype == precision
    edges = np.concatenate([[-np.inf], np.linspace(-8, 8, 33), [np.inf]])
    assert_frequencies(np.histogram(drawn, bins=edges)[0], np.diff(stats.logistic.cdf(edges)))


@pytest.mark.parametrize(("word", "sign"), [(0, -1), (2**31, 1)])
def test_logistics_of_extreme_words_are_far_in_both_tails(feed, word, sign):
    feed(word, 0)
    assert sign * float(draws.logistic(jax.random.key(0), (1,))[0]) == pytest.approx(65 * np.log(2), rel=1e-6)
