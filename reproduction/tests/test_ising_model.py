"""The authors' 25 spins: the matrix, and sums over groups of spins beside sums over all states."""

import jax
import numpy as np
import pytest

from small_experiments import shrink
from steppe_edlp.engine import carry_out
from steppe_edlp.ising.model import FIELD, NUM_SPINS, SCALE, make_matrix, make_target, sum_exactly
from steppe_edlp.request import Request


def test_the_matrix_is_that_of_the_authors():
    matrix = make_matrix()
    assert (matrix[10:15] == 1).all()
    others = np.delete(matrix, range(10, 15), axis=0)
    assert (others.sum(axis=1) == 20).all()
    assert {matrix[0, 0], matrix[0, 24], matrix[9, 15], matrix[24, 0]} == {10.0}


def test_log_density_is_the_quadratic_form_of_the_spins():
    target, matrix = make_target(), make_matrix()
    bits = np.asarray(target.domain.draw(jax.random.key(0), (20,)))
    spins = 2.0 * bits - 1
    expected = SCALE * np.einsum("ri,ij,rj->r", spins, matrix, spins) + FIELD * spins.sum(axis=1)
    np.testing.assert_allclose(jax.vmap(target.log_density)(bits), expected, rtol=1e-5)


@pytest.mark.slow
def test_sums_over_groups_are_those_over_all_states():
    matrix, places = SCALE * make_matrix(), np.arange(NUM_SPINS)
    total, first, second, up = 0.0, 0.0, 0.0, np.zeros(NUM_SPINS + 1)
    for begin in range(0, 2**NUM_SPINS, 2**19):
        states = np.arange(begin, begin + 2**19)
        spins = 2.0 * ((states[:, None] >> places) & 1) - 1
        energy = np.sum((spins @ matrix) * spins, axis=1) + FIELD * spins.sum(axis=1)
        weights = np.exp(energy - 60)
        total += weights.sum()
        first += weights @ energy
        second += weights @ energy**2
        up += np.bincount(((spins.sum(axis=1) + NUM_SPINS) / 2).astype(int), weights, NUM_SPINS + 1)
    exact = sum_exactly()
    assert exact.log_density == pytest.approx(first / total, rel=1e-10)
    assert exact.spread == pytest.approx(np.sqrt(second / total - (first / total) ** 2), rel=1e-8)
    np.testing.assert_allclose(exact.magnetization, up / total, atol=1e-12)


def test_probabilities_of_the_numbers_of_spins_up_sum_to_one_and_odd_ones_lead():
    exact = sum_exactly()
    assert exact.magnetization.sum() == pytest.approx(1)
    assert exact.magnetization[25] > exact.magnetization[23] > exact.magnetization[24]


@pytest.mark.parametrize("asked", ["sound", pytest.param("published", marks=pytest.mark.slow)])
def test_a_short_run_reports_every_sampler_beside_the_exact_sums(asked, tmp_path):
    small = shrink("ising", num_seeds=2, run={"num_chains": 2, "num_warmup": 5, "num_draws": 10})
    results = carry_out(small, Request(protocol=asked, samplers=("dula", "edula")), tmp_path, progress=False)
    rows = results.table("spins").rows
    assert [row["sampler"] for row in rows] == ["π", "dula", "edula"]
    assert rows[0]["log_density"] == pytest.approx(55.26, abs=0.01)
    assert results.verdicts
