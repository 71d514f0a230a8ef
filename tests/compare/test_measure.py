"""Figures of a comparison are those of the run they are said to be of."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
import scipy.stats

import steppe
from exact_targets import polynomial_target
from steppe.compare.measurement import NUM_MEASURED, Spending, measure
from steppe.diagnostics.efficiency import efficiency
from steppe.diagnostics.exact import expected_total_variation, target_distribution, total_variation
from steppe.report.present_comparison import Request, present_comparison

TARGET = polynomial_target(steppe.Binary(4), 1.0)
KEY = jax.random.key(8)
SEEDS = 5
SPENDING = Spending(evaluations_per_step=1.0, num_warmup=20, num_draws=40, thinning=3)
# Far from the step size that warm-up would find, so that adapting it would show.
RECIPE = steppe.dmala(step_size=3.0)


@pytest.fixture(scope="module")
def measured():
    return measure(RECIPE, TARGET, KEY, SPENDING, SEEDS, None, True)


@pytest.fixture(scope="module")
def trace():
    """The same run, made in one go."""
    run = steppe.sample(
        TARGET, RECIPE, key=KEY, num_chains=SEEDS, num_warmup=20, num_draws=40, thinning=3, adapt=False
    )
    return run.trace


def test_means_are_those_of_each_seed(measured, trace):
    for name in ("log_density", "acceptance_rate"):
        np.testing.assert_allclose(getattr(measured, name), trace.statistic(name).mean(axis=1), rtol=1e-6)
    changed = trace.statistic("num_flips").mean(axis=1) / 3
    np.testing.assert_allclose(measured.flips_per_step, changed, rtol=1e-6)
    assert measured.effective == efficiency(trace)


def test_occupancies_count_the_states_of_each_seed(measured, trace):
    codes = trace.levels().astype(int) @ [8, 4, 2, 1]
    expected = [[(seed == state).mean() for state in range(16)] for seed in codes]
    np.testing.assert_allclose(measured.occupancies, expected)


def test_roughness_is_the_mean_absolute_change_over_draws_spread_evenly(measured, trace):
    rows = np.linspace(0, 39, NUM_MEASURED).astype(int)
    states = TARGET.domain.from_levels(trace.levels()[:, rows])
    tables = np.asarray(jax.vmap(jax.vmap(TARGET.differences))(states))
    # Of two levels one is no change and counts zero.
    np.testing.assert_allclose(measured.roughness, np.abs(tables).sum(axis=-1).mean(axis=(1, 2)), rtol=1e-5)


def tables_of(measured) -> dict[str, dict[str, Any]]:
    request = Request("test", TARGET, SEEDS, 140, "none", 0, "", 0.0)
    results = present_comparison(request, {"one": measured}, {}, ["It wins."])
    return {name: results.table(name).rows[-1] for name in ("efficiency", "spending", "distribution")}


def test_effective_draws_are_per_thousand_kept_evaluations_of_all_seeds(measured):
    row = tables_of(measured)["efficiency"]
    found, worth = row["ess_per_evaluation"], measured.effective
    scale = 1000 / (SEEDS * 40 * 3)
    assert found.value == pytest.approx(scale * worth.num_effective)
    half = scipy.stats.t.ppf(0.975, SEEDS - 1) * scale * worth.standard_error
    assert found.high - found.value == pytest.approx(half)
    assert row["ess_per_second"].value == pytest.approx(worth.num_effective / measured.seconds)


def test_step_size_that_was_left_to_the_domain_is_shown_in_its_units(measured):
    default = dataclasses.replace(measured, recipe=steppe.dmala())
    assert tables_of(default)["spending"]["step_size"] == pytest.approx(0.2 * TARGET.domain.squared_unit)


def test_distances_are_beside_those_of_as_many_independent_draws(measured):
    row, distribution = tables_of(measured)["distribution"], target_distribution(TARGET)
    assert row["tv"].value == pytest.approx(
        np.mean([total_variation(s, distribution) for s in measured.occupancies])
    )
    assert row["tv_perfect"] == pytest.approx(expected_total_variation(distribution, 40))


@pytest.mark.slow
def test_every_copy_of_an_ensemble_counts_as_a_draw():
    copies = measure(steppe.robust_ensemble(replicas=3), TARGET, KEY, SPENDING, SEEDS, None, True)
    expected = expected_total_variation(target_distribution(TARGET), 3 * 40)
    assert tables_of(copies)["distribution"]["tv_perfect"] == pytest.approx(expected)


@pytest.mark.slow
def test_tuning_spends_its_budget_also_where_a_step_costs_several_evaluations():
    found = steppe.compare(
        TARGET, [steppe.dmala_cyclical()], key=KEY, seeds=2, budget=400, tuning_budget=40_000
    )
    assert 0.95 * 40_000 < found.tuning["dmala_cyclical"].num_evaluations <= 40_000
