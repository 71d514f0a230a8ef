"""Population annealing against sums over all states.

False alarms: estimates of 16 independent populations are compared with the sum at five standard errors of
their mean (1.6e-4 with 15 degrees of freedom).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.diagnostics.exact import target_distribution
from steppe.errors import RunError


def make_target():
    return targets.ising_lattice((3, 3), coupling=0.4, field=0.1)


@pytest.mark.parametrize(
    "recipe", [None, pytest.param(steppe.dmala(), marks=pytest.mark.slow)], ids=["gibbs", "dmala"]
)
def test_log_normalizer_and_states_are_those_of_the_target(recipe):
    target = make_target()
    exact = steppe.log_normalizer(target, key=jax.random.key(0)).value
    runs = [
        steppe.anneal_population(target, recipe, key=jax.random.key(seed), population=400, num_sweeps=5)
        for seed in range(16)
    ]
    found = np.array([run.log_normalizer for run in runs])
    assert abs(found.mean() - exact) <= 5 * found.std(ddof=1) / 4 < 0.2
    means = np.array([run.log_density.mean() for run in runs])
    values = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()), float)
    expected = float(target_distribution(target) @ values)
    assert abs(means.mean() - expected) <= 5 * means.std(ddof=1) / 4


def test_families_shrink_and_are_counted():
    run = steppe.anneal_population(make_target(), key=jax.random.key(1), population=300)
    assert run.inverse_temperatures[0] == 0
    assert run.inverse_temperatures[-1] == 1
    assert 1 <= run.family_entropy <= run.num_families <= 300
    assert f"{run.num_families} families" in str(run)


def test_forbidden_states_have_no_descendants():
    target = steppe.Target(
        lambda x: jnp.where(jnp.sum(x) > 3, -jnp.inf, x @ jnp.arange(6.0)), steppe.Binary(6)
    )
    runs = [steppe.anneal_population(target, key=jax.random.key(seed), population=200) for seed in range(16)]
    assert all(np.isfinite(run.log_density).all() for run in runs)
    exact = steppe.log_normalizer(target, key=jax.random.key(0)).value
    found = np.array([run.log_normalizer for run in runs])
    assert abs(found.mean() - exact) <= 5 * found.std(ddof=1) / 4 < 0.2
    positions = np.concatenate([np.asarray(run.positions) for run in runs])
    indices = np.asarray(jax.vmap(target.domain.index)(jnp.asarray(positions)))
    probabilities = np.float64(target_distribution(target))
    counts = np.bincount(indices, minlength=64)
    assert (counts[probabilities == 0] == 0).all()


MISTAKES = {
    "one state": ({"population": 1}, "population"),
    "no sweep": ({"num_sweeps": 0}, "num_sweeps"),
    "survival": ({"survival": 1.0}, "survival"),
    "unadjusted": ({"recipe": steppe.dula()}, "adjusted recipe"),
    "center": ({"recipe": steppe.edmala()}, "without center"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_request_is_refused(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(RunError, match=message):
        steppe.anneal_population(make_target(), key=jax.random.key(0), **arguments)
