"""Computable theory: constants against brute force, bounds against exact numbers."""

import itertools
import math

import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.stats import chi

import steppe
from exact_targets import DOMAINS
from steppe import theory
from steppe.diagnostics.exact import (
    exact_tv,
    integrated_autocorrelation_time,
    proximal_matrix,
    relaxation_time,
    spectral_gap,
    stationary_distribution,
    target_distribution,
    transition_matrix,
)
from steppe.errors import DomainError, RecipeError
from theory_targets import (
    BERNOULLI,
    HIDDEN_UNIT,
    PAPER_BOX,
    next_square,
    quadratic_target,
    ring,
)

# ---- constants -------------------------------------------------------------------------------------------


def test_constants_of_the_paper_target_are_the_known_ones():
    found = theory.constants(BERNOULLI, center_box=PAPER_BOX)
    assert found.curvature.kind == "multilinear"
    assert found.curvature.lipschitz == pytest.approx(7.108, abs=5e-4)
    assert found.curvature.concavity == pytest.approx(-6.371, abs=5e-4)  # not concave: Assumption 5.2 fails
    assert (found.diameter, found.largest_norm) == (2, 2)
    assert (found.center_diameter, found.center_distance, found.center_alignment) == (4, 3, -9)
    assert found.log_normalizer == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("domain", ["spin", "categorical"])
def test_curvature_of_a_quadratic_is_that_of_its_matrix(domain):
    target, matrix = quadratic_target(DOMAINS[domain])
    found = theory.constants(target).curvature
    eigenvalues = np.linalg.eigvalsh(matrix)
    assert found.kind == "quadratic"
    assert found.lipschitz == pytest.approx(np.abs(eigenvalues).max(), rel=1e-4)
    assert found.concavity == pytest.approx(-eigenvalues.max(), rel=1e-4)


def test_sampled_curvature_is_labelled_and_bounds_from_below():
    found = theory.constants(HIDDEN_UNIT).curvature
    assert found.kind == "sampled"
    assert not found.is_exact
    assert 8 < found.lipschitz <= 9 + 1e-4  # the second derivative is 36 σ(1 − σ), at most 9
    assert found.concavity < 0


@pytest.mark.parametrize("domain", [steppe.Ordinal(2, [-1.0, 0.1, 0.8]), steppe.Categorical(2, [2, 3])])
@pytest.mark.parametrize("box", [(-0.5, 1.5), (2.0, 3.0), (0.2, 0.4)])
def test_box_constants_are_the_extremes_over_states_and_corners(domain, box):
    size = math.prod(domain.shape)
    corners = np.array(list(itertools.product(box, repeat=size)))
    states = np.asarray(domain.enumerate()).reshape(-1, size)
    residuals = (states[:, None] - corners).reshape(-1, size)
    target, _ = quadratic_target(domain)
    found = theory.constants(target, center_box=box)
    assert found.center_distance == pytest.approx(np.linalg.norm(residuals, axis=1).max(), rel=1e-5)
    assert found.center_alignment == pytest.approx((residuals @ residuals.T).min(), abs=1e-5)
    pairs = states[:, None] - states
    assert found.diameter == pytest.approx(np.linalg.norm(pairs, axis=2).max(), rel=1e-5)


def test_confining_centers_changes_the_distribution_of_three_levels_and_not_that_of_bits():
    weights = theory.box_mass(steppe.Ordinal(1, 3), (-0.5, 2.5), 0.3)
    np.testing.assert_allclose(weights, [0.819, 0.994, 0.819], atol=5e-4)
    bits = theory.box_mass(steppe.Binary(2), PAPER_BOX, 0.1)
    np.testing.assert_allclose(bits, bits[0])


# ---- effective step ----------------------------------------------------------------------------------------


def test_effective_step_of_the_published_settings():
    found = theory.effective_step_size(0.2, 0.1, 0.1, target=BERNOULLI)
    assert found.value == pytest.approx(0.6)
    assert found.is_proper
    assert not found.is_exact
    assert not theory.effective_step_size(0.4, 0.08, 0.1).is_proper
    assert theory.effective_step_size(0.1, 4.0, 0.01).value == pytest.approx(0.1006, abs=5e-5)


def test_quadratic_distribution_is_that_of_dula():
    target, _ = quadratic_target(DOMAINS["ragged"], scale=0.3)
    distribution = stationary_distribution(transition_matrix(steppe.dula(step_size=0.5), target))
    np.testing.assert_allclose(theory.quadratic_distribution(target, 2.0), distribution, atol=1e-5)


# ---- true bounds -------------------------------------------------------------------------------------------


def test_edula_bias_bound_on_a_ring_is_valid_and_loose():
    field = np.random.default_rng(0).standard_normal(4).astype(np.float32)
    target = steppe.Target(Partial(ring, field), steppe.Binary(4))
    variance, center_step = 1.0, 0.1
    step_size = 1 / (10 + 1 / (4 * variance - center_step))  # 1/α_eff = 10
    found = theory.edula_bias_bound(target, step_size, variance, center_step)
    assert 2 * found.terms["B"] == pytest.approx(9.0e-2, abs=5e-4)
    assert found.exact == pytest.approx(1.055e-2, abs=1e-5)
    assert found.holds_here
    assert found.assumptions["log-density is quadratic"]


@pytest.mark.parametrize("domain", DOMAINS)
def test_edula_bias_bound_holds_for_random_quadratics(domain):
    target, _ = quadratic_target(DOMAINS[domain], seed=3, scale=0.4)
    for step_size in (0.1, 0.3, 1.0):
        found = theory.edula_bias_bound(target, step_size, 0.5, 0.2)
        assert found.exact is not None
        assert 0 < found.exact <= found.value < 2


