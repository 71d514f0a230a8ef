"""A search chooses what was left out, stops when told to, goes on where it stopped, and says what it met."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.errors import DamagedRunError, RunError, RunMismatchError, StorageError
from steppe.run.storage.annealing import AnnealingDirectory
from steppe.run.temperature_range import NUM_STATES, choose_temperatures, find_quiet_end
from steppe.targets import ising_graph, max_cut, tsp

KEY = jax.random.key(11)
RNG = np.random.default_rng(4)
EDGES = np.asarray(list(itertools.combinations(range(12), 2)))[RNG.permutation(66)[:30]]
WEIGHTS = RNG.normal(size=30)
GLASS = ising_graph(EDGES, WEIGHTS, num_sites=12)
VALUES = np.asarray(jax.vmap(GLASS.log_density)(GLASS.domain.enumerate()))


def search(**options):
    return steppe.anneal(GLASS, key=KEY, progress=False, **{"num_steps": 60, "num_chains": 16} | options)


def test_a_search_without_recipe_and_schedule_finds_the_enumerated_ground_state():
    found = search()
    assert found.recipe.name == "chromatic_gibbs"
    np.testing.assert_allclose(found.best_log_density.max(), VALUES.max(), rtol=1e-5)
    np.testing.assert_allclose(GLASS.log_density(found.best), VALUES.max(), rtol=1e-5)
    assert found.stopped == "all steps were made"
    assert found.num_rounds == 1


def test_the_range_of_temperatures_lets_a_usual_loss_pass_and_refuses_the_smallest():
    hot, cold = choose_temperatures(GLASS, KEY)
    states = GLASS.domain.enumerate()
    tables = np.asarray(jax.vmap(GLASS.differences)(states))
    losses = -tables[tables.max(axis=(1, 2)) <= 1e-6]  # at local optima
    losses = losses[losses > 0]
    assert 0.01 < np.exp(-hot * losses.mean()) < 0.2
    assert np.exp(-cold * np.median(losses)) < 1e-3


def test_at_the_quiet_end_one_of_all_single_changes_of_a_state_is_expected():
    sizes = np.repeat([1.0, 2.0, 3.0], NUM_STATES * np.asarray([600, 3000, 5000]))
    np.testing.assert_allclose(np.exp(-find_quiet_end(sizes) * sizes).sum(), NUM_STATES, rtol=1e-6)
    assert find_quiet_end(np.asarray([0.5, 1.0])) == 0.0  # so few are quiet anywhere


@pytest.mark.slow
def test_a_target_of_permutations_is_searched_by_default_too():
    coordinates = np.random.default_rng(0).uniform(size=(9, 2))
    distances = np.linalg.norm(coordinates[:, None] - coordinates[None], axis=-1)
    found = steppe.anneal(tsp(distances), key=KEY, num_steps=200, progress=False)
    lengths = [
        distances[np.r_[0, order], np.r_[order, 0]].sum() for order in itertools.permutations(range(1, 9))
    ]
    np.testing.assert_allclose(-found.best_log_density.max(), min(lengths), rtol=1e-4)


@pytest.mark.slow
def test_a_flat_target_has_no_temperatures_to_choose():
    flat = steppe.Target(lambda x: 0.0 * x.sum(), steppe.Binary(4))
    with pytest.raises(RunError, match="no change that changes the log-density"):
        steppe.anneal(flat, key=KEY, num_steps=10)


def test_a_value_that_is_reached_ends_the_search():
    found = search(num_steps=5000, until=steppe.until(value=float(VALUES.max())))
    assert found.stopped == "the value was reached"
    assert found.shortfall == ""
    assert found.history["progress"].shape[1] < 200


def test_a_value_that_is_not_reached_is_said_with_the_best():
    sentence = steppe.until(value=9.0).describe_shortfall(2.5)
    assert sentence.startswith("The best U is 2.5; 9 was asked for.")
    assert steppe.until(patience=3).describe_shortfall(2.5) == ""


def test_patience_ends_the_search_after_so_many_idle_steps():
    found = search(until=steppe.until(patience=90))
    assert found.stopped == "nothing better came for the steps allowed"
    best = found.trace["best_log_density"]
    rows_after = len(best) - 1 - int(np.argmax(best == best[-1]))
    assert 45 <= rows_after <= 180


def test_time_ends_the_search_and_rounds_double():
    found = search(num_steps=None, until=steppe.until(cpu_seconds=0.4))
    assert found.stopped == "the time was used up"
    assert found.num_rounds >= 3
    assert found.trace["seconds"][-1] > 0
    assert (np.diff(found.trace["evaluations"]) > 0).all()


def test_restarts_begin_anew_and_reheating_goes_on_from_the_best():
    again, reheated = search(restarts=2), search(restarts=2, reheat=True)
    for found in (again, reheated):
        assert found.num_rounds == 3
        assert (np.diff(found.history["best_log_density"], axis=1) >= 0).all()
    begins = [found.history["progress"][0, found.history["round"][0] == 1][0] for found in (again, reheated)]
    assert begins[0] == 0
    assert 0 < begins[1] < 1


@pytest.mark.slow
def test_an_adaptive_schedule_leads_the_flips_where_they_are_wanted():
    lattice = steppe.targets.ising_lattice((16, 16), 0.2)
    schedule = steppe.adaptive_schedule(flips=(0.4, 0.01))
    found = steppe.anneal(lattice, schedule=schedule, key=KEY, num_steps=400, num_chains=16, progress=False)
    flips = found.history["num_flips"].mean(axis=0) / 256
    wanted = 0.4 * (0.01 / 0.4) ** found.history["progress"][0]
    middle = slice(40, 160)
    assert np.abs(np.log(flips[middle] / wanted[middle])).mean() < 0.35


@pytest.mark.slow
def test_local_optima_are_those_of_the_enumeration_each_once_up_to_the_mirror():
    cut = max_cut(EDGES, np.abs(WEIGHTS), num_nodes=12)
    found = steppe.anneal(cut, key=KEY, num_steps=20, restarts=20, num_chains=16, progress=False)
    optima = found.local_optima()
    states = np.asarray(cut.domain.enumerate())
    tables = np.asarray(jax.vmap(cut.differences)(jnp.asarray(states)))
    is_optimum = (tables.max(axis=(1, 2)) <= 1e-5) & (states[:, 0] == 1)
    known = {tuple(state) for state in states[is_optimum]}
    met = [tuple(state) for state in optima.positions]
    assert len(set(met)) == len(met)
    assert set(met) <= known
    assert len(met) >= 2
    assert (np.diff(optima.log_density) <= 0).all()
    np.testing.assert_allclose(optima.log_density[0], float(found.best_log_density.max()), rtol=1e-5)


# ---- directories -------------------------------------------------------------------------------------------


def compare(first, second):
    np.testing.assert_array_equal(first.best_position, second.best_position)
    np.testing.assert_array_equal(first.position, second.position)
    for name in first.history:
        np.testing.assert_array_equal(first.history[name], second.history[name])


@pytest.mark.parametrize(
    "options",
    [{}, pytest.param({"schedule": steppe.adaptive_schedule(flips=(0.3, 0.01))}, marks=pytest.mark.slow)],
    ids=["geometric", "adaptive"],
)
def test_a_killed_search_goes_on_with_the_same_steps(tmp_path, monkeypatch, options):
    whole = search(restarts=1, **options)
    rows = itertools.count()

    def kill(self, done):
        if next(rows) == 70:
            self.save(done)
            raise ZeroDivisionError
        return False

    with monkeypatch.context() as patch:
        patch.setattr(AnnealingDirectory, "save_in_time", kill)
        with pytest.raises(ZeroDivisionError):
            search(restarts=1, out=tmp_path / "a", **options)
    resumed = search(restarts=1, out=tmp_path / "a", **options)
    compare(whole, resumed)
    compare(whole, search(restarts=1, out=tmp_path / "a", **options))


def test_more_restarts_continue_a_finished_search(tmp_path):
    search(out=tmp_path / "a")
    compare(search(restarts=2), search(restarts=2, out=tmp_path / "a"))
    assert sorted(child.suffix for child in (tmp_path / "a").iterdir()) == ["", ".bin", ".json"]


def test_another_search_and_damage_are_refused(tmp_path):
    search(out=tmp_path / "a")
    with pytest.raises(RunMismatchError, match="another key"):
        steppe.anneal(
            GLASS, key=jax.random.key(5), num_steps=60, num_chains=16, out=tmp_path / "a", progress=False
        )
    other = ising_graph(EDGES, 2 * WEIGHTS, num_sites=12)
    with pytest.raises(RunMismatchError, match="another"):
        steppe.anneal(other, key=KEY, num_steps=60, num_chains=16, out=tmp_path / "a", progress=False)
    with pytest.raises(RunMismatchError, match="num_steps"):
        search(num_steps=61, out=tmp_path / "a")
    arrays = next((tmp_path / "a").glob("*.bin"))
    content = bytearray(arrays.read_bytes())
    content[len(content) // 2] ^= 1
    arrays.write_bytes(content)
    with pytest.raises(DamagedRunError, match="digest"):
        search(out=tmp_path / "a")
    record = tmp_path / "a" / "anneal.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"stopped": "now"}))
    with pytest.raises(DamagedRunError):
        search(out=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letter.txt").write_text("Dear")
    with pytest.raises(StorageError, match="something else"):
        search(out=tmp_path / "b")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"time_limit": 0.0}, "time_limit"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"restarts": -1}, "restarts"),
        ({"until": 3}, "until"),
        ({"reheat": "yes"}, "reheat"),
    ],
)
def test_impossible_limits_are_refused(options, said):
    with pytest.raises(steppe.errors.SteppeError, match=said):
        search(**options)


def test_impossible_ends_and_schedules_are_refused():
    with pytest.raises(RunError, match="none was given"):
        steppe.until()
    with pytest.raises(RunError, match="patience"):
        steppe.until(patience=0)
    with pytest.raises(RunError, match="cpu_seconds"):
        steppe.until(cpu_seconds=0.0)
    with pytest.raises(RunError, match="one of them"):
        steppe.adaptive_schedule()
    with pytest.raises(RunError, match="two numbers"):
        steppe.adaptive_schedule(flips=[0.1])
    with pytest.raises(RunError, match="flips"):
        steppe.adaptive_schedule(flips=[0.1, 0.0])
