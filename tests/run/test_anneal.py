"""Annealed runs find good states, move the numbers they say, and refuse schedules that cannot be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.errors import RecipeError, RunError, StartError
from steppe.run.rounds import advance_chains
from steppe.targets import ising_lattice

LATTICE = ising_lattice((6, 6), 0.4)
GROUND = float(LATTICE.log_density(jnp.ones(LATTICE.domain.shape)))
KEY = jax.random.key(5)


def cooling(end: float = 5.0):
    return steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.1, end))


@pytest.mark.parametrize(
    "recipe",
    [
        steppe.dmala(),
        pytest.param(steppe.gibbs(num_updates=4), marks=pytest.mark.slow),
        pytest.param(steppe.robust_ensemble(replicas=2, center="lattice"), marks=pytest.mark.slow),
        pytest.param(steppe.gwg(), marks=pytest.mark.slow),
    ],
    ids=lambda recipe: recipe.name,
)
def test_cooling_a_small_lattice_finds_its_ground_state(recipe):
    found = steppe.anneal(LATTICE, recipe, cooling(), key=KEY, num_steps=600, num_chains=3)
    assert found.best_position.shape == (3, 36)
    np.testing.assert_allclose(found.best_log_density.max(), GROUND, rtol=1e-5)
    values = jax.vmap(LATTICE.log_density)(found.best_position)
    np.testing.assert_allclose(values, found.best_log_density, rtol=1e-5)


def test_replicas_are_tied_tighter_along_the_default_schedule():
    recipe = steppe.robust_ensemble(replicas=2, center="lattice")
    found = steppe.anneal(LATTICE, recipe, key=KEY, num_steps=40, num_chains=1, progress=False)
    variances = found.history["coupling_variance"][0]
    assert (np.diff(variances) < 0).all()
    fraction = 1 / (1 + np.exp(LATTICE.domain.squared_unit / (2 * variances[-1])))
    assert fraction == pytest.approx(0.05, rel=1e-4)


def test_history_shows_the_numbers_as_scheduled_and_the_step_size_that_followed():
    found = steppe.anneal(LATTICE, steppe.dmala(), cooling(), key=KEY, num_steps=400, num_chains=2)
    history = found.history
    np.testing.assert_allclose(history["progress"][0, [0, -1]], [1 / 399, 1], rtol=1e-5)
    np.testing.assert_allclose(history["inverse_temperature"][0, -1], 5.0, rtol=1e-5)
    assert history["step_size"].std() > 0
    assert (np.diff(history["best_log_density"], axis=1) >= 0).all()


def test_a_scheduled_step_size_is_not_adapted():
    step = steppe.parameter_schedule(step_size=steppe.linear_schedule(0.5, 0.1))
    found = steppe.anneal(LATTICE, steppe.dmala(), step, key=KEY, num_steps=100, num_chains=1)
    np.testing.assert_allclose(found.history["step_size"][0, -1], 0.1, rtol=1e-5)


def test_other_numbers_and_lengths_do_not_compile_again():
    steppe.anneal(LATTICE, steppe.dmala(), cooling(), key=KEY, num_steps=100, num_chains=2)
    compiled = advance_chains(0)._cache_size()
    steppe.anneal(LATTICE, steppe.dmala(step_size=0.7), cooling(9.0), key=KEY, num_steps=300, num_chains=2)
    assert advance_chains(0)._cache_size() == compiled


def test_the_same_key_gives_the_same_result():
    first, second = (
        steppe.anneal(LATTICE, steppe.edmala(), cooling(), key=KEY, num_steps=100, num_chains=2)
        for _ in range(2)
    )
    assert (first.position == second.position).all()
    assert (first.center == second.center).all()


MISTAKES = {
    "not a function": (3, RunError, "must be a function or what"),
    "not a dictionary": (lambda progress: progress, RecipeError, "dictionary of numbers"),
    "unknown number": (steppe.parameter_schedule(heat=steppe.linear_schedule(0, 1)), RecipeError, "['heat']"),
    "out of range on the way": (
        lambda progress: {"inverse_temperature": 0.55 - progress},
        RecipeError,
        "must be positive",
    ),
}


@pytest.mark.parametrize(("schedule", "error", "said"), MISTAKES.values(), ids=MISTAKES)
def test_impossible_schedules_are_refused(schedule, error, said):
    with pytest.raises(error) as caught:
        steppe.anneal(LATTICE, steppe.dmala(), schedule, key=KEY, num_steps=10)
    assert said in str(caught.value)


def test_wrong_arguments_are_refused():
    with pytest.raises(RunError, match="recipe"):
        steppe.anneal(LATTICE, "dmala", cooling(), key=KEY, num_steps=10)
    with pytest.raises(RunError, match="random key"):
        steppe.anneal(LATTICE, steppe.dmala(), cooling(), key=3, num_steps=10)
    with pytest.raises(RecipeError, match="num_steps"):
        steppe.anneal(LATTICE, steppe.dmala(), cooling(), key=KEY, num_steps=0)
    with pytest.raises(StartError, match="shape"):
        steppe.anneal(LATTICE, steppe.dmala(), cooling(), key=KEY, num_steps=9, initial=np.ones((2, 36)))
    with pytest.raises(RecipeError, match="function of progress"):
        steppe.parameter_schedule(inverse_temperature=3.0)
