"""Binary perceptrons: errors counted right, problems generated right, annealing without recompiling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import targets


def count_errors(weights, patterns, labels):
    return sum(int(label * (pattern @ weights) <= 0) for pattern, label in zip(patterns, labels, strict=True))


@pytest.mark.parametrize("spins", [True, False])
def test_errors_are_those_counted_one_by_one(spins):
    problem = targets.teacher_student(0, 21, 2.0, num_test=50)
    target = targets.perceptron(problem.patterns, problem.labels, spins=spins)
    positions = target.domain.draw(jax.random.key(0), (4,))
    patterns, test_patterns = (a.astype(int) for a in (problem.patterns, problem.test_patterns))
    errors = target.training_errors(positions)
    fractions = target.test_error(positions, problem.test_patterns, problem.test_labels)
    for weights, error, fraction in zip(
        np.asarray(target.weights(positions)), errors, fractions, strict=True
    ):
        assert error == count_errors(weights, patterns, problem.labels)
        assert round(float(fraction) * 50) == count_errors(weights, test_patterns, problem.test_labels)


def test_a_tie_is_an_error():
    target = targets.perceptron([[1.0, 1.0]], [1], "errors", inverse_temperature=2.0)
    assert target.training_errors(jnp.asarray([1.0, 0.0])) == 1
    assert target.log_density(jnp.asarray([1.0, 0.0])) == -2.0


def test_the_teacher_makes_no_error():
    problem = targets.teacher_student(jax.random.key(3), 101, 0.6)
    target = targets.perceptron(problem.patterns, problem.labels, spins=True)
    assert target.training_errors(jnp.asarray(problem.teacher, jnp.float32)) == 0
    assert problem.patterns.shape == (61, 101)


def test_problems_are_functions_of_their_seed():
    for make in (targets.teacher_student, targets.random_labels):
        for same, other in ((jax.random.key(1), jax.random.key(2)), (1, 2)):
            first, again, third = make(same, 31, 0.5), make(same, 31, 0.5), make(other, 31, 0.5)
            np.testing.assert_array_equal(first.patterns, again.patterns)
            np.testing.assert_array_equal(first.labels, again.labels)
            assert (first.patterns != third.patterns).any()


def test_generated_signs_are_balanced():
    # 20 000 fair signs have a mean within 5.3/√20000 of zero, with a false alarm of 1e-7; a bias of 0.05
    # per sign would be 7 standard deviations away.
    problem = targets.random_labels(0, 20_001, 1e-4)
    assert abs(problem.patterns.mean()) < 5.3 / np.sqrt(problem.patterns.size)
    assert problem.test_patterns.shape == (0, 20_001)


@jax.jit
def walk(target, position, sites, levels):
    def move(carry, change):
        memory, here = carry
        memory = target.incremental.update(memory, here, *change)
        return (memory, target.domain.replace_sites(here, *change)), None

    start = target.incremental.init(position), position
    (memory, end), _ = jax.lax.scan(move, start, (sites, levels))
    return memory, target.incremental.init(end)


def test_cached_inputs_of_sign_patterns_stay_exact_in_single_precision():
    problem = targets.random_labels(1, 101, 0.5)
    target = targets.perceptron(problem.patterns, problem.labels)
    rng = np.random.default_rng(0)
    sites, levels = rng.integers(101, size=20_000), rng.integers(2, size=20_000)
    memory, fresh = walk(target, target.domain.draw(jax.random.key(0)), sites, levels)
    np.testing.assert_array_equal(memory, fresh)


def test_annealing_solves_random_labels_in_one_program():
    problem = targets.random_labels(0, 101, 0.4)
    traces = []

    @jax.jit
    def anneal(key):
        traces.append(1)

        def step(position, inputs):
            key, beta = inputs
            target = targets.perceptron(
                problem.patterns, problem.labels, "logistic", inverse_temperature=beta
            )
            sampler = steppe.dmala(step_size=0.1).build(target, audit=False)
            return sampler.step(key, sampler.init(position))[0].position, None

        start = jax.random.bernoulli(key, 0.5, (101,)).astype(jnp.float32)
        progress = jnp.linspace(0, 1, 1500)
        return jax.lax.scan(step, start, (jax.random.split(key, 1500), 0.5 * jnp.exp(4 * progress)))[0]

    ends = jax.vmap(anneal)(jax.random.split(jax.random.key(0), 8))
    target = targets.perceptron(problem.patterns, problem.labels)
    assert int(target.training_errors(ends).max()) == 0
    assert len(traces) == 1


def test_a_new_inverse_temperature_or_sharpness_never_recompiles():
    problem = targets.random_labels(2, 11, 1.0)
    traces = []

    @jax.jit
    def evaluate(target, position):
        traces.append(1)
        return target.log_density(position)

    for number in (0.5, 1.0, 2.0):
        target = targets.perceptron(
            problem.patterns, problem.labels, sharpness=number, inverse_temperature=number
        )
        evaluate(target, jnp.zeros(11))
    assert len(traces) == 1


def test_gradient_of_the_error_count_points_towards_fewer_errors():
    problem = targets.random_labels(4, 201, 0.6)
    target = targets.perceptron(problem.patterns, problem.labels, "errors")
    audit = steppe.audit_gradient(target, jax.random.key(0))
    assert audit.correlation > 0.2
