"""Every fast path of every target against slow NumPy loops, in double precision."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import CASES, TINY_CASES, finite_differences

import oracle
import steppe
from steppe.diagnostics.exact import target_distribution, transition_matrix
from tiers import cases
from twins import oracle_domain

pytestmark = pytest.mark.usefixtures("float64")

ROUNDING = 1e-11
FINITE_DIFFERENCE_ERROR = 1e-8
NUM_POSITIONS = 6

WITH_GRADIENT = [name for name in CASES if CASES[name].has_gradient]
WITH_INCREMENTAL = [name for name in CASES if name != "graph, without a hub list"]


class Facts(NamedTuple):
    """What a target says about a few positions, by every path it has."""

    positions: np.ndarray
    values: np.ndarray
    gradients: np.ndarray
    log_densities: np.ndarray
    differences: np.ndarray
    mapped: tuple[np.ndarray, np.ndarray]
    mapped_twice: tuple[np.ndarray, np.ndarray]
    gradient_inside: np.ndarray
    automatic_gradient_inside: np.ndarray


@jax.jit
def all_paths(target: steppe.Target, positions, inside):
    values, gradients = jax.lax.map(target.value_and_grad, positions)
    nested = positions.reshape(2, -1, *positions.shape[1:])
    return Facts(
        positions,
        values,
        gradients,
        jax.lax.map(target.log_density, positions),
        jax.lax.map(target.differences, positions),
        jax.vmap(target.value_and_grad)(positions),
        jax.vmap(jax.vmap(target.value_and_grad))(nested),
        target.value_and_grad(inside)[1],
        jax.grad(target.log_density)(inside),
    )


@cache  # one compilation serves all tests of a case
def facts(name: str) -> Facts:
    target = CASES[name].make()
    positions = target.domain.draw(jax.random.key(1), (NUM_POSITIONS,))
    inside = jnp.asarray(np.random.default_rng(0).uniform(size=target.domain.shape))
    return jax.tree.map(np.asarray, all_paths(target, positions, inside))


@pytest.mark.parametrize("name", CASES, scope="module")
def test_value_matches_the_reference(name):
    known = facts(name)
    expected = [CASES[name].reference(position) for position in known.positions]
    np.testing.assert_allclose(known.values, expected, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(known.log_densities, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("name", WITH_GRADIENT, scope="module")
def test_gradient_matches_finite_differences_of_the_reference(name):
    known = facts(name)
    for position, gradient in list(zip(known.positions, known.gradients, strict=True))[:2]:
        expected = finite_differences(CASES[name].reference, position)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=FINITE_DIFFERENCE_ERROR)


@pytest.mark.parametrize("name", WITH_GRADIENT, scope="module")
def test_gradient_matches_automatic_differentiation_between_the_levels(name):
    known = facts(name)
    np.testing.assert_allclose(known.gradient_inside, known.automatic_gradient_inside, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", CASES, scope="module")
def test_differences_match_changing_one_site_at_a_time(name):
    known, reference = facts(name), CASES[name].reference
    position, table = known.positions[0], known.differences[0]
    domain = oracle_domain(CASES[name].make().domain)
    for site, level in np.ndindex(table.shape):
        changed = oracle.set_level(domain, position, site, level)
        assert abs(table[site, level] - (reference(changed) - reference(position))) <= ROUNDING


@pytest.mark.parametrize("name", CASES, scope="module")
def test_batched_evaluation_equals_single_evaluation_under_any_nesting(name):
    known = facts(name)
    for values, gradients in (known.mapped, known.mapped_twice):
        np.testing.assert_allclose(values.ravel(), known.values, rtol=0, atol=ROUNDING)
        flat = gradients.reshape(known.gradients.shape)
        np.testing.assert_allclose(flat, known.gradients, rtol=0, atol=ROUNDING)


@jax.jit
def walk(target: steppe.Target, position, sites, levels):
    """Cache after a walk and made afresh at its end; rows of differences from the cache and in full."""
    incremental, domain = target.incremental, target.domain

    def move(carry, change):
        memory, here = carry
        memory = incremental.update(memory, here, *change)
        return (memory, domain.replace_sites(here, *change)), None

    start = incremental.init(position), position
    (memory, end), _ = jax.lax.scan(move, start, (sites, levels))
    rows = incremental.differences(memory, end, sites[:4])
    return (memory, rows), (incremental.init(end), target.differences(end)[sites[:4]])


@pytest.mark.parametrize("name", WITH_INCREMENTAL, scope="module")
def test_incremental_form_follows_a_walk(name):
    target, rng = CASES[name].make(), np.random.default_rng(2)
    position = target.domain.draw(jax.random.key(1))
    sites = rng.integers(target.domain.num_sites, size=30)
    levels = rng.integers(target.domain.max_levels, size=30)
    followed, afresh = walk(target, position, sites, levels)
    for kept, made in zip(jax.tree.leaves(followed), jax.tree.leaves(afresh), strict=True):
        np.testing.assert_allclose(kept, made, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", cases(TINY_CASES, fast=("dense", "rbm")), scope="module")
def test_transition_matrices_match_the_oracle(name):
    target = TINY_CASES[name].make()
    domain = oracle_domain(target.domain)
    values = {p.tobytes(): TINY_CASES[name].reference(p) for p in oracle.enumerate_positions(domain)}
    slopes = {
        p.tobytes(): finite_differences(TINY_CASES[name].reference, p)
        for p in oracle.enumerate_positions(domain)
    }

    def log_density(position):
        return values[position.tobytes()]

    def gradient(position):
        return slopes[position.tobytes()]

    expected = oracle.dmala_matrix(domain, log_density, gradient, step_size=0.6)
    langevin = transition_matrix(steppe.dmala(step_size=0.6), target)
    np.testing.assert_allclose(langevin, expected, rtol=0, atol=FINITE_DIFFERENCE_ERROR)
    expected = oracle.gibbs_matrix(domain, log_density)
    gibbs = transition_matrix(steppe.gibbs(), target)
    np.testing.assert_allclose(gibbs, expected, rtol=0, atol=ROUNDING)
    expected = oracle.hamming_ball_matrix(domain, log_density, oracle.blocks_of_size(domain, 3), 1)
    ball = transition_matrix(steppe.hamming_ball(block_size=3, radius=1), target)
    np.testing.assert_allclose(ball, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", ["potts, lattice", "perceptron, errors"])
def test_adjusted_samplers_keep_the_distribution_of_the_reference(name):
    target, reference = CASES[name].make(), CASES[name].reference
    values = np.asarray([reference(position) for position in np.asarray(target.domain.enumerate())])
    distribution = np.exp(values - values.max()) / np.exp(values - values.max()).sum()
    np.testing.assert_allclose(target_distribution(target), distribution, rtol=0, atol=ROUNDING)
    for recipe in (steppe.dmala(step_size=0.6), steppe.gibbs()):
        flow = distribution[:, None] * transition_matrix(recipe, target)
        assert np.abs(flow - flow.T).max() <= ROUNDING
