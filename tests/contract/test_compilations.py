"""Numbers are traced: no step size, variance, temperature or target array ever recompiles a loop."""

import jax
import jax.numpy as jnp
import pytest

import steppe
from contract.cases import one_chain, quick_jit, starts
from exact_targets import polynomial_target
from programs import count_programs
from steppe.pytree import Relative
from steppe.samplers import ALL_RECIPES
from tiers import cases

DOMAIN = steppe.Binary(10)
# A first run makes a program that compares the gradient with differences, one that draws starts, one that
# evaluates them and one that steps; the rest are single operations on hyper-parameters of the recipe. Each is
# compiled before the first draw, while a user waits.
MOST_PROGRAMS = 11


def fresh_runner():
    """A compiled loop with a cache of its own: `jax.jit` shares one per function object."""
    return quick_jit(lambda sampler, key, position: one_chain(sampler, key, position, 3)[1].position)


# The others differ from these in what they decide, not in what they are given.
FAST = ("dmala", "edmala", "edmala_glu", "edmala_ou", "roughness_tilted", "robust_ensemble", "gwg", "gibbs")


@pytest.mark.parametrize("name", cases(ALL_RECIPES, fast=FAST))
def test_changing_any_number_or_target_array_does_not_recompile(name):
    recipe, run = ALL_RECIPES[name](), fresh_runner()
    targets = [polynomial_target(DOMAIN, 1.0, seed) for seed in (5, 6)]
    position = starts(DOMAIN)[0]
    run(recipe.build(targets[0], audit=False), jax.random.key(0), position)
    for number, value in recipe.parameters.items():
        other = recipe.replace(**{number: 0.5 * (value.multiple if isinstance(value, Relative) else value)})
        run(other.build(targets[0], audit=False), jax.random.key(1), position)
    run(recipe.build(targets[1], audit=False), jax.random.key(0), position)
    assert count_programs(run) == 1


def test_the_count_sees_a_change_of_structure():
    run, target, position = fresh_runner(), polynomial_target(DOMAIN, 1.0), starts(DOMAIN)[0]
    for recipe in (steppe.dula(step_size=0.2), steppe.dmala(step_size=0.2)):
        run(recipe.build(target, audit=False), jax.random.key(0), position)
    assert count_programs(run) == 2


@pytest.mark.parametrize("name", ALL_RECIPES)
def test_every_recipe_has_a_temperature(name):
    assert ALL_RECIPES[name]().parameters["inverse_temperature"] == 1.0


def test_recipe_can_be_made_inside_a_compiled_function():
    target, key, outside = polynomial_target(DOMAIN, 1.0), jax.random.key(0), fresh_runner()
    inside = quick_jit(
        lambda α, η, position: (
            one_chain(steppe.edmala_glu(step_size=α, coupling_variance=η).build(target), key, position, 3)[
                1
            ].position
        )
    )
    for α, η in ((0.2, 1.0), (0.4, 2.0)):
        expected = outside(
            steppe.edmala_glu(step_size=α, coupling_variance=η).build(target), key, starts(DOMAIN)[0]
        )
        assert (inside(α, η, starts(DOMAIN)[0]) == expected).all()
    assert count_programs(inside) == 1


@pytest.mark.parametrize("initial", [None, jnp.zeros((4, 11))], ids=["drawn", "given"])
def test_first_run_compiles_few_programs(initial, caplog):
    target = steppe.Target(lambda x: jnp.tanh(x).sum() - (x.sum() - 3) ** 2, steppe.Binary(11))
    jax.clear_caches()
    key = jax.random.key(0)
    with jax.log_compiles():
        steppe.sample(target, steppe.dmala(), key=key, num_draws=4, initial=initial)
    compiled = [record for record in caplog.records if "Finished XLA compilation" in record.message]
    assert 3 <= len(compiled) <= MOST_PROGRAMS, [record.message for record in compiled]


def test_concrete_start_can_be_checked_inside_a_compiled_function():
    sampler, position = steppe.dmala().build(polynomial_target(DOMAIN, 1.0)), starts(DOMAIN)[0]
    jax.eval_shape(lambda key: sampler.step(key, sampler.init(position)), jax.random.key(0))


def test_unadjusted_recipe_can_be_audited_inside_a_compiled_function():
    target = polynomial_target(DOMAIN, 1.0)
    jax.eval_shape(lambda position: steppe.dula().build(target).init(position), starts(DOMAIN)[0])
