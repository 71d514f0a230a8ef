"""BlackJAX's own loop runs every recipe as it is."""

import jax
import numpy as np
import pytest

from contract.cases import quick_jit, starts, target_on
from steppe.samplers import ALL_RECIPES
from tiers import cases

NUM_STEPS = 5


def run_inference_algorithm(*arguments, **start):
    # Imported where it is needed: it takes longer to import than a test takes to run.
    return pytest.importorskip("blackjax.util").run_inference_algorithm(*arguments, **start)


def from_position(sampler, key, position):
    return run_inference_algorithm(key, sampler, NUM_STEPS, initial_position=position)


def from_state(sampler, key, position):
    # `run_inference_algorithm` splits its key in two when it makes the initial state itself.
    run_key, init_key = jax.random.split(key)
    state = sampler.init(position, init_key)
    return run_inference_algorithm(run_key, sampler, NUM_STEPS, initial_state=state)


compiled_from_position = quick_jit(from_position)


# One recipe of every shape of state: with and without gradient, center, copies.
CASES = cases(ALL_RECIPES, fast=("edmala", "gibbs", "gwg", "robust_ensemble"))


@pytest.mark.parametrize("name", CASES)
def test_blackjax_runs_the_recipe_from_a_position_or_a_state(name):
    target = target_on("binary")
    arguments = ALL_RECIPES[name]().build(target, audit=False), jax.random.key(3), starts(target.domain)[0]
    final, (states, infos) = compiled_from_position(*arguments)
    np.testing.assert_array_equal(states.position[-1], final.position)
    assert infos.is_accepted.shape == (NUM_STEPS,)
    # From a state it is the same program up to the first line; tracing shows that it fits.
    signature = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), (final, (states, infos)))
    traced = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), jax.eval_shape(from_state, *arguments))
    assert traced == signature


def test_blackjax_needs_no_jit_around_it():
    target = target_on("binary")
    arguments = ALL_RECIPES["dula"]().build(target, audit=False), jax.random.key(3), starts(target.domain)[0]
    (plain, _), (jitted, _) = from_state(*arguments), compiled_from_position(*arguments)
    np.testing.assert_array_equal(plain.position, jitted.position)
