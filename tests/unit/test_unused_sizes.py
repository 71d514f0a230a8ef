"""Sizes and errors that other tests leave out: each claim here is one that a planted bug broke unnoticed."""

from importlib import import_module
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare, multinomial

import steppe
from exact_targets import polynomial_target
from steppe import evidence, targets
from steppe.datasets import tsplib
from steppe.datasets.tables import Raw, dataset
from steppe.diagnostics.efficiency import _effective, efficiency
from steppe.diagnostics.exact import expected_total_variation
from steppe.diagnostics.flatness import local_entropy, local_entropy_ball, local_entropy_enumerated
from steppe.diagnostics.flatness.annealed import _untransform, _with_interval
from steppe.diagnostics.flatness.basins import basins_of_table
from steppe.diagnostics.neighbours import after, gains
from steppe.diagnostics.sites import site_rhat
from steppe.diagnostics.spectrum import interaction_spectrum
from steppe.diagnostics.streamed import Streamed
from steppe.diagnostics.swaps import measure_swaps
from steppe.errors import DamagedRunError, DomainError
from steppe.intervals import split_level
from steppe.kernel.blocks.flat_histogram import FlatHistogramBlock
from steppe.kernel.keys import Keys
from steppe.kernel.permutation_coupling import CHANGES
from steppe.kernel.types import ChainState, SamplerState, StepInfo
from steppe.run.adaptation.robbins_monro import RobbinsMonro
from steppe.run.adaptation.warmup import Observed, Searches, resolve_adaptation
from steppe.run.chain_blocks import pool_mean
from steppe.run.observables import Followed, Observable
from steppe.run.observers import Observers
from steppe.run.plan import make_plan
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.glance import glance
from steppe.run.storage.journal import read_newest
from steppe.run.storage.shards import _count_rows, open_parts
from steppe.targets.rbm_normalizer import anneal_rbm
from steppe.trace import Trace
from unit.synthetic import fair_bits, trace_of

KEY = jax.random.key(1)
watch = import_module("steppe.cli.watch")  # the package names a function like it


