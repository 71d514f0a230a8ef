"""Parallel tempering keeps the product distribution, by enumeration and by the steps it really takes.

False alarms: five p-values against 1e-6. Seen with 40 000 chains: a total variation of 0.03 of the joint
distribution.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from contract.cases import quick_jit
from exact_targets import polynomial_target
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.kernel.blocks.tempering import Rung, TemperedBlock

BETAS = (1.0, 0.4)
FALSE_ALARM = 1e-6
NUM_CHAINS = 40_000


class UnweighedSwaps(TemperedBlock):
    """Swaps neighbours whatever it costs."""

    def swap_log_ratio(self, density, place, pair):
        return jnp.zeros(())


class InvertedSwaps(TemperedBlock):
    """Hands the better state to the hotter chain."""

    def swap_log_ratio(self, density, place, pair):
        return -super().swap_log_ratio(density, place, pair)


class Case(NamedTuple):
    target: steppe.Target
    base: steppe.samplers.Recipe


def small(num_sites, base):
    return Case(polynomial_target(steppe.Binary(num_sites), 4.0), base)


def distributions(target):
    """Of the cold and the hot chain."""
    hot = target_distribution(target) ** BETAS[1]
    return target_distribution(target), hot / hot.sum()


def joint_distribution(target):
    return np.outer(*distributions(target)).ravel()


def swap_matrix(sampler, target):
    """Of the joint states (cold, hot), from the decisions of the kernel itself."""
    values = jax.vmap(target.log_density)(target.domain.enumerate())
    size = len(values)
    matrix = np.zeros((size * size, size * size))
    for cold in range(size):
        for hot in range(size):
            pair = jnp.array([values[cold], values[hot]])
            log_ratio = sampler.recipe.blocks[0].swap_log_ratio(sampler.density, 0, pair)
            accepted = float(np.exp(min(float(log_ratio), 0.0)))
            matrix[cold * size + hot, hot * size + cold] += accepted
            matrix[cold * size + hot, cold * size + hot] += 1 - accepted
    return matrix


def joint_matrix(case):
    recipe = steppe.parallel_tempering(base=case.base, inverse_temperatures=BETAS)
    within = [transition_matrix(case.base.replace(inverse_temperature=beta), case.target) for beta in BETAS]
    return np.kron(*within) @ swap_matrix(recipe.build(case.target), case.target)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "base",
    [
        steppe.dmala(step_size=0.6),
        *(pytest.param(made, marks=pytest.mark.slow) for made in (steppe.gibbs(), steppe.gwg(num_flips=1))),
    ],
    ids=lambda r: r.name,
)
def test_moves_and_swaps_leave_the_product_law_invariant(base):
    case = small(2, base)
    distribution, matrix = joint_distribution(case.target), joint_matrix(case)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    assert np.abs(distribution @ matrix - distribution).max() <= 1e-12


@quick_jit
def steps(sampler, keys, cold, hot, num_steps):
    """Cold and hot state numbers after some steps from given ones."""
    domain = sampler.target.domain

    def one(key, cold, hot):
        base = sampler.init(domain.enumerate()[cold])
        other = sampler.init(domain.enumerate()[hot])
        rung = Rung(other.chain, other.memory[0].cold)
        hot = jax.tree.map(lambda leaf: leaf[None], rung)
        state = base._replace(memory=(base.memory[0]._replace(hot=hot),))
        state = jax.lax.fori_loop(
            0, num_steps, lambda i, s: sampler.step(jax.random.fold_in(key, i), s)[0], state
        )
        return domain.index(state.position), domain.index(state.memory[0].hot.chain.position[0])

    return jax.vmap(one)(keys, cold, hot)


def frequencies(sampler, cold, hot, num_steps, seed=0):
    keys = jax.random.split(jax.random.key(seed), len(cold))
    ends = steps(sampler, keys, jnp.asarray(cold), jnp.asarray(hot), num_steps)
    size = sampler.target.domain.num_states
    return np.bincount(np.asarray(ends[0]) * size + np.asarray(ends[1]), minlength=size * size)


def p_value(counts, distribution):
    """Of a χ² test; cells that expect fewer than 10 draws are pooled."""
    expected = counts.sum() * distribution
    rare = expected < 10
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 0
    return scipy.stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue


@pytest.mark.parametrize(
    "base",
    [steppe.dmala(step_size=0.6), pytest.param(steppe.gibbs(), marks=pytest.mark.slow)],
    ids=lambda r: r.name,
)
def test_one_step_has_the_law_of_the_enumerated_matrix(base):
    case = small(2, base)
    sampler = steppe.parallel_tempering(base=base, inverse_temperatures=BETAS).build(case.target)
    start = 1 * 4 + 2
    counts = frequencies(sampler, np.full(NUM_CHAINS, 1), np.full(NUM_CHAINS, 2), 1)
    assert p_value(counts, joint_matrix(case)[start]) >= FALSE_ALARM


def from_stationarity(kind, num_sites):
    """p-value of the joint distribution after three steps from exact draws of it."""
    case = small(num_sites, steppe.dmala(step_size=0.6))
    recipe = steppe.parallel_tempering(base=case.base, inverse_temperatures=BETAS)
    tempered: Any = recipe.blocks[0]
    faulty = dataclasses.replace(recipe, blocks=(kind(tempered.block, BETAS),))
    rng = np.random.default_rng(0)
    cold, hot = (
        rng.choice(len(distribution), NUM_CHAINS, p=np.float64(distribution) / np.float64(distribution).sum())
        for distribution in distributions(case.target)
    )
    return p_value(frequencies(faulty.build(case.target), cold, hot, 3), joint_distribution(case.target))


@pytest.mark.parametrize("num_sites", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_stationary_chains_keep_the_product_law(num_sites):
    assert from_stationarity(TemperedBlock, num_sites) >= FALSE_ALARM


@pytest.mark.parametrize("kind", [UnweighedSwaps, InvertedSwaps])
def test_gate_rejects_swaps_with_the_wrong_ratio(kind):
    assert from_stationarity(kind, 4) < 1e-7


MISTAKES = {
    "one temperature": ({"inverse_temperatures": (1.0,)}, "at least two"),
    "rising": ({"inverse_temperatures": (1.0, 2.0)}, "fall from 1"),
    "not from 1": ({"inverse_temperatures": (0.9, 0.3)}, "fall from 1"),
    "not numbers": ({"inverse_temperatures": "hot"}, "fall from 1"),
    "unadjusted": ({"base": steppe.dula()}, "adjusted recipe"),
    "coupled": ({"base": steppe.edmala()}, "without center"),
    "not a recipe": ({"base": "dmala"}, "without center"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_composition_is_refused(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(steppe.errors.RecipeError, match=message):
        steppe.parallel_tempering(**arguments)
