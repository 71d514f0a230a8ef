"""Committee machines: votes counted right, exact differences, solved by annealing, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import quick_jit
from steppe import targets
from steppe.errors import TargetError

WIRINGS = {"full": 3 * 15, "tree": 15}


def problem(num_patterns=7):
    rng = np.random.default_rng(3)
    return rng.choice([-1.0, 1.0], (num_patterns, 15)), rng.choice([-1.0, 1.0], num_patterns)


def slow_fields(position, patterns, wiring):
    """Field of every unit at every pattern, one sum at a time."""
    weights = 2 * np.asarray(position, float).reshape(3, -1) - 1
    size = weights.shape[1]
    seen = [patterns if wiring == "full" else patterns[:, k * size : (k + 1) * size] for k in range(3)]
    return np.asarray([seen[k] @ weights[k] / np.sqrt(size) for k in range(3)])


@quick_jit
def evaluated(target, position):
    value, gradient = target.value_and_grad(position)
    incremental = target.incremental
    sites = jnp.arange(target.domain.num_sites)
    slow = steppe.Target(target.log_density, target.domain).differences(position)
    moved = incremental.update(incremental.init(position), position, sites[4], 1 - position[4].astype(int))
    flipped = target.domain.flip(position, sites == 4)
    return {
        "value": value,
        "log_density": target.log_density(position),
        "autodiff": jax.grad(target.log_density)(position),
        "gradient": gradient,
        "differences": target.differences(position),
        "at sites": incremental.differences(incremental.init(position), position, sites),
        "slow": slow,
        "moved": moved,
        "anew": incremental.init(flipped),
        "batched": jax.vmap(target.value_and_grad)(jnp.stack([position, flipped])),
        "flipped": target.value_and_grad(flipped),
    }


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("wiring", WIRINGS)
def test_value_gradient_and_differences_are_those_of_the_formula(wiring):
    patterns, labels = problem()
    target = targets.committee(
        patterns, labels, 3, wiring=wiring, sharpness=3.0, gain=1.5, inverse_temperature=2.0
    )
    position = target.domain.draw(jax.random.key(0))
    assert target.domain == steppe.Binary(WIRINGS[wiring])
    margins = labels * np.tanh(1.5 * slow_fields(position, patterns, wiring)).sum(0) / np.sqrt(3)
    found = evaluated(target, position)
    expected = -2 * np.log1p(np.exp(-3 * margins)).sum()
    np.testing.assert_allclose([found["value"], found["log_density"]], expected, rtol=1e-12)
    np.testing.assert_allclose(found["gradient"], found["autodiff"], atol=1e-12)
    np.testing.assert_allclose(found["differences"], found["slow"], atol=1e-12)
    np.testing.assert_allclose(found["at sites"], found["slow"], atol=1e-12)
    np.testing.assert_allclose(found["moved"], found["anew"], atol=1e-12)
    np.testing.assert_allclose(found["batched"][0], [found["value"], found["flipped"][0]], rtol=1e-12)


@pytest.mark.parametrize("spins", [True, False])
@pytest.mark.parametrize("wiring", WIRINGS)
def test_errors_are_those_of_the_majority(wiring, spins):
    patterns, labels = problem(40)
    target = targets.committee(patterns, labels, 3, wiring=wiring, spins=spins)
    positions = target.domain.draw(jax.random.key(1), (4,))
    for position, errors in zip(positions, target.training_errors(positions), strict=True):
        bits = (np.asarray(position) > 0).astype(float)
        votes = np.sign(slow_fields(bits, patterns, wiring)).sum(0)
        assert errors == (labels * votes <= 0).sum()


def test_a_tie_is_an_error():
    target = targets.committee([[1.0, 1.0]], [1], 2, wiring="tree")
    assert target.training_errors(jnp.asarray([1.0, 0.0])) == 1
    assert target.training_errors(jnp.asarray([1.0, 1.0])) == 0


@pytest.mark.slow
def test_annealing_finds_a_committee_without_errors():
    given = targets.random_labels(0, 45, 0.8)
    target = targets.committee(given.patterns, given.labels, 3)
    schedule = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 20.0))
    found = steppe.anneal(
        target, steppe.dmala(), schedule, key=jax.random.key(0), num_chains=4, num_steps=600, progress=False
    )
    assert int(target.training_errors(found.best_position).min()) == 0


REFUSED = {
    "no unit": (lambda: targets.committee(*problem(), 0), "num_units=.*at least 1; got 0"),
    "uneven tree": (
        lambda: targets.committee(*problem(), 4, wiring="tree"),
        "15 inputs among 4 units, which leaves some over",
    ),
    "wiring": (lambda: targets.committee(*problem(), wiring="ring"), "wiring=.*'full' or 'tree'; got 'ring'"),
    "labels": (lambda: targets.committee(np.ones((2, 3)), [0, 1]), "committee.labels=.*got 0 for pattern 0"),
    "gain": (lambda: targets.committee(*problem(), gain=0), "gain=.*positive"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_name(name):
    make, message = REFUSED[name]
    with pytest.raises(TargetError, match=message):
        make()