def test_the_error_of_an_effective_size_is_that_of_its_jackknife():
    """Five chains of different quality: the error is the spread of what is left, times √(n − 1)."""
    levels = fair_bits(num_chains=5, num_draws=200)
    for chain in range(5):
        levels[chain] = np.repeat(levels[chain, : 200 // (chain + 1) + 1], chain + 1, axis=0)[:200]
    trace = trace_of(levels)
    series = trace.statistic("log_density").astype(float)
    found = efficiency(trace._replace(arrays=trace.arrays))
    if found.quantity != "log_density":
        best = levels.reshape(-1, levels.shape[-1])[int(np.argmax(series))]
        series = (levels != best).sum(axis=-1).astype(float)
    left = np.array([_effective(np.delete(series, chain, axis=0)) for chain in range(5)]) * 5 / 4
    expected = np.sqrt(4 / 5 * ((left - left.mean()) ** 2).sum())
    assert found.standard_error == pytest.approx(expected)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_intervals_that_hold_together_share_the_chance_of_error_equally(number):
    assert number * (1 - split_level(number, 0.9)) == pytest.approx(0.1)


def test_sites_that_change_between_the_halves_have_a_large_rhat():
    """Chains that agree with each other and not with their own first half."""
    levels = np.zeros((4, 100, 3), np.uint8)
    levels[:, 50:, 1] = 1
    levels[:, ::7, :] ^= 1
    assert site_rhat(levels)[1] > 1.3
    assert site_rhat(levels)[0] < 1.05


def test_a_center_step_follows_an_adapted_coupling_variance():
    target = steppe.Target(lambda x: jnp.sum(x) / 2, steppe.Binary(4))
    sampler = steppe.edmala(center_step_size=0.2, coupling_variance=0.5).build(target, audit=False)
    adapt = resolve_adaptation(steppe.Adapt(center_distance=1.0), sampler)
    assert adapt is not None
    found = Searches(None, RobbinsMonro.start(jnp.asarray(1.5)))
    moved = adapt.apply(sampler, found).parameters
    assert float(moved["coupling_variance"]) == pytest.approx(1.5)
    assert float(moved["center_step_size"]) == pytest.approx(0.6)


@pytest.mark.parametrize(("num_blocks", "num_shards"), [(4, 3), (5, 3), (7, 4), (3, 3)])
def test_every_shard_has_chains_and_none_has_two_homes(num_blocks, num_shards):
    plans = [make_plan(4 * num_blocks, 0, 1, 1, "draws", 4, (i, num_shards)) for i in range(num_shards)]
    chains = [chain for plan in plans for chain in plan.own_chains]
    assert chains == list(range(4 * num_blocks))
    assert min(len(plan.own_chains) for plan in plans) > 0


def test_annealing_a_strong_machine_in_few_steps_is_unbiased():
    """Weights and moves belong to one schedule: with 4 coarse steps the mean weight is still `Z / Z_0`.

    The standard error is 0.3 %, a tenth of the gate; hidden bits at the temperature before are off by 18 %.
    """
    rng = np.random.default_rng(3)
    weights, hidden, visible = 2 * rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=4)
    states = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    values = np.logaddexp(0, states @ weights.T + hidden).sum(axis=1) + states @ visible
    annealed = anneal_rbm(
        weights, hidden, visible, KEY, num_chains=200_000, num_temperatures=4, base_bias=np.zeros(4)
    )
    assert abs(np.exp(annealed.value - np.logaddexp.reduce(values)) - 1) < 0.03


def test_degrees_south_and_west_are_cut_towards_zero():
    """−5.30 is 5 degrees and 30 minutes south: half a degree more than −5, not 70 minutes less than −6."""
    coordinates = np.array([[-5.30, 0.0], [0.0, 0.0], [5.30, 0.0], [0.0, -12.15], [0.0, 12.15]])
    lengths = tsplib.distances_between(coordinates, "GEO")
    assert lengths[0, 1] == lengths[2, 1] == int(6378.388 * np.deg2rad(5.5) + 1)
    assert lengths[3, 1] == lengths[4, 1] == int(6378.388 * np.deg2rad(12.25) + 1)


def test_features_are_scaled_by_rows_that_are_learnt_from_and_no_others():
    x = np.arange(200.0)[:, None] ** 2
    raw = Raw(x, np.zeros(200), 150, ("a",))
    card = {"name": "t", "source": "", "licence": "", "sha256": {}, "preprocessing": "", "is_verified": True}
    made = dataset(raw, card, as_published=False)  # type: ignore[arg-type]
    assert len(made.validation.x) > 0
    assert made.train.x.mean() == pytest.approx(0, abs=1e-6)
    assert made.train.x.std() == pytest.approx(1, rel=1e-5)


def test_idle_lanes_do_not_count_in_a_pooled_mean():
    """Five chains in blocks of four: three lanes of the second block are idle."""
    counts = jnp.arange(8).reshape(2, 4) < 5
    values = jnp.where(counts, jnp.asarray([[0.1, 0.2, 0.3, 0.4], [0.5, 9.0, 9.0, 9.0]]), 1.0)
    assert float(pool_mean(counts, 5, None, Observed(values, None)).step) == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize("block_size", [2, 3, 5])
def test_a_systematic_scan_by_blocks_visits_the_last_sites_too(block_size):
    """A site that is visited stays the same in 30 sweeps with a chance of 2⁻³⁰."""
    flat = steppe.Target(lambda x: 0.0 * jnp.sum(x), steppe.Binary(7))
    recipe = steppe.block_gibbs(block_size=block_size, scan="systematic")
    run = steppe.sample(flat, recipe, key=KEY, num_chains=1, num_warmup=0, num_draws=210, progress=False)
    levels = run.trace.levels()[0]
    assert (levels != levels[0]).any(axis=0).all()


def test_a_tuned_variance_is_returned_with_the_step_size_it_was_tried_with():
    target = targets.ising_lattice((3, 3), 0.3)
    tuned = steppe.tune(
        steppe.edmala_glu(step_size=1e-3),
        target,
        key=KEY,
        goal="ess",
        parameter="coupling_variance",
        values=[0.5, 2.0],
        num_chains=2,
        num_warmup=60,
        num_draws=60,
        progress=False,
    )
    best = tuned.trials[tuned.chosen]
    assert best.step_size is not None
    assert float(tuned.recipe.parameters["step_size"]) == pytest.approx(best.step_size)
    assert best.step_size > 1e-2


def test_a_weighted_center_keeps_its_distribution_at_another_temperature():
    """χ² of 30 000 centers drawn from `exp{γβU(c) − Σ|θ_r − c|²/(2η)}` and moved four times.

    False-alarm rate 1e-7. A center that ignores β tends to a distribution at a total variation of .2, which
    gives p < 1e-300.
    """
    γ, β, η, number = 2.0, 0.3, 0.7, 30_000
    target = polynomial_target(steppe.Binary(3), 2.0)
    recipe = steppe.robust_ensemble(
        replicas=2, coupling_variance=η, step_size=0.6, center="lattice", center_weight=γ
    )
    sampler = recipe.build(target, audit=False).replace({"inverse_temperature": β})
    block = next(b for b in recipe.blocks if b.moves == ("center",))
    with pytest.raises(DomainError, match="no transition matrix"):
        block.transition_matrix(sampler.density, None)
    states = target.domain.enumerate()
    replicas = states[jnp.array([1, 6])]
    values = np.asarray(jax.vmap(target.log_density)(states), float)
    tied = ((np.asarray(states)[:, None] - np.asarray(replicas)[None]) ** 2).sum(axis=(1, 2))
    logits = γ * β * values - tied / (2 * η)
    expected = np.exp(logits - np.logaddexp.reduce(logits))

    def move(key, center):
        state = ChainState(replicas, center, jnp.zeros(2), jnp.zeros((2, 3)))
        (state, _), _ = jax.lax.scan(
            lambda old, key: (block.step(Keys.of_step(key), sampler.density, *old)[:2], None),
            (state, block.init(sampler.density, state)),
            jax.random.split(key, 4),
        )
        return target.domain.index(state.center)

    starts = states[jax.random.categorical(KEY, jnp.asarray(logits), shape=(number,))]
    found = jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(2), number), starts)
    assert chisquare(np.bincount(found, minlength=8), number * expected).pvalue > 1e-7


