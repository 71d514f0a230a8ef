"""Counts of states over log-density and roughness against enumeration.

False alarms: every bin with at least four states is compared with its exact count at the quantile of
Student's t of 31 degrees of freedom that leaves 1e-6 for all bins together.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import steppe
from exact_targets import polynomial_target
from steppe.errors import RunError
from steppe.kernel.density import mean_roughness


@pytest.mark.slow
@pytest.mark.parametrize(
    "domain",
    [steppe.Binary(8), pytest.param(steppe.Categorical(5, 3), marks=pytest.mark.slow)],
    ids=["binary", "categorical"],
)
def test_counts_are_those_of_enumeration(domain):
    target = polynomial_target(domain, 2.0)
    found = steppe.count_states(
        target, key=jax.random.key(0), num_bins=(8, 5), num_chains=32, num_steps=8_000
    )
    exact = count_exactly(target, found)
    compared = exact >= 4
    assert compared.sum() >= 8
    assert np.isfinite(found.log_counts[compared]).all()
    limit = scipy.stats.t.isf(1e-6 / 2 / compared.sum(), 31)
    off = np.exp(found.log_counts[compared]) / exact[compared] - 1
    assert (np.abs(off) <= limit * found.standard_error[compared]).all()
    assert found.standard_error[compared].max() < 0.15
    assert np.exp(found.log_counts).sum() == pytest.approx(domain.num_states)
    assert not np.isfinite(found.log_counts[exact == 0]).any()


def count_exactly(target, found):
    states = target.domain.enumerate()
    heights = jax.vmap(target.log_density)(states)
    widths = jax.vmap(lambda x: mean_roughness(target.domain, x, target.differences(x)))(states)
    # As the walk does it: in single precision, beyond the last edges into the last bins.
    rows = np.searchsorted(np.float32(found.log_density_edges[1:-1]), np.asarray(heights), side="right")
    columns = np.searchsorted(np.float32(found.roughness_edges[1:-1]), np.asarray(widths), side="right")
    table = np.zeros(found.log_counts.shape)
    np.add.at(table, (rows, columns), 1)
    return table


MISTAKES = {
    "one bin": ({"num_bins": (1, 4)}, "num_bins"),
    "not a pair": ({"num_bins": 5}, "num_bins"),
    "memory": ({"num_bins": (1000, 1000)}, "at most 65536"),
    "steps": ({"num_steps": 3}, "num_steps"),
    "one walk": ({"num_chains": 1}, "num_chains"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_bad_request_is_refused(name):
    arguments, message = MISTAKES[name]
    target = steppe.Target(jnp.sum, steppe.Binary(4))
    with pytest.raises(RunError, match=message):
        steppe.count_states(target, key=jax.random.key(0), **arguments)
