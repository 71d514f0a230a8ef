"""Fed the same random numbers, the engine and the NumPy oracle walk the same chain on every domain.

All recipes on one domain are one compiled program on one stream of noise, and both steepnesses of a target
share it, so recipes and steepnesses are loops inside the test.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import steppe
from exact_targets import DOMAINS
from steppe.kernel.keys import Keys
from steppe.random import draws
from tiers import cases
from twins import Twin, both_steepnesses, quick_jit, twin_of

pytestmark = pytest.mark.usefixtures("float64")

RATE_TOLERANCE = 1e-10
CENTER_TOLERANCE = 1e-12
NUM_STEPS = 140  # on each of two steepnesses
MIN_MOVES = 20  # a chain that stands still would agree with anything

STEP = {"step_size": 1.5}
COUPLED = STEP | {"coupling_variance": 1.0}
JOINT = COUPLED | {"center_step_size": 0.3}
PERSISTENCE = 0.6

UNCOUPLED_RECIPES = {"dula": steppe.dula(**STEP), "dmala": steppe.dmala(**STEP)}
JOINT_RECIPES = {"edula": steppe.edula(**JOINT), "edmala": steppe.edmala(**JOINT)}
SWEEP_RECIPES = {
    "edula_glu": steppe.edula_glu(**COUPLED),
    "edmala_glu": steppe.edmala_glu(**COUPLED),
    "edmala_ou": steppe.edmala_ou(**COUPLED, persistence=PERSISTENCE),
}
CHAIN_RECIPES = UNCOUPLED_RECIPES | JOINT_RECIPES | SWEEP_RECIPES


class StepNoise(NamedTuple):
    """The random numbers a step uses, in the oracle's convention."""

    uniforms: np.ndarray
    normals: np.ndarray
    joint_normals: np.ndarray
    accept: np.ndarray


def step_noise(domain: steppe.Domain, key) -> StepNoise:
    # One uniform decides a two-level site; other sites race one exponential per level.
    shape = (domain.num_sites,) if domain.is_two_level else (domain.num_sites, domain.max_levels)
    keys = Keys.of_step(key)
    return StepNoise(
        uniforms=draws.uniform(keys.position, shape),
        normals=draws.normal(keys.center, domain.shape),
        # A joint proposal uses both words of the same pairs.
        joint_normals=draws.normal(keys.position, domain.shape),
        accept=jnp.exp(draws.log_uniform(keys.accept)),
    )


@quick_jit
def engine_chains(samplers, start, keys):
    """States and decisions of one chain per sampler, all on the same noise, and that noise."""

    def step(states, key):
        stepped = [one.step(key, state) for one, state in zip(samplers, states, strict=True)]
        seen = [(s.position, s.center, i.is_accepted, i.acceptance_rate) for s, i in stepped]
        return [state for state, _ in stepped], (seen, step_noise(samplers[0].target.domain, key))

    return jax.lax.scan(step, [one.init(start) for one in samplers], keys)[1]


def oracle_chain(name: str, twin: Twin, position: np.ndarray, noises: StepNoise):
    """Yield the oracle's steps; it carries its own state, so a stale cache of the engine would show."""
    domain, *functions = twin
    center = position
    for uniforms, normals, joint_normals, accept in zip(*map(np.asarray, noises), strict=True):
        decision = accept if "mala" in name else None
        if name in UNCOUPLED_RECIPES:
            step = oracle.dmala_step(domain, position, uniforms, decision, *functions, **STEP)
        else:
            own_normals = joint_normals if name in JOINT_RECIPES else normals
            given = (domain, position, center, uniforms, own_normals, decision, *functions)
            if name in JOINT_RECIPES:
                step = oracle.edmala_step(*given, **JOINT)
            elif name == "edmala_ou":
                step = oracle.ou_step(*given, **COUPLED, correlation=PERSISTENCE)
            else:
                step = oracle.glu_step(domain, position, *given[3:], **COUPLED)
        position, center = step.position, step.center
        yield step


def assert_same_chain(name, seen, steps):
    positions, centers, accepted, rates = seen
    np.testing.assert_array_equal(positions, [step.position for step in steps], err_msg=name)
    np.testing.assert_array_equal(accepted, [step.accepted for step in steps], err_msg=name)
    if name not in UNCOUPLED_RECIPES:
        expected = np.array([step.center for step in steps])
        np.testing.assert_allclose(centers, expected, rtol=0, atol=CENTER_TOLERANCE, err_msg=name)
    if "mala" in name:
        expected = np.exp(np.minimum([step.log_ratio for step in steps], 0.0))
        np.testing.assert_allclose(rates, expected, rtol=0, atol=RATE_TOLERANCE, err_msg=name)


@pytest.mark.parametrize("domain", cases(DOMAINS, fast=["ragged"]))
def test_every_chain_is_the_oracles_for_the_same_random_numbers(domain):
    keys = jax.random.split(jax.random.key(12), NUM_STEPS)
    num_moves = np.zeros(len(CHAIN_RECIPES))
    for target in both_steepnesses(domain):
        start = np.asarray(target.domain.draw(jax.random.key(11)))
        samplers = [recipe.build(target, audit=False) for recipe in CHAIN_RECIPES.values()]
        chains, noises = engine_chains(samplers, start, keys)
        for name, seen in zip(CHAIN_RECIPES, chains, strict=True):
            assert_same_chain(name, seen, list(oracle_chain(name, twin_of(target), start, noises)))
        num_moves += [count_moves(positions) for positions, *_ in chains]
    assert num_moves.min() >= MIN_MOVES


def count_moves(positions) -> int:
    return int(np.diff(positions, axis=0).reshape(len(positions) - 1, -1).any(axis=1).sum())
