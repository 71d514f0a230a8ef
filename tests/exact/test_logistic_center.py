"""`hiss`, whose center is tied by a logistic: balance given the center, and π with the center summed out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import DOMAIN_CASES, center_for, polynomial_target, target_named
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.kernel.blocks.metropolis import enumerate_moves

TOLERANCE = 1e-12
VARIANCE = 0.7
SCALE = np.sqrt(3 * VARIANCE) / np.pi
HISS = steppe.hiss(step_size=0.6, coupling_variance=VARIANCE)

pytestmark = pytest.mark.usefixtures("float64")


def tie(positions, center):
    """`Π sech²((θ_i − a_i)/(2s))` of every position, written as in the definition."""
    distances = (np.asarray(positions) - np.asarray(center)).reshape(len(positions), -1)
    return np.prod(np.cosh(distances / (2 * SCALE)) ** -2.0, axis=1)


@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_position_block_is_balanced_given_a_logistic_center(domain):
    target = target_named(domain, "smooth")
    center = center_for(target.domain)
    weights = target_distribution(target) * tie(target.domain.enumerate(), center)
    weights /= weights.sum()
    flow = weights[:, None] * transition_matrix(HISS, target, center=center)
    assert np.abs(flow - flow.T).max() <= TOLERANCE
    gaussian = transition_matrix(
        steppe.edmala_glu(step_size=0.6, coupling_variance=VARIANCE), target, center=center
    )
    wrong = weights[:, None] * gaussian
    assert np.abs(wrong - wrong.T).max() > 1e-3  # a Gaussian tie is noticed


def sum_out_center(recipe, target, nodes, weights):
    """Transition matrix of a sweep on one site, its center at quantile nodes about every position."""
    sampler = recipe.build(target, audit=False)
    block, positions = sampler.recipe.blocks[1], np.asarray(target.domain.enumerate())
    moves = jax.jit(jax.vmap(lambda center: enumerate_moves(block, sampler.density, center)))
    rows = []
    for index, position in enumerate(positions):
        centers = jnp.asarray(position + nodes[:, None])
        rows.append(weights @ np.asarray(moves(centers))[:, index])
    return np.array(rows)


def test_a_sweep_with_a_fresh_logistic_center_leaves_the_target_invariant():
    target = polynomial_target(steppe.Ordinal(1, [-1.0, 0.1, 0.8]), 3.0)
    # Uniform nodes in x with the logistic density as weights: the integrand decays like exp(−|x|/s).
    nodes = np.linspace(-40, 40, 8001) * SCALE
    weights = np.cosh(nodes / (2 * SCALE)) ** -2.0
    matrix = sum_out_center(HISS, target, nodes, weights / weights.sum())
    exact = target_distribution(target)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-9
    # Where a ratio passes 1 the integrand has a kink, so the sum is right to the square of the spacing.
    assert np.abs(exact @ matrix - exact).max() <= 1e-6
    narrow = np.cosh(nodes / SCALE) ** -2.0  # a center drawn at half its scale
    broken = sum_out_center(HISS, target, nodes, narrow / narrow.sum())
    assert np.abs(exact @ broken - exact).max() > 1e-3


def test_distribution_of_position_and_center_is_the_one_of_the_definition():
    target = target_named("ragged", "smooth")
    distribution = HISS.stationary(target)
    exact, positions = target_distribution(target), target.domain.enumerate()
    assert np.abs(distribution.probabilities() - exact).max() <= TOLERANCE
    centers = np.stack([center_for(target.domain, seed) for seed in range(3)])
    found = distribution.center_log_prob(centers)
    expected = np.log([exact @ tie(positions, center) for center in centers])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-10)
    tied = distribution.log_prob(positions[3], centers[0]) - distribution.log_prob(positions[3])
    np.testing.assert_allclose(tied, np.log(tie(positions[3:4], centers[0]))[0], rtol=1e-10)
    assert "cosh" in distribution.description
