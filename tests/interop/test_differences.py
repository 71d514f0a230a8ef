"""Exact differences in place of a gradient, and finite where a neighbour is impossible."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.interop.differences import LARGEST_DIFFERENCE, differences_as_gradient


def table_density(table):
    """A log-density that looks its value up site by site, so that automatic differentiation finds nothing."""
    rows = jnp.asarray(table)

    def log_density(position):
        return rows[jnp.arange(len(rows)), position.astype(int)].sum()

    return log_density


def test_slope_on_ordered_levels_is_that_of_the_line_through_the_next_ones():
    values = np.asarray([0.0, 0.5, 2.0, 7.0])
    table = np.random.default_rng(0).normal(size=(4, 4))
    domain = steppe.Ordinal(4, values.tolist())

    def log_density(position):
        return jnp.asarray(table)[jnp.arange(4), domain.to_levels(position)].sum()

    levels = np.asarray([0, 1, 2, 3])
    value, gradient = jax.jit(differences_as_gradient(log_density, domain))(domain.from_levels(levels))
    below, above = np.asarray([0, 0, 1, 2]), np.asarray([1, 2, 3, 3])
    sites = np.arange(4)
    expected = (table[sites, above] - table[sites, below]) / (values[above] - values[below])
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)
    np.testing.assert_allclose(value, table[sites, levels].sum(), rtol=1e-5)


def test_slope_on_two_levels_is_the_exact_difference_of_a_flip():
    table = np.random.default_rng(1).normal(size=(5, 2))
    position = jnp.asarray([0.0, 1.0, 1.0, 0.0, 1.0])
    _, gradient = jax.jit(differences_as_gradient(table_density(table), steppe.Binary(5)))(position)
    np.testing.assert_allclose(gradient, table[:, 1] - table[:, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "expected"), [(-jnp.inf, -LARGEST_DIFFERENCE), (-1e30, -LARGEST_DIFFERENCE), (jnp.nan, 0.0)]
)
def test_neighbour_without_a_log_density_leaves_the_gradient_finite(wrong, expected):
    table = np.asarray([[0.0, 1.0], [0.0, wrong]])
    _, gradient = differences_as_gradient(table_density(table), steppe.Binary(2))(jnp.zeros(2))
    np.testing.assert_allclose(gradient, [1.0, expected], rtol=1e-6)
