"""Figures of quantities, counts, ensembles and one real run."""

import jax
import numpy as np
import pytest
from arviz_stats.base.array import array_stats

import steppe
from steppe.diagnostics.chain_verdicts import unique_rows
from steppe.diagnostics.findings import diagnose
from steppe.diagnostics.mixing import assess, count_cost
from steppe.diagnostics.quantity import measure
from steppe.diagnostics.sites import as_paths
from unit.synthetic import fair_bits, trace_of, without_levels

# ---- quantities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("persistence", [0.0, 0.9])
def test_figures_are_those_of_arviz(persistence):
    values = np.random.default_rng(0).normal(size=(4, 300))
    for draw in range(1, 300):
        values[:, draw] += persistence * values[:, draw - 1]
    figures = measure("walk", values)
    assert figures.ess == pytest.approx(array_stats.ess(values))
    assert figures.rhat == pytest.approx(array_stats.rhat(values))
    assert figures.mcse == pytest.approx(array_stats.mcse(values))
    assert (figures.mean, figures.sd) == pytest.approx((values.mean(), values.std(ddof=1)))


def test_constant_quantity_has_no_rhat_and_no_error():
    figures = measure("constant", np.full((4, 100), 0.1))
    assert (figures.sd, figures.mcse) == (0, 0)
    assert np.isnan(figures.rhat)
    assert np.isnan(figures.ess)


def test_few_draws_have_a_mean_and_nothing_else():
    figures = measure("few", np.arange(4.0).reshape(2, 2))
    assert figures[:3] == ("few", 1.5, pytest.approx(np.std(np.arange(4), ddof=1)))
    assert np.isnan(figures[3:]).all()


def test_quantity_constant_in_every_chain_but_not_between_has_infinite_rhat():
    assert measure("frozen", np.arange(4.0)[:, None] * np.ones(100)).rhat == np.inf


def test_balanced_two_valued_quantity_has_a_finite_rhat():
    # Its distance from the median never varies, on which the rank-normalised R-hat divides by zero.
    values = np.where(
        np.random.default_rng(0).permuted(np.arange(400).reshape(4, 100) % 2, axis=1), 1.0, -1.0
    )
    assert measure("spin", values).rhat == pytest.approx(1, abs=0.05)


def test_single_chain_has_no_rhat_and_is_remarked_on():
    mixing = assess(trace_of(fair_bits(1, 2000)))
    assert np.isnan(mixing.log_density.rhat)
    ok, findings = diagnose(mixing)
    assert ok
    assert findings == ["A single chain cannot show that it misses a mode. Run at least four."]


def test_observable_sees_positions_and_fails_the_run_when_chains_disagree_on_it():
    domain = steppe.Spin(6)
    levels = fair_bits()
    mixing = assess(trace_of(levels, domain), observables={"m": lambda positions: positions.mean(axis=-1)})
    assert mixing.quantities[1].mean == pytest.approx(2 * levels.mean() - 1, abs=1e-6)
    shift = iter(range(4))
    worse = assess(trace_of(levels, domain), observables={"m": lambda x: x.mean(-1) + next(shift)})
    ok, findings = diagnose(worse)
    assert not ok
    assert any("R-hat of 'm' is" in finding for finding in findings)


@pytest.mark.parametrize(
    ("observables", "words"),
    [
        ({"m": lambda positions: positions.mean()}, "must turn positions of shape"),
        ({"log_density": lambda positions: positions.mean(-1)}, "cannot be called 'log_density'"),
    ],
)
def test_unfit_observables_are_refused(observables, words):
    with pytest.raises(steppe.errors.RunError, match=words):
        assess(trace_of(fair_bits()), observables=observables)


def test_observables_without_draws_are_refused():
    with pytest.raises(steppe.errors.RunError, match="need the draws"):
        assess(without_levels(trace_of(fair_bits())), observables={"m": lambda x: x.mean(-1)})


def test_run_without_draws_after_warmup_is_refused():
    with pytest.raises(steppe.errors.RunError, match="no draws after warm-up"):
        assess(trace_of(fair_bits(num_draws=10), num_warmup_rows=10))


