"""Branches and errors that other tests leave out: each claim is one that a small change of the code broke.

Most look at one function at a size, or with an argument, at which it differs from what it could be taken for.
"""

import inspect
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import steppe
from contract.boltzmann import machine
from exact_targets import polynomial_target
from steppe import targets
from steppe.diagnostics import center_distribution, mixing
from steppe.diagnostics.chain_verdicts import _along_difference, _states, judge_chains
from steppe.diagnostics.findings import _list_rhat_failures, _looks_switched, diagnose
from steppe.diagnostics.flatness import annealed, local_entropy_ball, local_entropy_enumerated
from steppe.diagnostics.flatness.annealed import _redraw
from steppe.diagnostics.flatness.log_tables import smooth_within, steepest_roots
from steppe.diagnostics.mixing import assess
from steppe.diagnostics.states import map_states
from steppe.diagnostics.stationary import compute_in_double
from steppe.diagnostics.streamed import Streamed, _join_bins
from steppe.diagnostics.swaps import measure_swaps
from steppe.diagnostics.tails import estimate_tail
from steppe.errors import DomainError, RecipeError, RunError, RunMismatchError, StartError, TargetError
from steppe.kernel.blocks.color_updates import Agreements
from steppe.kernel.blocks.flat_histogram import FlatHistogramBlock
from steppe.kernel.blocks.gibbs import _differences_along
from steppe.kernel.blocks.reals import GivenReals
from steppe.kernel.blocks.site_scan import Due, Scan
from steppe.kernel.blocks.tempering import Replica
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import ANY_FINITE, NOT_NEGATIVE, scale_parameter
from steppe.kernel.proposals.center import CenterProposal
from steppe.kernel.proposals.gibbs_with_gradients import Path
from steppe.kernel.proposals.path_auxiliary import CutPath, CutPicks
from steppe.kernel.proposals.site_proposal import flip_changes, level_changes
from steppe.kernel.start_search import count_most_evaluations, measure_defects
from steppe.kernel.types import ChainState
from steppe.run import cycle_schedule, devices, hot_end, rounds, temperature_ladder, temperature_range
from steppe.run.annealing_state import Done
from steppe.run.background import Handle
from steppe.run.cooling import cool
from steppe.run.describe import _check_observables
from steppe.run.observables import MIN_BINS
from steppe.run.progress import join_parts
from steppe.run.sample import _choose_even
from steppe.run.schedule import Adaptive
from steppe.run.stopping import average_rows
from steppe.run.storage import identity
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.record import Positive
from steppe.run.temperature_ladder import Observed
from steppe.run.temperature_range import _read_states
from steppe.run.until import until
from unit.synthetic import fair_bits, trace_of, without_levels

KEY = jax.random.key(1)
SIX = steppe.Binary(6)


# ---- starts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_valid", "defects"),
    [
        (lambda x: x.sum() < 3, [0, 1, 3]),  # strictly less: at least one is missing
        (lambda x: x.sum() <= 3, [0, 0, 3]),
        (lambda x: ~(x.sum() == 3), [0, 1, 0]),
        (lambda x: ~~(x.sum() == 3), [1, 0, 3]),
        (lambda x: ~(x.sum() <= 3), [1, 1, 0]),
        (lambda x: jnp.all(x[:4] == 1), [2, 1, 0]),
        (lambda x: jnp.any(x[3:] == 1), [1, 1, 0]),
        (lambda x: ~jnp.any(x[2:] == 1), [0, 1, 4]),
    ],
    ids=["less", "at most", "not equal", "not not equal", "not at most", "all", "any", "none"],
)
def test_what_a_comparison_misses_and_what_its_negation_does(is_valid, defects):
    target = steppe.Target(lambda x: 0.0 * x.sum(), SIX, is_valid=is_valid)
    found = [float(measure_defects(target, jnp.zeros(6).at[:n].set(1.0))[1]) for n in (2, 3, 6)]
    # Beside one for what is excluded, and one more where it is: the log-density is not finite itself.
    assert [one - 1 - (one > 1) for one in found] == defects


def test_a_constraint_on_several_terms_is_seen_through_changes_of_shape():
    target = steppe.Target(lambda x: jnp.sum(jnp.where(x[:2].sum() == 2, x[:2], -jnp.inf)), SIX)
    found = [float(measure_defects(target, jnp.zeros(6).at[:n].set(1.0))[1]) for n in (0, 1)]
    assert found[0] - found[1] == 1  # how far the sum is from 2


def test_a_search_for_a_start_takes_longer_on_more_sites():
    few, many = (count_most_evaluations(steppe.Target(jnp.sum, steppe.Binary(n))) for n in (5, 50))
    assert 0 < few < many


# ---- recipes ---------------------------------------------------------------------------------------