def test_watch_judges_the_rows_after_warm_up_alone(tmp_path, monkeypatch):
    """Whether the window begins with the run, inside its warm-up or after it."""
    counts = {"num_warmup": 40, "num_draws": 50, "num_chains": 4}
    target = targets.paper_bernoulli()
    steppe.sample(target, steppe.gibbs(), key=KEY, out=tmp_path / "run", progress=False, **counts)
    seen, judged = glance(tmp_path / "run"), []
    whole = Trace(seen.recent, 0, target.domain).levels()
    monkeypatch.setattr(watch, "judge_sites", lambda levels: judged.append(levels) or [])
    for first, last in [(0, 90), (25, 90), (60, 90), (30, 45)]:
        recent = {name: rows[:, first:last] for name, rows in seen.recent.items()}
        list(watch._judge_sites(seen._replace(recent=recent, first_recent_row=first, num_rows=last)))
        np.testing.assert_array_equal(judged.pop(), whole[:, max(40, first) : last])


def test_a_local_entropy_annealed_in_few_steps_is_unbiased():
    """Moves and weights belong to one path: with 3 coarse steps the mean weight is still the sum.

    The standard error is .2 %; moves at k/(T − 1) beside weights at k/T are off by 7 %.
    """
    target = polynomial_target(steppe.Binary(4), 4.0)
    positions = target.domain.enumerate()[np.array([5])]
    exact = local_entropy_enumerated(target, positions, 2.0).value
    found = local_entropy(target, positions, 2.0, KEY, num_particles=50_000, num_temperatures=3, exact=False)
    np.testing.assert_allclose(np.exp(found.value - exact), 1, atol=0.015)
    above, below = found.upper - found.value, found.value - found.lower  # of many walks: hardly skewed
    np.testing.assert_allclose(above / below, 1, atol=0.1)


