"""Unadjusted recipes are biased in a known way: after one step and, where known, at stationarity.

Notation: α step_size, α_a center_step_size, η coupling_variance, Z_α(θ) the normaliser of the discrete
Langevin proposal at θ.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import steppe
from exact_targets import DOMAIN_CASES, DOMAINS, center_for, target_named
from steppe.diagnostics.center_distribution import (
    edula_kernel,
    edula_stationary,
    glu_transition_matrix,
    position_marginal,
)
from steppe.diagnostics.exact import (
    stationary_distribution,
    target_distribution,
    total_variation,
    transition_matrix,
)
from steppe.targets.bernoulli import paper_bernoulli
from twins import quadratic_target, quick_jit, twin_of

pytestmark = pytest.mark.usefixtures("float64")

MATRIX_TOLERANCE = 1e-12
CLOSED_FORM_TOLERANCE = 1e-10
GRID_TOLERANCE = 1e-6


# ---- one step ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_one_step_of_dula_has_the_oracles_distribution(domain):
    target = target_named(domain, "smooth")
    space, _, gradient = twin_of(target)
    expected = oracle.dula_matrix(space, gradient, step_size=0.7)
    found = transition_matrix(steppe.dula(step_size=0.7), target)
    np.testing.assert_allclose(found, expected, rtol=0, atol=MATRIX_TOLERANCE)


@quick_jit
def joint_position_distributions(sampler, center):
    """Distribution of the next position of `edula` from every position beside one center."""
    density, (block,) = sampler.density, sampler.recipe.blocks
    positions = density.domain.enumerate()

    def row(position):
        distribution = block.proposal.at(density, density.evaluate(position, center))
        return jax.vmap(lambda value: jnp.exp(jnp.sum(distribution.position.log_prob_terms(value)[0])))(
            positions
        )

    return jax.vmap(row)(positions)


@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_one_step_given_the_center_has_the_oracles_distribution(domain):
    target = target_named(domain, "smooth")
    center, (space, _, gradient) = center_for(target.domain), twin_of(target)
    expected = oracle.dula_matrix(space, gradient, step_size=0.7, center=center, coupling_variance=0.4)
    sweep = transition_matrix(steppe.edula_glu(step_size=0.7, coupling_variance=0.4), target, center=center)
    joint = joint_position_distributions(
        steppe.edula(step_size=0.7, center_step_size=0.2, coupling_variance=0.4).build(target, audit=False),
        center,
    )
    np.testing.assert_allclose(sweep, expected, rtol=0, atol=MATRIX_TOLERANCE)
    np.testing.assert_allclose(joint, expected, rtol=0, atol=MATRIX_TOLERANCE)


def noisy_sigmoid(logits: np.ndarray, variance: float) -> np.ndarray:
    """E sigmoid(z + N(0, variance)); equally spaced nodes are exponentially accurate for it."""
    nodes = np.arange(-9.0, 9.0, 0.05)
    weights = np.exp(-(nodes**2) / 2)
    values = 1 / (1 + np.exp(-(logits[..., None] + np.sqrt(variance) * nodes)))
    return values @ weights / weights.sum()


def noisy_flip_matrix(target: steppe.Target, step_size: float, coupling_variance: float) -> np.ndarray:
    """Transition matrix of DULA whose flip logits carry noise of variance |jump|² / (4η)."""
    positions, twin = np.asarray(target.domain.enumerate()), twin_of(target)
    assert isinstance(target.domain, steppe.Ordinal)
    low, high = target.domain.levels
    jump = low + high - 2 * positions
    slopes = np.array([twin.gradient(position) for position in positions])
    logits = 0.5 * slopes * jump - jump**2 / (2 * step_size)
    flips = noisy_sigmoid(logits, (high - low) ** 2 / (4 * coupling_variance))
    is_flipped = positions[:, None] != positions
    return np.where(is_flipped, flips[:, None], 1 - flips[:, None]).prod(axis=-1)


@pytest.mark.parametrize("coupling_variance", [0.3, 2.0])
@pytest.mark.parametrize("domain", ["binary", "spin"])
def test_glu_without_correction_is_dula_with_noisy_logits(domain, coupling_variance):
    target = target_named(domain, "smooth")
    found = glu_transition_matrix(
        steppe.edula_glu(step_size=0.7, coupling_variance=coupling_variance), target
    )
    expected = noisy_flip_matrix(target, 0.7, coupling_variance)
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSED_FORM_TOLERANCE)


@quick_jit
def sweep_distributions(sampler, offsets):
    """Distribution of the next position of `edula_glu` from every position, per offset of its center."""
    density, block = sampler.density, sampler.recipe.blocks[1]
    positions = density.domain.enumerate()

    def distribution(position, offset):
        given = block.proposal.at(density, density.evaluate(position, position + offset))
        return jax.vmap(lambda value: jnp.exp(jnp.sum(given.log_prob_terms(value)[0])))(positions)

    return jax.vmap(jax.vmap(distribution, (None, 0)), (0, None))(positions, offsets)


def test_sites_of_a_glu_step_are_independent_after_the_center_is_integrated_out():
    target, η = quadratic_target(steppe.Binary(2)), 0.5
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    offsets = np.sqrt(η) * np.array(list(itertools.product(nodes, nodes)))
    joint_weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    distributions = np.asarray(
        sweep_distributions(steppe.edula_glu(step_size=0.7, coupling_variance=η).build(target), offsets)
    )
    found, expected = joint_weights @ distributions, noisy_flip_matrix(target, 0.7, η)
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSED_FORM_TOLERANCE)


# ---- stationary distributions on quadratic log-densities ----------------------------------------------


def langevin_distribution(target: steppe.Target, gradient, stiffness: float) -> np.ndarray:
    """The distribution Z_α π, which DULA with 1/α = stiffness leaves invariant if U is quadratic.

    Z_α(θ) = Σ_θ' exp{½ ∇U(θ)·(θ' − θ) − |θ' − θ|² / (2α)}.
    """
    positions = np.asarray(target.domain.enumerate())
    slopes = np.array([gradient(position) for position in positions])
    jumps = positions - positions[:, None]
    scores = 0.5 * slopes[:, None] * jumps - 0.5 * stiffness * jumps**2
    scores = scores.reshape(len(positions), len(positions), -1).sum(axis=-1)
    stationary = np.log(target_distribution(target)) + np.logaddexp.reduce(scores, axis=1)
    distribution = np.exp(stationary - stationary.max())
    return distribution / distribution.sum()


@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_dula_on_a_quadratic_target_is_reversible_about_its_normaliser_times_the_target(domain):
    target = quadratic_target(DOMAINS[domain])
    for step_size in (0.3, 2.0):
        matrix = transition_matrix(steppe.dula(step_size=step_size), target)
        distribution = langevin_distribution(target, twin_of(target).gradient, 1 / step_size)
        flow = distribution[:, None] * matrix
        np.testing.assert_allclose(
            stationary_distribution(matrix), distribution, rtol=0, atol=CLOSED_FORM_TOLERANCE
        )
        np.testing.assert_allclose(flow, flow.T, rtol=0, atol=MATRIX_TOLERANCE)


LATTICES = {
    "one bit": steppe.Binary(1),
    "two bits": steppe.Binary(2),
    "two ternary sites": steppe.Ordinal(2, [-1.0, 0.0, 1.0]),
}
# (α, α_a, η); the last has 1/α_eff < 0, where DULA has no such step but its formula still holds.
EDULA_SETTINGS = [(0.2, 0.1, 0.1), (0.15, 0.3, 0.2), (0.4, 0.1, 0.1)]
NUM_NODES = 60  # spacing below 0.4 √α_a, reach 6.5 standard deviations: errors of 3e-9 were measured


def edula_position_distribution(target: steppe.Target, α: float, α_a: float, η: float) -> np.ndarray:
    spread = np.sqrt(η / (1 - α_a / (4 * η)))  # of the center about the position
    assert isinstance(target.domain, steppe.Ordinal)
    low, *_, high = target.domain.levels
    nodes = np.linspace(low - 6.5 * spread, high + 6.5 * spread, NUM_NODES)
    kernel = edula_kernel(steppe.edula(step_size=α, center_step_size=α_a, coupling_variance=η), target, nodes)
    start = np.ones((target.domain.num_states, *[NUM_NODES] * target.domain.num_sites))
    return position_marginal(edula_stationary(kernel, start, tolerance=1e-9))


@pytest.mark.parametrize("lattice", LATTICES)
def test_edula_on_a_quadratic_target_has_the_distribution_of_dula_at_the_effective_step(lattice):
    target = quadratic_target(LATTICES[lattice])
    for α, α_a, η in EDULA_SETTINGS:
        found, stiffness = edula_position_distribution(target, α, α_a, η), 1 / α - 1 / (4 * η - α_a)
        closed_form = langevin_distribution(target, twin_of(target).gradient, stiffness)
        np.testing.assert_allclose(found, closed_form, rtol=0, atol=GRID_TOLERANCE)
        assert (
            total_variation(found, target_distribution(target)) > 0.03
        )  # the bias is far above the tolerance
        if stiffness > 0:
            dula = stationary_distribution(transition_matrix(steppe.dula(step_size=1 / stiffness), target))
            np.testing.assert_allclose(found, dula, rtol=0, atol=GRID_TOLERANCE)


# ---- beyond quadratic ----------------------------------------------------------------------------------


def test_dula_does_not_approach_the_target_as_the_step_shrinks():
    """One hidden unit: flips weigh gradients at both ends (trapezoid rule) instead of the difference."""
    target = steppe.Target(lambda x: jax.nn.softplus(6 * x[0] - 5), steppe.Binary(1))
    slopes = [6 / (1 + np.exp(5 - 6 * end)) for end in (0, 1)]
    limit = 1 / (1 + np.exp(-np.mean(slopes)))
    found = stationary_distribution(transition_matrix(steppe.dula(step_size=0.02), target))[1]
    assert found == pytest.approx(limit, abs=1e-9)
    assert round(found, 3) == 0.901
    assert round(target_distribution(target)[1], 3) == 0.787


@pytest.mark.parametrize(("step_size", "asymmetry"), [(0.2, 8.6e-5), (10.0, 1.0e-2)])
def test_dula_is_not_reversible_on_the_four_bit_table(step_size, asymmetry):
    matrix = transition_matrix(steppe.dula(step_size=step_size), paper_bernoulli())
    flow = stationary_distribution(matrix)[:, None] * matrix
    assert np.abs(flow - flow.T).max() == pytest.approx(asymmetry, rel=0.02)


@pytest.mark.parametrize(("step_size", "distance"), [(0.2, 0.0018), (0.6, 0.038)])
def test_normaliser_times_target_is_not_the_distribution_of_dula_on_the_four_bit_table(step_size, distance):
    target = paper_bernoulli()
    distribution = stationary_distribution(transition_matrix(steppe.dula(step_size=step_size), target))
    closed_form = langevin_distribution(target, oracle.multilinear_gradient, 1 / step_size)
    assert total_variation(distribution, closed_form) == pytest.approx(distance, rel=0.03)
