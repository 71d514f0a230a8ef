"""Fast elementary functions agree with double precision to the last bit or two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from steppe.numerics import (
    first_maximum,
    log1p,
    log1p_of_fraction,
    log_of_normal_number,
    log_sum_exp,
    normal_quantile,
    softplus,
    total,
)

EPSILON = float(np.finfo(np.float32).eps)


def test_logarithm_of_one_plus_a_fraction_is_right_to_a_few_bits():
    fractions = np.concatenate([np.logspace(-37, -3, 2000), np.linspace(0.001, 1, 20_000)]).astype(np.float32)
    exact = np.log1p(fractions.astype(float))
    np.testing.assert_allclose(log1p_of_fraction(fractions), exact, rtol=3 * EPSILON)
    assert log1p_of_fraction(jnp.float32(0)) == 0


def test_logarithm_of_a_normal_number_is_right_to_a_few_bits():
    numbers = np.concatenate([np.logspace(-37.9, 38.5, 20_000), 1 + np.linspace(-1e-3, 1e-3, 2001)])
    exact = np.log(numbers.astype(np.float32).astype(float))
    found = np.asarray(log_of_normal_number(jnp.asarray(numbers, jnp.float32)))
    # Near one the error is relative to the logarithm itself.
    assert np.all(np.abs(found - exact) <= 2 * EPSILON * np.abs(exact))
    assert log_of_normal_number(jnp.float32(1)) == 0


def test_logarithm_of_one_plus_any_number_is_right_to_a_few_bits():
    magnitudes = np.logspace(-30, 4, 20_000)
    numbers = np.concatenate([magnitudes, -magnitudes[magnitudes < 0.999]]).astype(np.float32)
    found = np.asarray(log1p(jnp.asarray(numbers)))
    np.testing.assert_allclose(found, np.log1p(numbers.astype(float)), rtol=4 * EPSILON)
    assert np.isnan(log1p(jnp.asarray([-1.0, -2.0]))).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_softplus_and_its_slope_are_right_far_out(precision):
    x = np.concatenate([np.linspace(-300, 300, 1201), [-1e-3, 1e-3]])
    with jax.enable_x64(precision == "float64"):
        values = np.asarray(softplus(jnp.asarray(x, precision)))
        slopes = np.asarray(jax.vmap(jax.grad(softplus))(jnp.asarray(x[x != 0], precision)))
    rtol = 8 * np.finfo(precision).eps
    tiny = 1e-37 if precision == "float32" else 1e-300
    np.testing.assert_allclose(values, np.logaddexp(0, x), rtol=rtol, atol=tiny)
    np.testing.assert_allclose(slopes, special.expit(x[x != 0]), rtol=rtol, atol=tiny)


def test_normal_quantiles_are_right_to_a_few_bits():
    x = np.concatenate([np.linspace(-0.999, 0.999, 20_001), 1 - np.logspace(-7, -3, 500)]).astype(np.float32)
    x = x[np.abs(x) < 1]
    exact = np.sqrt(2) * special.erfinv(x.astype(float))
    # The quantile is steep near one; the error allowed is that of x itself, and a few bits of the result.
    steepness = np.sqrt(np.pi / 2) * np.exp(exact**2 / 2)
    allowed = EPSILON * (8 * np.abs(exact) + steepness * (1 - np.abs(x)))
    assert np.all(np.abs(np.asarray(normal_quantile(x)) - exact) <= allowed)


def test_normal_quantiles_are_those_of_jax_in_double_precision(float64):
    x = jnp.linspace(-0.999999, 0.999999, 101)
    np.testing.assert_allclose(normal_quantile(x), np.sqrt(2) * special.erfinv(np.asarray(x)), rtol=1e-12)


def test_total_is_the_sum_over_the_last_axis():
    terms = np.random.default_rng(0).standard_normal((5, 1001)).astype(np.float32)
    np.testing.assert_allclose(total(terms), terms.astype(float).sum(axis=-1), atol=1e-4)


def test_log_sum_exp_is_right_where_weights_are_huge_tiny_or_nothing():
    rows = np.random.default_rng(0).normal(0, 50, (40, 33)).astype(np.float32)
    rows[:, ::4] = -np.inf
    rows[0] += 1e4
    exact = np.asarray(special.logsumexp(rows.astype(float), axis=-1))
    np.testing.assert_allclose(log_sum_exp(rows), exact, rtol=4 * EPSILON, atol=4 * EPSILON)
    assert log_sum_exp(jnp.full(3, -jnp.inf)) == -jnp.inf
    assert log_sum_exp(jnp.array([0.0, jnp.inf])) == jnp.inf


def test_the_first_maximum_is_where_argmax_finds_it():
    rows = np.random.default_rng(1).integers(0, 9, (50, 60)).astype(np.float32)  # with many ties
    rows[0] = -np.inf
    rows[1:, :7] = -np.inf
    assert np.array_equal(first_maximum(rows), rows.argmax(axis=-1))