def test_annealing_along_a_coarse_ladder_is_unbiased():
    """The same of `log_normalizer`: moves at the temperature before are off by several per cent."""
    target = polynomial_target(steppe.Binary(4), 4.0)
    values = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()), float)
    sampler = steppe.gibbs().build(target, audit=False)
    path = jnp.linspace(0, 1, 4)
    weights = evidence._walk(sampler, KEY, path, jnp.ones(4), 100_000)
    mean = np.exp(np.asarray(weights, float)).mean() * 16
    assert abs(mean / np.exp(np.logaddexp.reduce(values)) - 1) < 0.015


@pytest.mark.parametrize("skewness", [-2.0, -0.3, 0.0, 0.3, 2.0])
def test_the_quantile_of_a_skewed_mean_is_the_inverse_of_halls_transformation(skewness):
    """`t + s t²/(3√n) + s² t³/(27n) + s/(6√n)` of it is the normal quantile; Hall 1992."""
    quantile, size = 1.96, 50
    found = _untransform(quantile, np.asarray(skewness), size)
    bend = skewness / np.sqrt(size)
    back = found + bend * found**2 / 3 + bend**2 * found**3 / 27 + bend / 6
    assert back == pytest.approx(quantile, abs=1e-3)


def test_a_state_on_an_edge_belongs_to_the_bin_above():
    """Levels of an integer log-density fall on edges all the time."""
    target = steppe.Target(jnp.sum, steppe.Binary(4))
    edges = jnp.asarray([1.0, 2.0]), jnp.asarray([0.5, 1.0])
    block = FlatHistogramBlock(*edges, jnp.asarray(1.0))
    for ones, row in enumerate([0, 1, 2, 2, 2]):
        position = (jnp.arange(4) < ones).astype(float)
        assert int(block.find_bin(target, position, jnp.asarray(float(ones)))) == 3 * row + 2


def test_the_interval_of_many_equal_weights_is_the_normal_one():
    """Without skewness, of a million walks: two standard errors, less a fiftieth, to each side."""
    statistics = {
        "value": 1.0,
        "log_density": 0.0,
        "relative_error": 0.01,
        "skewness": 0.0,
        "effective_size": 1e6,
    }
    found = _with_interval({name: np.asarray([x], np.float64) for name, x in statistics.items()}, 10**6, None)
    np.testing.assert_allclose(np.exp([found.lower, found.upper]) / np.e, [[0.9804], [1.0196]], atol=2e-5)