@pytest.mark.parametrize("dimension", [1, 3, 50])
def test_center_bias_is_the_distance_of_two_gaussians(dimension):
    # By quadrature of the densities of the radius; the variances are 1 and 4/3.
    radii, width = np.linspace(0, 30, 30_001, retstep=True)
    gap = chi.pdf(radii, dimension) - chi.pdf(radii, dimension, scale=math.sqrt(4 / 3))
    assert theory.center_bias(0.1, 0.1, dimension) == pytest.approx(np.abs(gap).sum() * width, abs=1e-3)


@pytest.mark.parametrize(
    ("variance", "bound", "gap"), [(1.0, 0.368, 0.753), (0.5, 0.135, 0.587), (0.1, 4.5e-5, 0.122)]
)
def test_glu_gap_bound_lies_below_the_gap(variance, bound, gap):
    found = theory.glu_gap_bound(BERNOULLI, variance)
    assert found.value == pytest.approx(bound, rel=1e-2)
    assert found.exact == pytest.approx(gap, abs=6e-4)
    assert found.holds_here


def test_exact_glu_leaves_the_target_invariant():
    matrix, distribution = proximal_matrix(BERNOULLI, 0.25), target_distribution(BERNOULLI)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(distribution @ matrix, distribution, atol=1e-5)
    floor = np.exp(
        -((np.asarray(BERNOULLI.domain.enumerate())[:, None] - BERNOULLI.domain.enumerate()) ** 2).sum(-1)
    )
    assert (matrix >= distribution * floor - 1e-6).all()  # K(θ, θ') ≥ π(θ') exp(−|θ − θ'|²/(4η)) at η = 1/4


def test_center_contracts_as_its_drift_condition_says():
    rng = np.random.default_rng(0)
    for ratio in (0.0025, 0.1, 0.5, 1.0, 2.5, 3.9):
        condition = theory.drift_condition(BERNOULLI.domain, ratio * 0.7, 0.7)
        assert condition.factor == abs(theory.drift_factor(ratio * 0.7, 0.7)) < 1
        centers = rng.normal(0, rng.choice([0.3, 3, 30], (200, 1)), (200, 4))
        states = rng.integers(0, 2, (200, 4))
        assert (
            next_square(centers, states, ratio) <= condition.factor * (centers**2).sum(1) + condition.offset
        ).all()


# ---- exact companions --------------------------------------------------------------------------------------


def test_two_state_chain_has_the_textbook_times():
    matrix = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert relaxation_time(matrix) == pytest.approx(1 / 0.4)
    assert integrated_autocorrelation_time(matrix, np.array([0.0, 1.0])) == pytest.approx(1.6 / 0.4)
    with pytest.raises(DomainError, match="the same at every state"):
        integrated_autocorrelation_time(matrix, np.ones(2))


def test_autocorrelation_time_of_a_chain_that_is_not_reversible_sums_its_correlations():
    matrix = np.random.default_rng(0).dirichlet(np.ones(5), 5)
    values, distribution = np.arange(5.0), stationary_distribution(matrix)
    centred = values - distribution @ values
    lags = [distribution @ (centred * (np.linalg.matrix_power(matrix, lag) @ centred)) for lag in range(60)]
    expected = (2 * sum(lags) - lags[0]) / lags[0]
    assert integrated_autocorrelation_time(matrix, values) == pytest.approx(expected, rel=1e-9)


def test_relaxation_times_of_the_published_step_sizes():
    assert relaxation_time(transition_matrix(steppe.dula(step_size=0.1225), BERNOULLI)) == pytest.approx(
        46, abs=0.5
    )
    assert relaxation_time(transition_matrix(steppe.dmala(step_size=0.1), BERNOULLI)) == pytest.approx(
        116, abs=0.5
    )


def test_bias_of_dula_and_gap_of_dmala_on_the_paper_target_are_the_known_ones():
    assert exact_tv(steppe.dula(step_size=0.6), BERNOULLI) == pytest.approx(0.139, abs=5e-4)
    assert exact_tv(steppe.dmala(step_size=0.6), BERNOULLI) < 1e-6
    matrix = transition_matrix(steppe.dmala(step_size=100.0), BERNOULLI)
    flat = np.isin(np.arange(16), [0b0100, 0b1001])
    assert spectral_gap(matrix) == pytest.approx(0.324, abs=5e-3)
    assert integrated_autocorrelation_time(matrix, flat) == pytest.approx(1.99, abs=0.02)


# ---- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: theory.effective_step_size(0.1, 0.1, 0.4), RecipeError, "diverges"),
        (lambda: theory.effective_step_size(0.0, 0.1, 0.1), RecipeError, "positive"),
        (lambda: theory.effective_step_size(0.1, -1.0, 0.1), RecipeError, "positive"),
        (lambda: theory.drift_factor(0.5, 0.1), RecipeError, "diverges"),
        (lambda: theory.glu_gap_bound(BERNOULLI, 0.0), RecipeError, "positive"),
        (lambda: theory.constants(BERNOULLI, center_box=(1.0, 0.0)), RecipeError, "lower one first"),
        (lambda: theory.box_mass(steppe.Binary(40), PAPER_BOX, 0.1), DomainError, "lists all states"),
        (lambda: proximal_matrix(quadratic_target(steppe.Binary(6))[0], 1.0), DomainError, "at most 4"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