def test_a_parameter_without_a_range_may_be_any_finite_number():
    assert [ANY_FINITE.contains(value) for value in (-1e30, 0.0, 1e30)] == [True] * 3
    assert [ANY_FINITE.contains(value) for value in (-np.inf, np.inf, np.nan)] == [False] * 3
    assert [NOT_NEGATIVE.contains(value) for value in (-1e-9, 0.0, 1e30, np.inf)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_coupling_of_more_replicas_has_as_many():
    assert StarCoupling(0.5, replicas=2).with_replicas(3).center_variance == pytest.approx(0.5 / 3)


def test_a_parameter_that_is_scaled_is_multiplied():
    assert (
        float(scale_parameter(StarCoupling(0.5), "coupling_variance", jnp.asarray(4.0)).coupling_variance)
        == 2
    )


def test_what_a_recipe_samples_is_said_by_its_center():
    target = polynomial_target(steppe.Binary(2), 1.0)
    said = {
        recipe.name: recipe.stationary(target).description
        for recipe in (steppe.dula(), steppe.edula(), steppe.dmala(), steppe.edmala())
    }
    assert said["dula"].startswith("biased, more so the larger")
    assert said["edula"].startswith("biased; for quadratic")
    assert said["dmala"].endswith("exactly.")
    assert said["edmala"].startswith("the joint")


def test_a_path_is_as_long_as_its_weights_say_and_uses_exact_differences_where_asked():
    path = Path(jnp.arange(3), jnp.ones(3, int), jnp.zeros(3, int))
    picks: Any = SimpleNamespace(num_flips=3, sample=lambda keys: path)
    for length in (1, 2, 3):
        weights = jnp.where(jnp.arange(1, 4) == length, 0.0, -jnp.inf)
        drawn = CutPicks(picks, weights).sample(Keys.of_step(KEY))
        assert int(drawn.length) == length
        assert drawn.path.levels.tolist() == [int(k < length) for k in range(3)]
    uniform = CutPicks(SimpleNamespace(num_flips=3, log_prob_terms=lambda path: [jnp.zeros(3)]), None)  # type: ignore[arg-type]
    (terms,) = uniform.log_prob_terms(CutPath(path, jnp.asarray(2)))
    assert float(terms.sum()) == pytest.approx(-np.log(3))
    block: Any = steppe.pas(differences="exact").blocks[0]
    assert block.proposal._whole.differences == "exact"


def test_listed_paths_are_as_long_as_the_longest_and_change_as_many_sites_as_their_length():
    sampler = steppe.pas(max_flips=2).build(polynomial_target(steppe.Binary(3), 1.0))
    block: Any = sampler.recipe.blocks[0]
    position = jnp.asarray([1.0, 0.0, 1.0])
    paths = block.proposal.support(sampler.density, sampler.density.evaluate(position, None))
    assert paths.path.sites.shape == (3 + 6, 2)
    np.testing.assert_array_equal((paths.path.levels != paths.path.old_levels).sum(axis=1), paths.length)


@pytest.mark.parametrize(("scan", "is_kept"), [("systematic", True), ("random", False)])
def test_a_systematic_scan_remembers_where_it_is_and_a_random_one_does_not(scan, is_kept):
    sampler = steppe.gibbs(num_updates=2, scan=scan).build(steppe.Target(jnp.sum, SIX))
    state = sampler.density.evaluate(jnp.zeros(6), None, with_gradient=False)
    block: Any = sampler.recipe.blocks[0]
    assert (block.init(sampler.density, state).next_site is not None) == is_kept


def test_a_step_is_paid_for_by_half_its_penalty_whatever_the_balancing():
    for balancing in ("sqrt", "barker", "min", "max"):
        block: Any = steppe.dmala(balancing=balancing).blocks[0]
        change = jnp.asarray(0.7)
        paid = block.proposal._weigh(change, 0.0) - block.proposal._weigh(change, 0.4)
        assert float(paid) == pytest.approx(0.2, rel=1e-5)


def test_changes_of_potts_levels_are_counted_over_sites():
    values, start = jnp.asarray([[0, 1, 2], [1, 1, 0]]), jnp.asarray([[0, 2, 0], [1, 0, 0]])
    assert Agreements.count_changes(cast("Any", None), values, start).tolist() == [0, 2, 1]


def test_a_center_costs_no_evaluation():
    assert CenterProposal.count_evaluations(*cast("Any", (None, None))) == 0


def test_a_block_that_holds_reals_needs_some():
    block: Any = steppe.gibbs().blocks[0]
    with pytest.raises(RecipeError, match="real"):
        GivenReals(block).check("mixed", steppe.Target(jnp.sum, SIX))


def test_a_systematic_scan_goes_up_from_where_it_stopped():
    sampler = steppe.gibbs(num_updates=3).build(steppe.Target(jnp.sum, SIX))
    block: Any = sampler.recipe.blocks[0]
    memory: Any = SimpleNamespace(next_site=jnp.asarray(4))
    due = block.draw(Keys.of_step(KEY), sampler.density, memory, 0, 3)
    assert due.sites.tolist() == [4, 5, 0]
    at_random: Any = SimpleNamespace(next_site=None)
    drawn = block.draw(Keys.of_step(KEY), sampler.density, at_random, 0, 90)
    assert set(drawn.sites.tolist()) == set(range(6))  # one is left out by one seed in 10⁶


def test_a_table_without_a_change_decides_every_update_it_holds():
    sampler = steppe.gibbs(num_updates=3).build(steppe.Target(lambda x: 9 * x.sum(), SIX))
    block: Any = sampler.recipe.blocks[0]
    zero, state = jnp.zeros((), jnp.int32), ChainState(jnp.ones(6), None, jnp.asarray(54.0))
    due = Due(jnp.arange(3), jnp.zeros((3, 2)), jnp.asarray(3))
    decide = jax.jit(partial(block.decide, block.see(sampler.density), size=3))
    event = decide(due, Scan(zero, state, None, zero))
    assert (bool(event.is_change), int(event.num_made)) == (False, 3)


def test_a_tilted_distribution_has_less_where_it_is_rough():
    target = polynomial_target(steppe.Binary(3), 1.0)
    recipe = steppe.roughness_tilted(strength=1.5, step_size=0.6)
    density = recipe.build(target, audit=False).density
    states = target.domain.enumerate()[jnp.asarray([0, 5])]
    stationary = recipe.stationary(target)
    found = [float(stationary.log_prob(state)) for state in states]
    roughness = [float(density.penalty.at(target.domain, density.evaluate(state, None))) for state in states]
    values = [float(target.log_density(state)) for state in states]
    assert roughness[0] != pytest.approx(roughness[1])
    expected = np.diff(values) - np.diff(roughness)
    assert found[1] - found[0] == pytest.approx(float(expected[0]), rel=1e-4)


@pytest.mark.parametrize("recipe", [steppe.edmala(), steppe.dmala()])
def test_exact_changes_of_two_levels_are_those_of_the_table_with_the_pull_of_the_center(recipe):
    density = recipe.build(polynomial_target(steppe.Binary(3), 1.0)).density
    position, center = jnp.asarray([1.0, 0.0, 1.0]), jnp.asarray([0.2, -0.4, 1.3])
    state = density.evaluate(position, center if density.coupling.has_center else None)
    table = level_changes(density, state, "exact")
    np.testing.assert_allclose(
        flip_changes(density, state, "exact"), table[jnp.arange(3), 1 - position.astype(int)], rtol=1e-6
    )


def test_changes_of_several_sites_are_added_up_along_the_way():
    target = machine(steppe.Binary(5), "incremental")
    assert target.incremental is not None
    sites, levels = jnp.asarray([4, 1, 2]), jnp.asarray([1, 1, 0])
    position = jnp.asarray([0.0, 0, 1, 1, 0])
    memory = target.incremental.init(position)
    found = _differences_along(target, position, memory, sites, levels)
    moved = position.at[sites].set(levels.astype(float))
    assert float(found) == pytest.approx(
        float(target.log_density(moved) - target.log_density(position)), rel=1e-4
    )


def test_a_swap_where_no_site_is_up_changes_nothing():
    target = steppe.Target(lambda x: jnp.sum(x) / 2, steppe.Binary(3))
    sampler = steppe.gibbs(num_updates=1, num_swaps=1).build(target)
    block: Any = sampler.recipe.blocks[0]
    state = ChainState(jnp.zeros(3), None, jnp.asarray(0.25), None)
    start = Scan(jnp.zeros((), int), state, None, jnp.zeros((), int))
    swapped = block.swap(KEY, block.see(sampler.density), start).state
    assert swapped.position.tolist() == [0.0] * 3
    assert float(swapped.log_density) == 0.25


def test_replicas_that_move_by_gradients_are_evaluated_again():
    target = polynomial_target(steppe.Binary(2), 1.0)
    ladder = steppe.parallel_tempering(base=steppe.dmala(step_size=0.5), inverse_temperatures=(0.5, 1.0))
    sampler = ladder.build(target)
    block: Any = sampler.recipe.blocks[0]
    position = jnp.asarray([1.0, 0.0])
    there = ChainState(position, None, jnp.asarray(9.0), jnp.full(2, 9.0))
    again = block.refresh(sampler.density, Replica(there, ())).chain
    assert float(again.log_density) == pytest.approx(float(target.log_density(position)))
    np.testing.assert_allclose(again.gradient, jax.grad(target.log_density)(position))


def test_spins_with_two_named_levels_are_read_and_written_back():
    """A Potts target of two levels has one-hot positions where an Ising target has numbers."""
    target = targets.potts(np.array([[0, 1], [1, 2]]), 2, 0.5)
    sampler = steppe.swendsen_wang().build(target)
    block: Any = sampler.recipe.blocks[0]
    positions = jnp.moveaxis(target.domain.enumerate(), 0, -1)
    levels = block._read(sampler.density, positions)
    assert levels.T.tolist() == target.domain.to_levels(target.domain.enumerate()).tolist()
    np.testing.assert_array_equal(block._write(sampler.density, levels, positions.dtype), positions)


@pytest.mark.parametrize(("field", "expected"), [(0.0, [1, 2]), ([0.0, -50.0, 0.0], [0, 2])])
def test_a_cluster_of_three_levels_may_take_either_of_the_others(field, expected):
    sampler = steppe.wolff().build(targets.potts(np.array([[0, 1], [1, 2]]), 3, 0.5, field))
    block: Any = sampler.recipe.blocks[0]
    labels = jnp.broadcast_to(jnp.arange(3, dtype=jnp.int32)[:, None], (3, 2))
    more, levels = jnp.asarray([[0.1, 0.9], [0.5, 0.5]]), jnp.zeros((3, 2), jnp.int32)
    draw = jax.jit(partial(block._draw_one, sampler.density))
    assert draw(levels, labels, jnp.zeros((1, 2)), more).tolist() == [expected, [0, 0], [0, 0]]


def test_a_flat_histogram_proposes_another_level_of_one_site():
    target = steppe.Target(jnp.sum, steppe.Ordinal(3, 4))
    block = FlatHistogramBlock(jnp.asarray([1.0]), jnp.asarray([1.0]), jnp.asarray(1.0))
    position = jnp.asarray([0.0, 2.0, 3.0])
    moved = [block._change(target, jax.random.key(k), position) for k in range(4)]
    assert [int((one != position).sum()) for one in moved] == [1] * 4


# ---- annealing and tempering -----------------------------------------------------------------------


def test_cooling_raises_the_inverse_temperature_of_every_recipe_and_ties_replicas():
    target = polynomial_target(steppe.Binary(3), 1.0)
    plain = cool(steppe.gibbs(), target, (0.1, 5.0))
    assert [plain(jnp.asarray(end)) for end in (0.0, 1.0)] == [
        {"inverse_temperature": pytest.approx(beta)} for beta in (0.1, 5.0)
    ]
    tied = cool(steppe.robust_ensemble(replicas=2, coupling_variance=1.0), target, (0.1, 5.0))
    assert set(tied(jnp.asarray(0.5))) == {"inverse_temperature", "coupling_variance"}


def test_rates_are_sums_from_zero_over_steps_and_pairs_are_tried_by_lots(monkeypatch):
    moves: Any = SimpleNamespace(replace=lambda values: None)
    try_pairs: Any = cycle_schedule._try_pairs
    asked = []

    def count(moves, key, state, pairs):
        asked.append(pairs.shape)
        return np.ones(pairs.shape[1])

    monkeypatch.setattr(cycle_schedule, "_try_pairs", count)
    number, nothing = cycle_schedule.NUM_PAIRS + 1, cast("Any", None)
    rates = cycle_schedule._measure_rates(moves, KEY, nothing, np.ones(number), np.ones(number))
    assert rates.shape == (number,)
    assert asked == [(2, cycle_schedule.NUM_PAIRS)] * 2

    def stand_still(*arguments, reduced, **options):
        return SimpleNamespace(reduced=reduced)

    monkeypatch.setattr(cycle_schedule, "simulate", stand_still)
    state: Any = SimpleNamespace(log_density=jnp.zeros(4))
    found = try_pairs.__wrapped__(moves, KEY, state, jnp.ones((2, 3)))
    assert found.tolist() == [0.0] * 3


def test_the_hot_end_is_the_hottest_at_which_all_colder_ones_forget(monkeypatch):
    """Starts are forgotten at the first three inverse temperatures, and again where nobody looks any more."""
    noise = np.random.default_rng(0).choice([-0.5, 0.5], (len(hot_end.CANDIDATES), 64, 400))
    noise[3] += 0.2
    found, asked = (jnp.asarray(noise), jnp.zeros(noise.shape), jnp.full(400, 0.5)), []
    monkeypatch.setattr(hot_end, "_melt", lambda *arguments: asked.append(arguments[2:]) or found)
    recipe, target = steppe.gibbs(), steppe.Target(jnp.sum, steppe.Binary(400))
    hottest = hot_end.find_hottest(target, recipe, np.array([4.0, 1.0]), np.array([0.0, 1.0]), key=KEY)
    assert hottest == pytest.approx(float(hot_end.CANDIDATES[2]))
    ((betas, scales),) = asked
    np.testing.assert_allclose(scales, 4 ** (1 - betas), rtol=1e-5)  # between the rungs by their logarithms


@pytest.mark.parametrize(
    ("value", "idle", "said"),
    [(3.0, 9, "nothing better came for the steps allowed"), (1.0, 0, rounds.VALUE_REACHED)],
    ids=["patience", "value"],
)
def test_a_search_that_waited_in_vain_does_not_say_that_its_value_was_reached(value, idle, said):
    request: Any = SimpleNamespace(
        until=until(value=value, patience=10),
        num_chains=1,
        sampler=SimpleNamespace(evaluations_per_step=1.0),
        time_limit=None,
    )
    chains: Any = None
    done = Done(chains, np.zeros(1), np.array([1.0]))
    done.best_met, done.num_idle = 1.0, idle
    rounds._note(request, done, {"best_log_density": np.array([1.0])}, 1)
    assert done.stopped == said


def test_an_adaptive_schedule_is_led_by_the_fraction_of_the_round_that_is_done(monkeypatch):
    asked = []
    for name in ("_current_schedule", "_round_key", "_note"):
        monkeypatch.setattr(rounds, name, lambda *arguments: None)
    lead = lambda self, beta, observed, progress, ends: asked.append(progress) or beta  # noqa: E731
    monkeypatch.setattr(Adaptive, "lead", lead)
    nothing: Any = None
    request: Any = SimpleNamespace(
        sampler=None,
        schedule=Adaptive("acceptance_rate", nothing),
        key=KEY,
        follow=None,
        temperatures=(0.1, 1.0),
    )
    done = Done(nothing, np.zeros(1), np.zeros(1))
    done.num_steps = 8
    for _ in range(4):
        rounds._advance_row(
            lambda *_, **options: (None, {"acceptance_rate": np.array([0.5])}), request, done, 4
        )
    assert asked == [0.25, 0.5, 0.75, 1.0]


def test_heat_is_the_variance_over_chains_times_the_square_of_the_inverse_temperature():
    def row(place):
        beta, spread = (1.0, 4.0) if place < 10 else (2.5, 2**0.5)
        return {
            "round": np.zeros(1),
            "progress": np.array([place / 20]),
            "inverse_temperature": np.array([beta]),
            "log_density": np.array([-spread, spread]),
        }

    done: Any = SimpleNamespace(rows=[row(place) for place in range(20)], round=0)
    assert rounds._find_heat_peak(done) < 0.5


def test_changes_that_are_small_beside_the_mean_do_not_count_for_temperatures(monkeypatch):
    sizes = np.concatenate([np.full(90, 1.0), np.full(10, 0.2), np.full(5, 1e-4)])
    monkeypatch.setattr(temperature_range, "_measure_changes", lambda *arguments: sizes)
    hot, cold = temperature_range.choose_temperatures(steppe.Target(jnp.sum, SIX), KEY)
    assert hot == pytest.approx(temperature_range.HOT / sizes.mean())
    quiet = temperature_range.find_quiet_end(sizes[:100])
    assert cold == pytest.approx(max(np.log(temperature_range.REFUSED) / 0.2, quiet))


def test_the_work_of_a_search_is_its_steps_times_chains_times_sites(monkeypatch):
    monkeypatch.setattr(rounds, "advance_chains", lambda work: work)
    sampler = SimpleNamespace(target=SimpleNamespace(domain=SIX))
    request: Any = SimpleNamespace(num_steps=10, max_rounds=1, num_chains=3, sampler=sampler)
    assert rounds._choose_program(request) == 180


def test_patience_is_over_after_so_many_idle_steps():
    rule = until(patience=5)
    assert [rule.is_reached(0.0, idle) for idle in (0, 4, 5, 6)] == [False, False, True, True]
    with pytest.raises(RunError, match="search without this end"):
        until(ess=-1.0)


def test_a_ladder_is_tuned_with_chains():
    target = steppe.Target(jnp.sum, SIX)
    with pytest.raises(RunError, match="num_chains"):
        steppe.tune_ladder(target, steppe.parallel_tempering(), key=KEY, num_steps=64, num_chains=0)


def test_the_barrier_of_a_ladder_is_the_sum_of_what_its_pairs_refuse(monkeypatch):
    seen = Observed(jnp.asarray([[6.0, 12.0], [10.0, 4.0]]), jnp.full((2, 3), 8.0))  # in 16 steps of 2 chains
    monkeypatch.setattr(temperature_ladder, "_start", lambda sampler, keys: None)
    monkeypatch.setattr(temperature_ladder, "_walk", lambda sampler, key, state, length: (state, seen))
    recipe = steppe.parallel_tempering(base=steppe.gibbs(), inverse_temperatures=(0.2, 0.5, 1.0))
    tuned = steppe.tune_ladder(steppe.Target(jnp.sum, SIX), recipe, key=KEY, num_steps=16, num_chains=2)
    assert tuned.barrier == pytest.approx(0.5 + 0.5)


# ---- runs ------------------------------------------------------------------------------------------


def test_a_run_that_has_no_rows_yet_says_so():
    may_end = threading.Event()
    ended: Any = object()
    handle = Handle(lambda look: may_end.wait(60) and ended, None)
    with pytest.raises(RunError, match="no rows yet"):
        _ = handle.run
    may_end.set()
    assert handle.wait() is ended


def test_a_writer_that_is_asked_to_stop_sees_it(tmp_path):
    directory = RunDirectory(tmp_path)
    assert not directory.is_stop_requested
    RunDirectory(tmp_path).request_stop()
    assert directory.is_stop_requested


@pytest.mark.parametrize(("changed", "said"), [("", "abc"), (" M src/steppe/run/sample.py", "abc+")])
def test_a_commit_with_changes_is_marked(tmp_path, monkeypatch, changed, said):
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(
        identity, "__file__", str(tmp_path / "src" / "steppe" / "run" / "storage" / "identity.py")
    )
    monkeypatch.setattr(
        identity, "_ask_git", lambda root, word, *_: "abc" if word == "rev-parse" else changed
    )
    assert inspect.unwrap(identity.find_commit)() == said


@pytest.mark.parametrize(("value", "is_one"), [(0, False), (1, True), (2**32 - 1, True), (2**32, False)])
def test_counts_of_a_record_fit_the_counters_of_a_run(value, is_one):
    if is_one:
        assert TypeAdapter(Positive).validate_python(value) == value
    else:
        with pytest.raises(ValidationError):
            TypeAdapter(Positive).validate_python(value)


def test_states_that_temperatures_are_chosen_at_must_be_states():
    target = steppe.Target(lambda x: jnp.sum(x) / 2, SIX)
    with pytest.raises(StartError, match="not a level"):
        _read_states(target, np.full((2, 6), 0.5))
    assert _read_states(target, np.eye(2, 6))[:3].tolist() == np.eye(2, 6)[[0, 1, 0]].tolist()


def test_a_histogram_has_the_fewest_bins_there_may_be_or_none():
    assert [steppe.Observable(jnp.sum, bins=bins).bins for bins in (0, MIN_BINS)] == [0, MIN_BINS]
    with pytest.raises(RunError, match=f"at least {MIN_BINS}"):
        steppe.Observable(jnp.sum, bins=MIN_BINS - 1)


def test_a_statistic_of_replicas_has_one_value_of_a_row_and_chain():
    rows = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(average_rows(rows), [[0.5, 2.5, 4.5], [6.5, 8.5, 10.5]])
    np.testing.assert_array_equal(average_rows(rows[:, :, 0]), rows[:, :, 0])


def test_states_are_taken_one_at_a_time_or_more():
    with pytest.raises(TargetError, match="batch_size"):
        map_states(jnp.sum, steppe.Target(jnp.sum, SIX), np.zeros((1, 6)), batch_size=0)


def test_resuming_needs_a_directory():
    with pytest.raises(RunError, match="needs `out`"):
        steppe.sample(steppe.Target(jnp.sum, SIX), steppe.gibbs(), key=KEY, resume=True)


def test_observables_that_are_missing_are_called_none():
    some: Any = SimpleNamespace(observables=[SimpleNamespace(name="m")])
    none: Any = SimpleNamespace(observables=[])
    with pytest.raises(RunMismatchError, match="follows the observables m; this one none"):
        _check_observables(some, none)
    with pytest.raises(RunMismatchError, match="follows the observables none; this one m"):
        _check_observables(none, some)


def test_as_many_devices_are_used_as_were_asked_for(monkeypatch):
    monkeypatch.setattr(jax, "local_devices", lambda: ["first", "second", "third"])
    assert devices._choose(2) == ["first", "second"]


def test_blocks_that_part_no_pair_are_even():
    assert [_choose_even(lambda _, size=size: size, 8) for size in (3, 4, 5)] == [4, 4, 6]


def test_a_line_may_fill_all_columns_but_the_last(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    assert join_parts(["a" * 10, "b" * 7]) == f"{'a' * 10}  {'b' * 7}"
    assert join_parts(["a" * 10, "b" * 8]) == "a" * 10
    assert join_parts(["a" * 30]) == "a" * 19


# ---- judgement -------------------------------------------------------------------------------------


def test_two_chains_in_two_modes_are_grouped_and_are_no_single_chain():
    levels = fair_bits(2, num_sites=12)
    levels[0, :, :8] &= fair_bits(1, 400, 8, seed=5, fraction=0.1)[0]
    found = assess(trace_of(levels))
    assert found.chains.modes == ((0,), (1,))
    steep = trace_of(levels, log_density=1000.0 * levels.sum(axis=2))  # in any unit of the log-density
    by_height = assess(without_levels(steep)).chains
    assert by_height.modes == ((0,), (1,))
    assert by_height.parity.tolist() == [-1, -1]
    assert not any("single chain" in finding for finding in diagnose(found).findings)


def test_replicas_that_agree_are_projected_like_a_single_one():
    levels = fair_bits(3, num_sites=5)
    levels[0, :, :3] = 1
    replicas = np.repeat(levels[:, :, None], 2, axis=2)
    np.testing.assert_allclose(_along_difference(replicas), _along_difference(levels), rtol=1e-5)


def test_chains_that_differ_by_more_than_names_at_one_site_are_not_relabelled():
    rng = np.random.default_rng(2)
    draws = (rng.random((4, 400, 5)) < 0.2).astype(np.uint8)
    draws[2] = 1 - draws[2]
    draws[3, :, 4] = 1 - draws[3, :, 4]  # one site that no exchange of all levels mends
    height = rng.normal(size=draws.shape[:2])
    verdicts = judge_chains(trace_of(draws, log_density=height), draws, 1.05)
    assert verdicts.renamed == {}


def test_moves_are_counted_from_draw_to_draw():
    levels = np.array([[[0], [1], [1], [1], [0], [0]], [[0], [1], [0], [1], [0], [1]]], np.uint8)
    assert _states(trace_of(levels), levels)[1].tolist() == [2, 5]


def test_a_chain_whose_reals_stand_still_is_as_constant_as_its_sites():
    levels = np.repeat(fair_bits(num_draws=1), 50, axis=1)
    chains = assess(trace_of(levels)).chains
    reals = np.zeros((4, 50))
    reals[1, 30:] = 0.5
    assert chains.is_constant.all()
    assert mixing._judge_moving(chains, {"x": reals}).is_constant.tolist() == [True, False, True, True]


def test_a_count_that_no_draw_reached_has_a_tail_by_the_rule_of_three():
    domain = steppe.Counts(1, 4)
    levels = np.repeat([0, 1, 2], 100)[None, :, None]
    found = estimate_tail(domain, levels)
    assert found is not None
    assert (found.top, found.beyond) == (0.0, pytest.approx(3 / 300))


def test_a_tempered_run_of_no_rows_has_made_no_round_trip():
    trace = trace_of(fair_bits(num_chains=2, num_draws=3))
    arrays = {**trace.arrays, "swap_rate": np.ones((2, 0, 3)), "round_trips": np.ones((2, 0), int)}
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning):
        swaps = measure_swaps(trace._replace(arrays=arrays))
    assert swaps is not None
    assert swaps.round_trips == 0


def test_chains_that_disagree_on_a_site_are_not_said_to_disagree_on_the_log_density_too():
    levels = fair_bits(num_sites=6)
    levels[0, :, 0] |= fair_bits(1, 400, 1, seed=5, fraction=0.9)[0, :, 0]
    found = assess(trace_of(levels, log_density=50.0 * levels[..., 0] + 0.1 * levels[..., 1]))
    assert found.sites is not None
    assert found.sites.is_unconverged.tolist() == [True, *[False] * 5]
    assert found.log_density.rhat > found.limit
    assert list(_list_rhat_failures(found)) == []


@pytest.mark.parametrize(("rhat", "is_switched"), [(1.0, False), (1.05, False), (1.06, True)])
def test_real_parts_beyond_the_limit_look_switched(rhat, is_switched):
    height = SimpleNamespace(rhat=1.0)
    quantities = (height, SimpleNamespace(rhat=rhat), SimpleNamespace(rhat=9.0))
    found: Any = SimpleNamespace(quantities=quantities, num_reals=1, log_density=height, limit=1.05)
    assert _looks_switched(found) == is_switched


def test_averages_of_single_precision_are_made_in_double():
    values = np.full((1, 10**6), 1e7 + 1, np.float32)
    assert mixing._average_by_chain(values) == 1e7 + 1
    assert mixing._average_by_chain(values).dtype == np.float64
    assert compute_in_double(lambda: jnp.result_type(float)) == np.float64


def test_a_stream_of_one_value_has_no_spread_and_no_error():
    one = np.ones(2)
    streamed = Streamed(
        *("x", 1, 100 * one, 0 * one, 3 * one, 0 * one, np.nan * one, 20 * one),
        *(np.full((2, 8), 3.0), np.zeros(2), np.zeros((2, 1))),
    )
    assert streamed.summarize()[:4] == ("x", 3.0, 0.0, 0.0)


def test_histograms_of_bins_of_different_width_are_joined_at_the_wider():
    """Bins of width 1 from 3 on, and of width 2 from 2 on."""
    counts = np.array([[1, 2, 0], [0, 4, 1]])
    edges, joined = _join_bins(np.array([0, 1]), np.array([3, 1]), counts, np.array([True, True]))
    assert edges.tolist() == [2, 4, 6, 8]
    assert joined.tolist() == [[1, 2, 0], [0, 4, 1]]
    edges, _ = _join_bins(np.array([0]), np.array([3]), np.array([[0, 2, 0]]), np.array([True]))
    assert edges.tolist() == [4, 5]  # bins at the ends that hold nothing are left out


def test_halves_of_an_odd_number_of_batches_are_equally_long():
    """Of five batches the first two and the next two; what is not full is not there."""
    means = np.array([[1.0, 2, 4, 7, 30, np.nan], [2.0, 2, 3, 9, 30, np.nan]])
    one = np.ones(2)
    streamed = Streamed(
        *("x", 1, 100 * one, 0 * one, np.array([3.5, 4.0]), 40 * one, one, 20 * one),
        *(means, np.zeros(2), np.zeros((2, 1))),
    )
    halves = np.array([[1.5, 5.5], [2.0, 6.0]])
    within = np.mean(40 - ((halves - [[3.5], [4.0]]) ** 2).sum(axis=1) / 2)
    expected = np.sqrt(1 - 1 / 50 + halves.var(ddof=1) / within)
    assert streamed._compare_halves() == pytest.approx(expected)


# ---- flatness --------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_a_ball_holds_all_states_within_its_radius(radius):
    """Tables smoothed by steps of one site each, against the sum over pairs of states."""
    domain, η = steppe.Ordinal(3, 3), 0.7
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3, 3, 3))
    states = np.asarray(domain.enumerate(), float)
    apart = (states[:, None] != states[None]).sum(axis=2)
    logits = table.ravel()[None] - ((states[:, None] - states[None]) ** 2).sum(axis=2) / (2 * η)
    expected = np.logaddexp.reduce(np.where(apart <= radius, logits, -np.inf), axis=1)
    np.testing.assert_allclose(smooth_within(table, domain, η, radius).ravel(), expected)