def test_two_streamed_chains_have_the_rhat_of_their_halves():
    """Against the textbook formula on all values; half a chain is long, so sample variances are as good."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 4096)) + np.array([[0.0], [0.3]]) + np.linspace(0, 0.2, 4096)
    batches = values.reshape(2, 64, 64).mean(axis=2)
    one, counts = np.ones(2), np.zeros((2, 1))
    streamed = Streamed(
        *("x", 1, 4096 * one, 0 * one, values.mean(axis=1), values.var(axis=1, ddof=1), one, 64 * one),
        *(batches, np.zeros(2), counts),
    )
    halves = values.reshape(4, 2048)
    within = halves.var(axis=1, ddof=1).mean()
    expected = np.sqrt(1 - 1 / 2048 + halves.mean(axis=1).var(ddof=1) / within)
    assert expected > 1.01
    assert streamed.summarize().rhat == pytest.approx(expected, abs=1e-4)
    seldom = streamed._replace(every=3)
    assert seldom.pooled_time == pytest.approx(3 * values.size / streamed.summarize().ess)


def test_ties_at_a_large_log_density_are_told_from_rises_by_its_rounding():
    """Values about 1e4 are known to some 1e-2 in single precision: a rise of less is a tie."""
    target = steppe.Target(lambda x: 1e4 + jnp.sum(x), steppe.Binary(2))
    rising = np.array([[1e4, 1e4 + 1], [1e4 + 1, 1e4 + 2]])
    assert len(basins_of_table(target, rising).modes) == 1
    tied = np.array([[1e4, 1e4 + 1e-3], [1e4 + 1e-3, 1e4 + 2e-3]])
    assert len(basins_of_table(target, tied).modes) == 4


def test_a_ball_is_averaged_over_the_target_when_that_is_asked_for_and_only_then():
    target = polynomial_target(steppe.Binary(3), 2.0)
    states = np.asarray(target.domain.enumerate())
    asked = local_entropy_ball(target, states, 1, exact=True)
    probabilities = np.exp(asked.log_density - asked.log_density.max())
    probabilities /= probabilities.sum()
    assert asked.exact_under_target is not None
    assert asked.exact_under_target["value"] == pytest.approx(probabilities @ asked.value, abs=1e-5)
    assert local_entropy_ball(target, states, 1, exact=False).exact_under_target is None


@pytest.mark.parametrize("distribution", [[0.5, 0.3, 0.2], [1.0, 0.0], [0.9, 0.1]])
def test_the_noise_of_frequencies_is_the_mean_over_all_outcomes(distribution):
    num_draws = 5
    counts = [count for count in product(range(6), repeat=len(distribution)) if sum(count) == num_draws]
    chances = multinomial.pmf(counts, num_draws, distribution)
    distances = np.abs(np.array(counts) / num_draws - distribution).sum(axis=1) / 2
    found = expected_total_variation(np.array(distribution), num_draws)
    assert found == pytest.approx(chances @ distances, abs=1e-14)


def test_running_statistics_are_those_of_the_states():
    """Of a chain whose draws are not kept: mean, squared deviations, the best state, visits of each state."""
    domain = steppe.Ordinal(2, 3)
    states = np.array([[0, 1], [2, 1], [1, 1], [2, 0], [2, 1]], float)
    heights = np.array([0.0, 3, 1, 2, -1])

    def look(seen, row):
        state, height, counts = row
        return seen.update(domain, SamplerState(state, None, height), counts), None

    # The last state does not count.
    rows = (np.vstack([states, [[0, 0]]]), np.append(heights, 9.0), np.arange(6) < 5)
    seen, _ = jax.jit(lambda: jax.lax.scan(look, Observers.start(domain), jax.tree.map(jnp.asarray, rows)))()
    assert int(seen.num_seen) == 5
    np.testing.assert_allclose(seen.mean, states.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(seen.sum_of_squares, 5 * states.var(axis=0), rtol=1e-5)
    assert float(seen.best_log_density) == 3
    np.testing.assert_array_equal(seen.best_position, states[1])
    indices = np.asarray(domain.index(jnp.asarray(states)))
    np.testing.assert_array_equal(seen.visits, np.bincount(indices, minlength=9))


@pytest.mark.parametrize("every", [1, 2, 3])
def test_an_observable_is_looked_at_as_often_as_was_asked_for(every):
    observed = Observable(lambda bits: bits[0] + 10 * bits[1], every=every)
    followed, domain = Followed((("x", observed),)), steppe.Binary(2)
    states = np.array([[0, 1], [1, 1], [1, 0], [0, 0], [1, 1], [0, 1], [1, 0]], float)
    info = StepInfo(*[jnp.ones(())] * 4)

    def look(readings, row_and_state):
        row, state = row_and_state
        chain = SamplerState(state, None, 2.0 * row)
        return followed.update(domain, readings, chain, info, row), None

    rows = (jnp.arange(len(states)), jnp.asarray(states))
    readings, _ = jax.jit(lambda: jax.lax.scan(look, followed.start(), rows))()
    expected = (states @ [1, 10])[::every]
    _, stream = readings.streams
    assert int(stream.num_seen) == len(expected)
    assert float(stream.origin + stream.mean) == pytest.approx(expected.mean(), rel=1e-6)
    assert int(readings.num_rows) == len(states)
    assert float(readings.acceptance_rate) == float(readings.num_flips) == len(states)


def test_runs_of_replicas_are_whole_on_disk_and_looked_at_row_by_row(tmp_path):
    target = steppe.Target(lambda bits: jnp.sum(bits) / 2, steppe.Binary(3))
    ensemble = steppe.robust_ensemble(replicas=2, coupling_variance=1.0)
    paths = [tmp_path / "long", tmp_path / "short"]
    for path, num_draws in zip(paths, (3, 2), strict=True):
        counts = {"num_chains": 5, "num_warmup": 1, "num_draws": num_draws, "chain_block": 4}
        steppe.sample(target, ensemble, key=KEY, out=path, progress=False, **counts)
    assert [RunDirectory(path).problems() for path in paths] == [[], []]
    assert _count_rows([RunDirectory(path) for path in paths]) == 3
    parts = open_parts([RunDirectory(paths[0])])
    assert parts.cut(4).ends == [4]
    with pytest.raises(DamagedRunError, match="commit of row 3"):
        parts.cut(3)
    assert glance(paths[0]).recent["log_density"].shape[:2] == (5, 4)
    commit = (paths[0] / "journal.jsonl").read_bytes().splitlines()[-1]
    damaged = commit.replace(b'"num_rows":4', b'"num_rows":5')
    assert [one.num_rows for one in read_newest(b"\n".join([b"cut", damaged, commit, b""]))] == [4]


def test_round_trips_are_those_between_the_first_and_the_last_row():
    trace = trace_of(fair_bits(num_chains=2, num_draws=3))
    rates = np.array([[[0.2, 0.4]] * 3, [[0.6, 0.8]] * 3])
    trips = np.array([[1, 2, 5], [0, 3, 3]])
    swaps = measure_swaps(trace._replace(arrays={**trace.arrays, "swap_rate": rates, "round_trips": trips}))
    assert swaps is not None
    np.testing.assert_allclose(swaps.rates, [0.4, 0.6])
    assert (swaps.round_trips, swaps.num_rows, swaps.num_rungs) == (7, 6, 3)


def test_the_spread_of_interactions_under_the_target_weighs_every_state():
    target = polynomial_target(steppe.Binary(3), 2.0)
    states = np.asarray(target.domain.enumerate())
    found = interaction_spectrum(target, states, exact=True)
    weights = np.exp(found.log_density - np.logaddexp.reduce(found.log_density))
    pooled, weights = found.eigenvalues.ravel(), np.repeat(weights / 3, 3)
    lower, upper = np.quantile(pooled, [0.25, 0.75], weights=weights, method="inverted_cdf")
    assert found.exact_under_target is not None
    assert found.exact_under_target["iqr"] == pytest.approx(upper - lower, rel=1e-5)
    mean = weights @ pooled
    std = np.sqrt(weights @ (pooled - mean) ** 2)
    assert found.exact_under_target["std"] == pytest.approx(std, rel=1e-5)


def test_every_change_of_a_tour_gains_what_the_table_says():
    distances = jnp.asarray(np.random.default_rng(2).random((5, 5)))

    def shorten(order):
        here = order.astype(int)
        return -jnp.sum(distances[here, jnp.roll(here, 1)])

    target = steppe.Target(shorten, steppe.Permutation(5))
    position = jnp.asarray([2.0, 0, 3, 1, 4])

    @jax.jit
    def look(position):
        table, is_change = gains(target, position)
        states = jax.vmap(lambda change: after(target, position, change))(jnp.arange(table.size))
        return table, is_change, jax.vmap(target.log_density)(states) - target.log_density(position)

    table, is_change, made = map(np.asarray, look(position))
    np.testing.assert_allclose(table[is_change], made[is_change], atol=1e-5)


@pytest.mark.parametrize("kind", CHANGES)
def test_moves_of_an_order_change_what_is_held_as_its_places_do(kind):
    """`held[p, q]` is what the item of place q is worth at place p; every pair of places, by brute force."""
    held = np.random.default_rng(3).normal(size=(5, 5))
    found = np.asarray(jax.jit(CHANGES[kind])(jnp.asarray(held)))
    for first, last in product(range(5), repeat=2):
        items, (low, high) = list(range(5)), sorted((first, last))
        if kind == "swap":
            items[first], items[last] = items[last], items[first]
        elif kind == "two_opt":
            items[low : high + 1] = items[low : high + 1][::-1]
        else:
            items.insert(last, items.pop(first))
        change = sum(held[place, item] for place, item in enumerate(items)) - np.trace(held)
        assert found[first, last] == pytest.approx(change, abs=1e-5)