def test_observable_that_is_not_finite_is_remarked_on():
    mixing = assess(trace_of(fair_bits()), observables={"bad": lambda x: np.full(len(x), np.nan)})
    assert any("'bad' that is not finite" in finding for finding in diagnose(mixing).findings)


def test_slow_chains_are_told_how_much_longer_to_run():
    values = np.repeat(np.random.default_rng(0).normal(size=(4, 50)), 8, axis=1)
    mixing = assess(trace_of(fair_bits(), log_density=values))
    assert any("times as long" in finding for finding in diagnose(mixing).findings)


@pytest.mark.parametrize(("num_sites", "num_levels"), [(3, 2), (70, 2), (4, 5), (9, 3)])
def test_unique_states_are_counted_exactly(num_sites, num_levels):
    rows = np.random.default_rng(0).integers(0, num_levels, (500, num_sites)).astype(np.uint8)
    rows[250:] = rows[:250]
    count, names = unique_rows(rows)
    distinct, expected = np.unique(rows, axis=0, return_inverse=True)
    assert count == len(distinct)
    assert len(set(zip(names.tolist(), expected.ravel().tolist(), strict=True))) == count


def test_counts_add_up():
    levels = fair_bits(num_sites=3)
    trace = trace_of(levels)
    trace.arrays["num_nonfinite"][1, 3] = 2
    mixing = assess(trace, thinning=2)
    assert mixing.num_unique == 8
    assert mixing.flip_rate == pytest.approx(trace.arrays["num_flips"].mean() / (2 * 3))
    assert mixing.num_nonfinite == 2
    assert "2 proposals had a log-density" in diagnose(mixing).findings[-1]


@pytest.mark.parametrize("per_step", [3, 0.5, None])
def test_evaluations_are_counted_where_the_cost_of_a_step_is_recorded(per_step):
    levels = np.random.default_rng(0).integers(0, 2, (2, 50, 3, 4)).astype(np.uint8)
    spent = count_cost(len(levels), levels.shape[1], thinning=5, per_step=per_step, seconds=1.0)
    assert spent == (2 * 50 * 5, per_step and 2 * 50 * 5 * per_step, 1.0)


# ---- ensembles -----------------------------------------------------------------------------------


def copies(num_replicas=3, **counts):
    return np.stack([fair_bits(seed=10 + copy, **counts) for copy in range(num_replicas)], axis=2)


def test_copies_of_an_ensemble_are_judged_one_by_one_and_measured_together():
    levels = copies()
    mixing = assess(trace_of(levels))
    assert mixing.num_replicas == 3
    assert mixing.sites.count("mixed") == 6
    log_density = trace_of(levels).statistic("log_density").astype(float)
    assert mixing.log_density.ess == pytest.approx(array_stats.ess(log_density.mean(axis=2)))
    assert mixing.log_density.sd == pytest.approx(log_density.std(ddof=1))
    assert diagnose(mixing) == (True, [])


def test_copy_that_is_stuck_among_moving_ones_is_found():
    levels = copies()
    levels[2, :, 1, 0] = 1
    mixing = assess(trace_of(levels))
    assert mixing.sites.labels[0] == "not converged"
    assert np.argwhere(mixing.sites.is_held).tolist() == [[2 * 3 + 1, 0]]
    assert any("chain 2 never left a level" in finding for finding in diagnose(mixing).findings)


def test_ensembles_around_different_centers_are_grouped():
    levels = copies(num_sites=12)
    levels[[0, 1], :, :, :8] = 1
    levels[[2, 3], :, :, :8] = 0
    assert assess(trace_of(levels)).chains.modes == ((0, 1), (2, 3))


def test_paths_keep_copies_of_a_chain_together():
    levels = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    np.testing.assert_array_equal(as_paths(levels)[1 * 4 + 2], levels[1, :, 2])


# ---- a real run -----------------------------------------------------------------------------------


def test_real_run_of_the_paper_s_four_bits_is_ok():
    from steppe.targets.bernoulli import paper_bernoulli

    run = steppe.sample(
        paper_bernoulli(), steppe.dmala(), key=jax.random.key(0), num_warmup=200, num_draws=500
    )
    ok, findings = run.diagnose()
    assert ok
    assert findings == []
    assert run.summary().mixing.sites.count("mixed") == 4
