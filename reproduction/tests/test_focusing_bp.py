"""Focusing belief propagation: exact on trees by enumeration, and a solver at published loads."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe.targets import random_labels, teacher_student
from steppe_edlp.flatness.focusing_bp import (
    Beliefs,
    begin,
    count_errors,
    fold_labels,
    solve,
    sweep,
)

KEY = jax.random.key(0)


def settle(facing, num_sweeps, **options):
    beliefs = begin(KEY, facing)
    step = jax.jit(lambda beliefs: sweep(facing, beliefs, **options))
    for _ in range(num_sweeps):
        beliefs = step(beliefs)
    return np.asarray(beliefs.magnetizations)


def enumerate_means(facing, noise):
    """Mean of every weight over all states, each weighted by the probability of the labels."""
    num_units, _, num_inputs = facing.shape
    size = num_units * num_inputs
    states = 2.0 * ((np.arange(2**size)[:, None] >> np.arange(size)) & 1) - 1
    sums = np.einsum("kpn,skn->skp", facing, states.reshape(-1, num_units, num_inputs))
    is_right = 2 * (sums > 0).sum(axis=1) > num_units
    weights = np.prod(np.where(is_right, 1 - noise, noise), axis=1)
    return (weights @ states / weights.sum()).reshape(num_units, num_inputs)


def signs(seed, shape):
    return 2.0 * np.random.default_rng(seed).integers(0, 2, shape) - 1


def chain_of_patterns():
    """Three patterns on 11 inputs, each sharing one input with the next: a tree."""
    facing = np.zeros((1, 3, 11))
    for pattern, first in enumerate((0, 4, 8)):
        facing[0, pattern, first : first + (5 if pattern < 2 else 3)] = 1
    return facing * signs(1, facing.shape)


TREES = {
    "one pattern of 13 inputs": (signs(0, (1, 1, 13)), 0.0),
    "a chain of patterns": (chain_of_patterns(), 0.0),
    "a chain with wrong labels": (chain_of_patterns(), 0.1),
    "committee of 3, one pattern": (signs(2, (3, 1, 5)), 0.0),
    "committee of 5, wrong labels": (signs(3, (5, 1, 3)), 0.2),
}


@pytest.mark.parametrize(("facing", "noise"), TREES.values(), ids=TREES)
def test_marginals_on_trees_are_those_of_the_enumeration(facing, noise, float64):
    found = settle(jnp.asarray(facing), 8, noise=noise, sums="exact")
    np.testing.assert_allclose(found, enumerate_means(facing, noise), atol=1e-10)


def test_a_weight_tied_to_a_center_of_replicas_has_its_exact_mean(float64):
    """One weight per replica, one center: a star, summed over all its states."""
    noise, coupling, replicas = 0.2, 0.6, 4
    facing = jnp.ones((1, 1, 1))
    found = settle(facing, 5, noise=noise, coupling=coupling, replicas=replicas, sums="exact")
    field, gamma = 0.5 * np.log((1 - noise) / noise), np.arctanh(coupling)
    states = np.array(list(itertools.product((-1, 1), repeat=replicas + 1)))
    tied, center = states[:, :-1], states[:, -1:]
    weights = np.exp((field * tied + gamma * tied * center).sum(axis=1))
    np.testing.assert_allclose(found[0, 0], weights @ tied[:, 0] / weights.sum(), atol=1e-10)


def test_one_replica_or_no_coupling_is_plain_belief_propagation():
    facing = jnp.asarray(signs(4, (1, 6, 9)))
    plain = settle(facing, 3)
    np.testing.assert_array_equal(settle(facing, 3, coupling=0.7, replicas=1.0), plain)
    np.testing.assert_array_equal(settle(facing, 3, coupling=0.0, replicas=5.0), plain)


SIZES = [(1, 13), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((1, 21), (3, 7)))]


@pytest.mark.parametrize(("num_units", "num_inputs"), SIZES)
def test_marginals_of_dense_patterns_are_near_those_of_the_enumeration(num_units, num_inputs, float64):
    """Loops and normal sums: no more is claimed than a root mean square error of 0.1."""
    facing = signs(5, (num_units, 5, num_inputs))
    exact = enumerate_means(facing, 0.0)
    for sums in ("exact", "gaussian"):
        found = settle(jnp.asarray(facing), 100, sums=sums, damping=0.5)
        assert np.sqrt(np.mean((found - exact) ** 2)) < 0.1
        assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.95


def test_normal_sums_approach_exact_ones_with_the_number_of_inputs(float64):
    errors = []
    for size in (11, 101):
        facing = jnp.asarray(signs(6, (1, 1, size)))
        found = [settle(facing, 4, sums=sums) for sums in ("exact", "gaussian")]
        errors.append(np.abs(found[0] - found[1]).max() * size**0.5)
    assert errors[1] < errors[0] / 5


def test_solutions_are_found_for_teachers_and_random_labels():
    for problem in (teacher_student(0, 201, 0.8), random_labels(0, 201, 0.5)):
        facing = fold_labels(problem.patterns, problem.labels)
        found = solve(facing, KEY, num_rates=50, sweeps_per_rate=4)
        assert int(found.errors) == 0 == int(count_errors(facing, found.weights))
        right = problem.labels * (problem.patterns @ np.asarray(found.weights[0])) > 0
        assert right.all()


def test_committees_are_solved_and_counted_by_their_majority():
    problem = teacher_student(1, 201, 0.4)
    for tree in (False, True):
        facing = fold_labels(problem.patterns, problem.labels, 3, tree)
        found = solve(facing, KEY, num_rates=50, sweeps_per_rate=4)
        assert int(found.errors) == 0
        units = np.asarray(found.weights)
        parts = problem.patterns.reshape(len(problem.labels), 3, -1).swapaxes(0, 1) if tree else None
        sums = units @ problem.patterns.T if parts is None else np.einsum("kpn,kn->kp", parts, units)
        assert (np.sign(np.sign(sums).sum(axis=0)) == problem.labels).all()


@pytest.mark.slow
def test_marginals_of_one_pattern_of_21_inputs_are_those_of_the_enumeration(float64):
    facing = signs(0, (1, 1, 21))
    found = settle(jnp.asarray(facing), 8, sums="exact")
    np.testing.assert_allclose(found, enumerate_means(facing, 0.0), atol=1e-10)


@pytest.mark.slow
def test_random_labels_at_a_load_of_0_7_are_solved_in_19_of_20_cases():
    """The paper reports solutions up to about 0.75 at N = 1001."""
    solved = 0
    for seed in range(20):
        problem = random_labels(seed, 501, 0.7)
        facing = fold_labels(problem.patterns, problem.labels)
        solved += int(solve(facing, jax.random.key(seed)).errors) == 0
    assert solved >= 19


def test_beliefs_without_fields_know_nothing():
    facing = jnp.asarray(signs(7, (1, 2, 3)))
    nothing = Beliefs(jnp.zeros_like(facing), jnp.zeros((1, 3)))
    assert not np.asarray(nothing.magnetizations).any()
