"""The appendix's statements on ergodicity, beside what one bit and its center really do."""

import math

import numpy as np
import pytest

from steppe_edlp.theory import ergodicity, paper
from steppe_edlp.theory.confined import confined_chain
from theory_targets import CONCAVE_BIT, FLAT_BIT, HIDDEN_UNIT, PAPER_BOX

VARIANCE = 0.5


def test_the_minorisation_holds_below_one_and_fails_where_its_weight_is_negative():
    below, beyond = (
        ergodicity.minorization_theorem(FLAT_BIT, 0.5, ratio * VARIANCE, VARIANCE) for ratio in (0.3, 3.5)
    )
    assert below.holds_here
    assert below.value == pytest.approx(4.07e-10, rel=1e-2)
    assert below.exact == pytest.approx(5.65e-9, rel=1e-2)
    assert beyond.holds_here is False


def test_the_smallest_density_is_that_of_a_step_between_the_farthest_corners():
    # One flat bit: at center R the position most against its pull, and the new center at −R.
    found = ergodicity.minorization_theorem(FLAT_BIT, 0.5, 0.15, VARIANCE)
    radius = math.sqrt(2 * paper.drift_theorem(FLAT_BIT, 0.15, VARIANCE).offset) / (1 - 0.3)
    corners = []
    for old in (0.0, 1.0):
        for center in (-radius, radius):
            jump = np.array([0.0, 1.0]) - old
            scores = -0.5 * (old - center) / VARIANCE * jump - jump**2 / (2 * 0.5)
            position = np.exp(scores - np.logaddexp(*scores)).min()
            mean = center + 0.15 / 2 * (old - center) / VARIANCE
            gap = max(abs(radius - mean), abs(-radius - mean))
            corners.append(position * math.exp(-(gap**2) / 0.3) / math.sqrt(2 * math.pi * 0.15))
    assert found.exact == pytest.approx(min(corners), rel=1e-6)


def test_edula_is_harris_recurrent_below_four_although_the_proof_asks_for_more():
    published, beyond = (
        ergodicity.check_harris(FLAT_BIT, 0.5, ratio * VARIANCE, VARIANCE) for ratio in (0.0025, 4.5)
    )
    assert published.holds_here
    assert not any(published.assumptions.values())
    assert not beyond.holds_here


@pytest.mark.parametrize("ratio", [0.1, 0.7])
def test_the_printed_rate_says_nothing(ratio):
    found = ergodicity.geometric_rate(FLAT_BIT, 0.5, ratio * VARIANCE, VARIANCE)
    assert found.value == 1
    assert found.holds_here
    assert found.exact == pytest.approx({0.1: 0.9633, 0.7: 0.7741}[ratio], abs=2e-4)


def test_the_drift_of_edmala_fails_where_the_printed_factor_is_too_small():
    found = ergodicity.edmala_drift(FLAT_BIT, 0.5, 0.7 * VARIANCE, VARIANCE)
    assert found.value == pytest.approx(2 * 0.3**2)
    assert found.exact == pytest.approx((1 - 0.35) ** 2, abs=5e-3)
    assert found.holds_here is False
    assert ergodicity.edmala_drift(FLAT_BIT, 0.5, 0.1 * VARIANCE, VARIANCE).holds_here


def test_the_lemma_behind_theorem_5_6_holds_where_the_theorem_does_not():
    lemma = ergodicity.edmala_minorization(CONCAVE_BIT, 1.0, 0.1, 10.0, center_box=(-1.0, 2.0))
    assert lemma.holds_here
    assert lemma.exact == pytest.approx(4.595, rel=1e-2)
    assert paper.theorem_5_6(CONCAVE_BIT, 1.0, 0.1, 10.0, center_box=(-1.0, 2.0)).holds_here is False


def test_variances_of_means_tend_to_the_limit_of_the_theorem():
    chain = confined_chain(HIDDEN_UNIT, 0.3, 0.2, VARIANCE, PAPER_BOX, is_adjusted=False)
    positions = np.repeat([0.0, 1.0], len(chain.matrix) // 2)
    limit = ergodicity.find_limit_variance(chain.matrix, positions)
    near, far = (ergodicity.find_mean_variance(chain.matrix, positions, steps) for steps in (20, 2000))
    assert abs(far / limit - 1) < 0.02 < abs(near / limit - 1)


@pytest.mark.slow
def test_batch_means_of_edula_have_the_exact_variance_and_its_own_mean():
    # Two gates at a level of 1 % each; means are within four standard errors, 6e-5.
    found = ergodicity.compare_limit_theorem(HIDDEN_UNIT, 0.3, 0.2, VARIANCE)
    assert found.low <= found.exact <= found.high
    assert abs(found.mean - found.stationary_mean) < 4 * found.standard_error
    assert abs(found.mean - found.target_mean) > 8 * found.standard_error
