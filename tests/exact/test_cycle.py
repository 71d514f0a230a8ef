"""`dmala_cyclical`: every move of its cycle leaves the target invariant, and how the cycle is adapted."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import target_named
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.kernel.blocks.cycle import fall_by_cosine, follow_factors
from steppe.run.adaptation import TARGET_ACCEPTANCE
from steppe.run.cycle_schedule import EXPONENTS, adapt_cycle, choose_exponents, find_cycle, tune_cycle
from steppe.targets import ising_lattice
from tiers import cases

TOLERANCE = 1e-12


def bold_cycle(target: steppe.Target, cycle_length: int = 3) -> Any:
    unit = target.domain.squared_unit
    recipe = steppe.dmala_cyclical(
        step_size=3.0 * unit, cycle_length=cycle_length, smallest=0.2, balancing=0.9
    )
    return recipe.build(target)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("domain", cases(["binary", "ordinal", "ragged"], fast=("ordinal",)))
def test_every_move_of_the_cycle_is_reversible_and_the_cycle_is_their_product(domain):
    target = target_named(domain, "smooth")
    sampler, distribution = bold_cycle(target), target_distribution(target)
    block = sampler.recipe.blocks[0]
    product = np.eye(len(distribution))
    for factor, exponent in zip([1, 0.75, 0.25], [0.9, 0.5 + 0.4 * 2 / 3, 0.5], strict=True):
        plain = steppe.dmala(step_size=3.0 * target.domain.squared_unit * factor).build(target)
        decided: Any = plain.recipe.blocks[0]
        move = dataclasses.replace(decided, proposal=dataclasses.replace(decided.proposal, exponent=exponent))
        matrix = move.transition_matrix(plain.density, None)
        flow = distribution[:, None] * matrix
        assert np.abs(flow - flow.T).max() <= TOLERANCE
        product = product @ matrix
    cycle = block.transition_matrix(sampler.density, None)
    assert np.abs(cycle - product).max() <= TOLERANCE
    assert np.abs(distribution @ cycle - distribution).max() <= TOLERANCE


@pytest.mark.usefixtures("float64")
def test_a_cycle_of_balanced_moves_of_one_size_is_dmala_over_and_over():
    target = target_named("ordinal", "smooth")
    step = 0.7 * target.domain.squared_unit
    cycle = steppe.dmala_cyclical(step_size=step, cycle_length=2, smallest=1.0)
    once = transition_matrix(steppe.dmala(step_size=step), target)
    assert np.abs(transition_matrix(cycle, target) - once @ once).max() <= TOLERANCE


def test_an_exponent_weighs_changes_by_that_power():
    target = target_named("binary", "smooth")
    block = bold_cycle(target).recipe.blocks[0]
    density = bold_cycle(target).density
    state = density.evaluate(jnp.array([1.0, 0.0, 0.0, 1.0]), None)
    change = target.domain.flip_slopes(state.position, state.gradient)
    for exponent in (0.5, 0.9):
        logits = block.at_place(0.5, exponent).proposal.at(density, state).logits
        expected = exponent * change - 0.5 / (0.5 * 3.0)
        np.testing.assert_allclose(logits, expected, rtol=1e-5)


def test_step_sizes_fall_to_the_smallest_and_exponents_with_them():
    factors = fall_by_cosine(4, 0.3)
    np.testing.assert_allclose(factors, [1, 0.5 * (1 + np.sqrt(0.5)), 0.5, 0.3])
    exponents = follow_factors(factors, 0.9)
    assert exponents[0] == 0.9
    assert exponents[-1] == 0.5
    assert (np.diff(exponents) < 0).all()
    assert follow_factors(np.ones(2), 0.8).tolist() == [0.8, 0.8]


def test_exponents_are_the_best_that_do_not_fall_with_the_step_size():
    rates = np.zeros((3, len(EXPONENTS)))
    rates[2, 3] = rates[1, 1] = rates[0, 7] = 0.6
    rates[1, 5] = 0.5
    assert choose_exponents(np.array([1, 0.5, 0.1]), rates).tolist() == EXPONENTS[[7, 5, 3]].tolist()


@pytest.fixture(scope="module")
def adapted():
    target = ising_lattice((4, 4), 0.2)
    recipe = steppe.dmala_cyclical(cycle_length=3)
    return target, recipe, tune_cycle(recipe, target, jax.random.key(3))


@pytest.mark.slow
def test_the_range_of_step_sizes_is_accepted_as_wanted(adapted):
    target, _, (largest, factors, exponents) = adapted
    assert 0 < factors[-1] <= 1
    assert (np.diff(exponents) <= 0).all()
    run = steppe.sample(
        target,
        steppe.dmala(step_size=largest * factors.min()),
        key=jax.random.key(0),
        num_warmup=100,
        num_draws=400,
        adapt=False,
        progress=False,
    )
    assert abs(float(run.trace.statistic("acceptance_rate").mean()) - TARGET_ACCEPTANCE) < 0.1


@pytest.mark.slow
def test_a_stored_cycle_is_taken_as_it_is_and_a_fixed_one_left_alone(adapted):
    target, recipe, cycle = adapted
    record: Any = cycle  # has the same three names
    made = adapt_cycle(recipe, target, jax.random.key(0), record)
    block = find_cycle(made)
    assert block is not None
    assert block.fate == "fixed"
    np.testing.assert_allclose(block.exponents, cycle.exponents, rtol=1e-6)
    assert made.parameters["step_size"] == pytest.approx(cycle.step_size)
    given = steppe.dmala_cyclical(step_size=0.3)
    assert adapt_cycle(given, target, jax.random.key(0)) is given


@pytest.mark.slow
def test_a_continued_run_keeps_the_cycle_it_was_adapted_to(tmp_path):
    target = ising_lattice((3, 3), 0.2)
    options: Any = {"key": jax.random.key(5), "num_chains": 2, "num_warmup": 20, "progress": False}
    whole = steppe.sample(target, steppe.dmala_cyclical(), num_draws=30, **options)
    steppe.sample(target, steppe.dmala_cyclical(), num_draws=10, out=tmp_path / "run", **options)
    longer = steppe.sample(
        target, steppe.dmala_cyclical(), num_draws=30, out=tmp_path / "run", resume=True, **options
    )
    assert np.array_equal(whole.levels, longer.levels)
