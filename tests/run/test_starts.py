"""Starts that nobody gave: in the support, the same whatever the number of chains, or refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.errors import StartError
from steppe.kernel.start_search import measure_defects

NUM_SITES = 12
KEY = jax.random.key(3)
WEIGHTS = jnp.linspace(-1.0, 1.0, NUM_SITES)


def linear(bits: jax.Array) -> jax.Array:
    return WEIGHTS @ bits


BINARY = steppe.Binary(NUM_SITES)
# Each has so few valid states that redrawing finds none: at most 1 in 4000.
RARE = {
    "a fixed sum": steppe.Target(linear, BINARY, is_valid=lambda x: jnp.sum(x) == NUM_SITES),
    "one of each group": steppe.Target(
        lambda x: jnp.where(jnp.all(x.reshape(3, 4).sum(1) == 1) & ~(x[0] == 0), linear(x), -jnp.inf), BINARY
    ),
    "factors of zero": steppe.Target(lambda x: jnp.sum(jnp.log(x)), BINARY),
    "a root of a negative": steppe.Target(lambda x: jnp.sum(jnp.sqrt(0.5 - x)), BINARY),
    "neighbours that differ": steppe.Target(
        lambda x: jnp.sum(x[:, 0]),
        steppe.Categorical(NUM_SITES, 3),
        is_valid=lambda x: jnp.all(jnp.sum(x[1:] * x[:-1], axis=-1) == 0),
    ),
    "an order": steppe.Target(
        lambda x: WEIGHTS @ x,
        steppe.Permutation(NUM_SITES),
        is_valid=lambda x: jnp.all(x[:4] >= 6) | jnp.any(x[:2] < -1),
    ),
}


def sample(target: steppe.Target, num_chains: int = 5) -> steppe.Run:
    is_order = isinstance(target.domain, steppe.Permutation)
    recipe = steppe.uniform_permutation() if is_order else steppe.gibbs()
    return steppe.sample(
        target, recipe, key=KEY, num_chains=num_chains, num_warmup=0, num_draws=2, progress=False
    )


@pytest.mark.parametrize("name", RARE)
def test_chains_start_in_the_support_where_redrawing_finds_nothing(name: str) -> None:
    values = sample(RARE[name]).trace.statistic("log_density")
    assert np.isfinite(values).all()


def test_no_chain_starts_where_the_log_density_is_not_a_number() -> None:
    target = steppe.Target(lambda x: jnp.where(x[0] * x[1] > 0, jnp.nan, linear(x)), BINARY)
    assert np.isfinite(sample(target, num_chains=50).trace.statistic("log_density")).all()


@pytest.mark.slow
def test_a_start_that_was_searched_for_does_not_depend_on_the_number_of_chains() -> None:
    few, many = (sample(RARE["one of each group"], n).trace for n in (3, 9))
    np.testing.assert_array_equal(few.levels(), many.levels()[:3])


def test_an_empty_support_is_refused_with_the_chain_and_the_value() -> None:
    target = steppe.Target(lambda x: linear(x) - jnp.inf, BINARY)
    with pytest.raises(StartError, match=r"Chain 0 starts where the log-density is -inf.*give `initial`"):
        sample(target)


def test_an_empty_support_is_refused_before_temperatures_are_chosen() -> None:
    target = steppe.Target(linear, BINARY, is_valid=lambda x: jnp.sum(x) > 1e6)
    with pytest.raises(StartError, match=r"Chain 0 starts where the log-density is -inf.*give `initial`"):
        steppe.anneal(target, key=KEY, progress=False)


def test_annealing_starts_in_the_support() -> None:
    schedule = steppe.parameter_schedule(inverse_temperature=steppe.linear_schedule(0.5, 2.0))
    annealed = steppe.anneal(
        RARE["a fixed sum"], steppe.gibbs(), schedule, key=KEY, num_steps=3, num_chains=5, progress=False
    )
    assert np.isfinite(np.asarray(annealed.best_log_density)).all()


@pytest.mark.slow
def test_flat_modes_are_found_where_few_states_are_valid() -> None:
    target = steppe.Target(linear, BINARY, is_valid=lambda x: jnp.sum(x[:11]) <= 1)
    modes = steppe.find_flat_modes(target, key=KEY, budget=200_000, progress=False)
    assert [mode for mode in modes if np.isfinite(mode.log_density)]


def test_the_defects_of_a_state_count_what_its_constraint_misses() -> None:
    target = RARE["a fixed sum"]
    defects = [float(measure_defects(target, jnp.zeros(NUM_SITES).at[:n].set(1.0))[1]) for n in (0, 5, 11)]
    assert np.diff(defects).tolist() == [-5.0, -6.0]
