"""Targets declared multilinear whose sites interact in pairs are followed by their second derivatives."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import transition_matrix
from steppe.target.pair_derivatives import MAX_COORDINATES, FollowedPairs, find_pair_derivatives
from steppe.targets import ising_lattice
from tiers import cases

rng = np.random.default_rng(2)
SHAPES = {"binary": (5,), "ordinal": (4,), "categorical": (4, 3), "ragged": (3, 4)}
DOMAINS = {
    "binary": steppe.Binary(5),
    "ordinal": steppe.Ordinal(4, [-1.0, 0.2, 0.7]),
    "categorical": steppe.Categorical(4, 3),
    "ragged": steppe.Categorical(3, [2, 3, 4]),
}


def pairs_on(name: str) -> steppe.Target:
    """All sites interact with all others, and none with itself."""
    domain = DOMAINS[name]
    size, sites = (
        int(np.prod(domain.shape)),
        np.repeat(np.arange(domain.num_sites), np.prod(domain.shape[1:])),
    )
    couplings = rng.normal(size=(size, size)) * (sites[:, None] != sites)
    linear = jnp.asarray(rng.normal(size=size))

    @jax.jit
    def log_density(position):
        x = position.reshape(-1)
        return linear @ x + x @ jnp.asarray(couplings) @ x

    return steppe.Target(log_density, domain, multilinear=True)


def cubic(x):
    return x[0] * x[1] * x[2]


NOT_FOLLOWED = {
    "cubic": lambda x: x[0] * x[1] + cubic(x),
    "a branch": lambda x: jnp.where(x[0] > 0.5, x[1] * x[2], 0.0),
    "a loop": lambda x: jax.lax.fori_loop(0, 2, lambda i, total: total + x[i] * x[i + 1], 0.0),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", cases(DOMAINS, fast=("ragged",)))
def test_the_followed_gradient_is_that_of_the_position(name):
    target = pairs_on(name)
    derivatives = find_pair_derivatives(target)
    assert derivatives is not None
    followed: Any = FollowedPairs(target.domain, target, derivatives)
    position = target.domain.draw(jax.random.key(0))
    cache = followed.incremental.init(position)
    for site, level in [(0, 1), (2, 1), (0, 0), (1, 1), (2, 0)]:
        cache = followed.incremental.update(cache, position, site, level)
        position = target.domain.replace_sites(position, jnp.asarray(site), jnp.asarray(level))
    np.testing.assert_allclose(cache.gradient, target.value_and_grad(position)[1], atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", cases(["ordinal", "ragged"], fast=("ragged",)))
def test_followed_pairs_have_the_transition_matrix_of_the_plain_function(name):
    target: Any = pairs_on(name)
    plain = steppe.Target(target._functions.log_density, target.domain)
    recipe = steppe.gibbs(num_updates=2)
    block: Any = recipe.build(target).recipe.blocks[0]
    assert block.pairs is not None
    found, expected = (transition_matrix(recipe, made) for made in (target, plain))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_reads_the_position_is_not_followed(name):
    target = steppe.Target(NOT_FOLLOWED[name], steppe.Binary(4), multilinear=True)
    assert find_pair_derivatives(target) is None


def test_targets_that_are_not_declared_or_too_large_are_left_alone():
    pairs = pairs_on("binary")
    size = MAX_COORDINATES + 1
    large = steppe.Target(lambda x: jnp.sum(x[1:] * x[:-1]), steppe.Binary(size), multilinear=True)
    assert find_pair_derivatives(large) is None
    assert find_pair_derivatives(steppe.Target(pairs.log_density, pairs.domain)) is None
    assert find_pair_derivatives(ising_lattice((3, 3), 0.2)) is None


@pytest.mark.slow
def test_draws_are_those_of_the_plain_form_and_the_gradient_is_renewed():
    target = pairs_on("categorical")
    sampler = steppe.gibbs(num_updates=4).build(target)
    block: Any = sampler.recipe.blocks[0]
    plain = dataclasses.replace(
        sampler, recipe=dataclasses.replace(sampler.recipe, blocks=(dataclasses.replace(block, pairs=None),))
    )

    @jax.jit
    def walk(sampler, position):
        def step(state, key):
            state = sampler.step(key, state)[0]
            return state, (state.position, jax.tree.leaves(state.memory))

        return jax.lax.scan(step, sampler.init(position), jax.random.split(jax.random.key(1), 150))[1]

    start = target.domain.draw(jax.random.key(0))
    (found, memory), (expected, _) = walk(sampler, start), walk(plain, start)
    assert np.array_equal(found, expected)
    ages = next(leaf for leaf in memory if leaf.dtype == jnp.int32 and leaf.max() > 60)
    assert ages.max() == 63
    assert ages[-1] == 150 - 2 * 64