def test_steepest_ascent_goes_up_where_no_gain_is_below_the_resolution():
    assert steepest_roots(np.array([[0.0, 1.0], [3.0, 2.0]]), 0.0).tolist() == [2, 2, 2, 2]


def test_a_ball_reaches_valid_states_behind_invalid_ones_of_targets_with_tables():
    """Of four bits an even number is valid: the neighbours of a valid state are not, theirs are."""
    weights = jnp.asarray([0.3, -0.2, 0.5, 0.1])

    def differences(x):
        return weights[:, None] * (jnp.arange(2.0) - x[:, None])

    target = steppe.Target(
        lambda x: weights @ x, steppe.Binary(4), differences=differences, is_valid=lambda x: x.sum() % 2 == 0
    )
    states = np.asarray(target.domain.enumerate())
    values = np.where(states.sum(axis=1) % 2 == 0, states @ np.asarray(weights), -np.inf)
    is_near = (states[:, None] != states[None]).sum(axis=2) <= 2
    expected = np.logaddexp.reduce(np.where(is_near, values[None], -np.inf), axis=1)
    found = local_entropy_ball(target, states, 2, exact=False).value
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_distribution_of_a_center_is_iterated_from_gaussians_around_every_position(monkeypatch):
    """For a target whose gradient says nothing too: it is what `edula` uses, whatever it is worth."""
    begun = []
    monkeypatch.setattr(center_distribution, "edula_kernel", lambda recipe, target, nodes: nodes)
    monkeypatch.setattr(
        center_distribution, "edula_stationary", lambda nodes, start, tolerance: begun.append((nodes, start))
    )
    monkeypatch.setattr(center_distribution, "position_marginal", lambda mass: mass)
    flat = steppe.Target(lambda x: jnp.sum(jnp.round(0.9 * x)), steppe.Ordinal(2, 2))
    recipe = steppe.edula(coupling_variance=0.5, center_step_size=0.4, step_size=0.3)
    center_distribution.edula_position_distribution(recipe, flat)
    ((nodes, start),) = begun
    assert start.shape == (4, len(nodes), len(nodes))
    total = start.sum(axis=(1, 2))
    mean = (start.sum(axis=2) @ nodes / total, start.sum(axis=1) @ nodes / total)
    np.testing.assert_allclose(np.stack(mean, axis=1), flat.domain.enumerate(), atol=1e-6)
    variance = (start.sum(axis=2) @ nodes**2) / total - mean[0] ** 2
    np.testing.assert_allclose(variance, 0.5 / (1 - 0.4 / 2), rtol=1e-3)


