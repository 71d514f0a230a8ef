"""The paper's statements as printed, the targets on which they are false, and chains of confined centers."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import theory
from steppe.diagnostics.exact import stationary_distribution, target_distribution, transition_matrix
from steppe.errors import DomainError
from steppe_edlp.theory import paper
from steppe_edlp.theory.confined import confined_chain, joint_bias
from theory_targets import (
    BERNOULLI,
    CONCAVE_BIT,
    FLAT_BIT,
    HIDDEN_UNIT,
    PAPER_BOX,
    next_square,
    quadratic_target,
)


def test_dula_bias_as_printed_holds_on_the_paper_target_sixfold_loose():
    found = paper.dula_bias(BERNOULLI, 0.1)
    assert found.value == pytest.approx(4.0e-2, abs=5e-4)
    assert found.exact == pytest.approx(6.7e-3, abs=5e-5)
    assert found.holds_here
    assert not found.assumptions["log-density is quadratic (used in the proof)"]


def test_dula_bias_does_not_vanish_with_the_step_size_for_a_hidden_unit():
    assert target_distribution(HIDDEN_UNIT)[1] == pytest.approx(0.787, abs=5e-4)
    distribution = stationary_distribution(transition_matrix(steppe.dula(step_size=0.03), HIDDEN_UNIT))
    assert distribution[1] == pytest.approx(0.901, abs=5e-4)
    assert not paper.dula_bias(HIDDEN_UNIT, 0.03).holds_here


def test_proposition_5_4_is_violated_at_one_bit():
    found = paper.proposition_5_4(FLAT_BIT, 0.015, 0.1, 0.1, center_box=PAPER_BOX)
    assert all(found.assumptions.values())
    assert found.value == pytest.approx(3.9e-5, abs=5e-7)
    assert found.exact == pytest.approx(0.115, abs=6e-4)
    assert found.holds_here is False


def test_proposition_5_4_depends_on_a_constant_that_nothing_else_knows():
    shifted = steppe.Target(lambda x: 0 * jnp.sum(x) - 3.0, steppe.Binary(1))
    plain, moved = (
        paper.proposition_5_4(target, 0.1, 0.1, 0.1, center_box=PAPER_BOX) for target in (FLAT_BIT, shifted)
    )
    assert moved.log_value == pytest.approx(plain.log_value - 3, abs=1e-5)
    assert moved.exact == pytest.approx(plain.exact, abs=1e-9)


def test_theorem_5_5_is_violated_in_the_limit_of_many_steps():
    found = paper.theorem_5_5(FLAT_BIT, 0.015, 0.1, 0.1, math.inf, center_box=PAPER_BOX)
    assert found.exact == pytest.approx(0.057, abs=1e-3)
    assert found.holds_here is False
    early = paper.theorem_5_5(FLAT_BIT, 0.2, 0.1, 0.1, 10, center_box=PAPER_BOX)
    assert early.holds_here  # because it says nothing
    assert early.exact is not None
    assert early.value > 1 > early.exact


@pytest.mark.parametrize(
    ("center_step", "gap"),
    [(0.1, 0.0551), pytest.param(0.02, 0.01133, marks=pytest.mark.slow), (0.005, 0.00285)],
)
def test_theorem_5_6_is_violated_at_one_bit(center_step, gap):
    found = paper.theorem_5_6(CONCAVE_BIT, 1.0, center_step, 10.0, center_box=(-1.0, 2.0))
    assert all(found.assumptions.values())
    assert found.value == pytest.approx(0.067, abs=5e-4)
    assert found.exact == pytest.approx(gap, rel=5e-3)
    assert found.holds_here is False


def test_printed_bounds_say_nothing_on_the_paper_target():
    settings = (BERNOULLI, 0.2, 0.1, 0.1)
    bias = paper.proposition_5_4(*settings, center_box=PAPER_BOX)
    assert bias.log_value == pytest.approx(89.3, abs=0.05)
    assert bias.holds_here
    rate = paper.theorem_5_5(*settings, 1000, center_box=PAPER_BOX)
    assert rate.terms["log_eta_star"] == pytest.approx(-544, abs=0.5)
    gap = paper.theorem_5_6(*settings, center_box=PAPER_BOX)
    assert gap.log_value == pytest.approx(-338, abs=0.5)
    assert gap.holds_here is None
    assert not gap.assumptions["log-density is strongly concave (5.2)"]


def test_printed_drift_is_no_contraction_at_the_published_settings():
    printed = paper.drift_theorem(BERNOULLI, 0.01, 4.0)
    assert printed.value == pytest.approx(1.99, abs=5e-3)
    assert not printed.assumptions["λ < 1"]


@pytest.mark.parametrize(("ratio", "contracts"), [(0.29, False), (0.30, True), (1.70, True), (1.71, False)])
def test_printed_drift_contracts_only_between_029_and_171(ratio, contracts):
    assert paper.drift_theorem(BERNOULLI, ratio * 0.7, 0.7).assumptions["λ < 1"] == contracts


@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.45, 0.5, 0.8, 1.0, 1.3, 1.8, 3.0])
def test_printed_drift_holds_exactly_where_said(ratio):
    printed = paper.drift_theorem(BERNOULLI, ratio * 0.7, 0.7)
    states = np.ones((4000, 4))
    centers = np.linspace(-100, 100, 4000)[:, None] * states
    holds = (
        next_square(centers, states, ratio) <= printed.value * (centers**2).sum(1) + printed.offset
    ).all()
    assert holds == printed.holds_here


def test_without_confinement_the_printed_constants_are_infinite_and_the_bounds_empty():
    found = theory.constants(FLAT_BIT)
    assert found.center_distance == math.inf
    bound = paper.proposition_5_4(FLAT_BIT, 0.2, 0.1, 0.1)
    assert bound.value == math.inf
    assert bound.holds_here
    assert not bound.assumptions["centers are confined (5.3)"]
    assert paper.theorem_5_6(FLAT_BIT, 0.2, 0.1, 0.1).value == 0


# ---- one site with its center on a grid --------------------------------------------------------------------


# Centers reach eight standard deviations; the midpoint rule is then exact to rounding of float32 values of U.
GRID_TOLERANCE = 1e-5


@pytest.mark.parametrize("settings", [(0.2, 0.1, 0.1), (0.4, 0.08, 0.1)], ids=["proper", "formal"])
def test_position_distribution_of_edula_is_that_of_dula_at_the_effective_step(settings):
    step_size, variance, center_step = settings
    target, _ = quadratic_target(steppe.Ordinal(1, [0.0, 1.0, 2.5]), seed=1, scale=0.5)
    spread = math.sqrt(variance / (1 - center_step / (4 * variance)))
    chain = confined_chain(
        target, step_size, center_step, variance, (-8 * spread, 2.5 + 8 * spread), is_adjusted=False
    )
    marginal = stationary_distribution(chain.matrix).reshape(3, -1).sum(axis=1)
    step = theory.effective_step_size(step_size, variance, center_step, target=target)
    assert step.is_exact
    np.testing.assert_allclose(
        marginal, theory.quadratic_distribution(target, step.inverse), atol=GRID_TOLERANCE
    )
    assert np.abs(marginal - target_distribution(target)).max() > 0.01


@pytest.mark.parametrize("settings", [(0.1, 0.1, 0.1), (0.3, 0.3, 0.02)])
def test_joint_edula_bias_bound_holds_and_contains_the_bias_of_the_center(settings):
    step_size, variance, center_step = settings
    found = theory.edula_bias_bound(CONCAVE_BIT, step_size, variance, center_step, is_joint=True)
    assert theory.center_bias(variance, center_step, 1) < found.value
    assert joint_bias(CONCAVE_BIT, step_size, variance, center_step) <= found.value


def test_confined_chain_refuses_several_sites():
    with pytest.raises(DomainError, match="one site"):
        confined_chain(BERNOULLI, 0.1, 0.1, 0.1, PAPER_BOX, is_adjusted=True)