def test_a_step_on_the_grid_of_a_center_keeps_all_mass():
    kernel = np.random.default_rng(0).random((4, 2, 2, 3, 3))
    kernel /= kernel.sum(axis=(2, 3), keepdims=True)
    mass = np.random.default_rng(1).random((4, 3, 3))
    moved = np.asarray(center_distribution.push_forward(jnp.asarray(kernel), jnp.asarray(mass)))
    expected = np.einsum("plab,pmcd,pbd->lmac", kernel[:, 0], kernel[:, 1], mass)
    np.testing.assert_allclose(moved, expected.reshape(4, 3, 3), rtol=1e-5)
    assert moved.sum() == pytest.approx(mass.sum(), rel=1e-5)
    flow = np.asarray(center_distribution.position_flow(jnp.asarray(kernel), jnp.asarray(mass)))
    expected = np.einsum("plab,pmcd,pbd->plm", kernel[:, 0], kernel[:, 1], mass).reshape(4, 4)
    np.testing.assert_allclose(flow, expected / mass.sum(axis=(1, 2))[:, None], rtol=1e-5)


def test_a_center_with_a_coordinate_per_level_is_not_integrated():
    with pytest.raises(DomainError, match="has one per level"):
        center_distribution.edula_position_distribution(
            steppe.edula(), polynomial_target(steppe.Categorical(1, 3), 1.0)
        )


def test_a_site_that_is_drawn_afresh_flips_by_the_odds_of_its_levels():
    table = jnp.asarray([[0.0, 1.5], [0.3, -0.4], [2.0, 0.1]])
    position = jnp.asarray([0.0, 1.0, 1.0])
    drawn: Any = _redraw(steppe.Binary(3), position, table, jnp.asarray(1.0))
    np.testing.assert_allclose(drawn.logits, [1.5, 0.7, 1.9], rtol=1e-5)


def test_the_kernel_of_a_center_keeps_what_would_leave_its_grid():
    target = polynomial_target(steppe.Ordinal(2, 3), 1.0)
    recipe = steppe.edula(step_size=0.5, center_step_size=0.4, coupling_variance=0.5)
    kernel = center_distribution.edula_kernel(recipe, target, np.linspace(-0.5, 2.5, 4))
    np.testing.assert_allclose(kernel.sum(axis=(2, 3)), 1, rtol=1e-5)


def test_a_single_center_has_a_single_local_entropy():
    target = polynomial_target(steppe.Binary(3), 1.0)
    centers = np.asarray(target.domain.enumerate())
    alone = local_entropy_enumerated(target, centers[2], 0.7).value
    assert np.shape(alone) == ()
    assert float(alone) == pytest.approx(float(local_entropy_enumerated(target, centers, 0.7).value[2]))
    beside = local_entropy_enumerated(target, centers[2] + 1e-6, 0.7).value  # no state any more
    assert float(alone) == pytest.approx(float(beside), rel=1e-4)


def test_the_error_of_a_local_entropy_is_that_of_a_mean_in_units_of_it(monkeypatch):
    path: Any = SimpleNamespace(reference=jnp.zeros((3, 2)), log_density=jnp.asarray(0.0))
    monkeypatch.setattr(annealed, "_path", lambda *parts: path)
    monkeypatch.setattr(annealed, "_walk", lambda target, path, key, steps: 2 * jax.random.uniform(key))
    estimate = jax.jit(partial(annealed._estimate, cast("Any", None), num_particles=8, num_temperatures=2))
    found = estimate(jnp.zeros(3), KEY, jnp.asarray(1.0))
    weights = np.exp(2 * np.asarray(jax.vmap(jax.random.uniform)(jax.random.split(KEY, 8))))
    expected = weights.std(ddof=1) / weights.mean() / np.sqrt(8)
    assert float(found["relative_error"]) == pytest.approx(expected, rel=1e-5)


def test_the_grid_of_a_center_covers_its_reach_on_both_sides():
    nodes = center_distribution._center_nodes(steppe.Ordinal(1, 3), 0.5, 0.2)
    reach = center_distribution.REACH * 0.5
    assert nodes[0] == pytest.approx(-reach)
    assert nodes[-1] >= 2 + reach
    assert len(nodes) <= np.ceil((2 + 2 * reach) / 0.2) + 2
