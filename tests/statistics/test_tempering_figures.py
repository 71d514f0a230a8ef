"""What parallel tempering reaches on targets that no single chain mixes.

False alarms: mode weights at five standard errors over 16 chains (1.6e-4 each, eleven weights); the total
variation of 2²⁰ draws may exceed that of as many independent ones by a tenth, fixed seed.
"""

import jax
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.diagnostics.exact import target_distribution

pytestmark = pytest.mark.slow


def make_patterns(num_sites, weights, probability):
    patterns = np.random.default_rng(0).integers(0, 2, (len(weights), num_sites))
    return np.where(patterns == 1, probability, 1 - probability)


@pytest.mark.parametrize("num_sites", [10, 200])
def test_weights_of_modes_are_those_of_the_mixture(num_sites):
    if num_sites == 10:
        planted = targets.planted_mixture()
        target, weights, sites = planted.target, planted.weights, planted.site_probabilities
    else:
        weights = np.array([0.4, 0.3, 0.2, 0.1])
        sites = make_patterns(num_sites, weights, 0.8)
        target = targets.mixture(weights, sites)
    run = steppe.sample(
        target,
        steppe.parallel_tempering(base=steppe.gibbs()),
        key=jax.random.key(0),
        num_chains=16,
        num_draws=8000,
    )
    shares = targets.mixture_responsibilities(weights, sites, run.positions.reshape(-1, num_sites))
    means = np.asarray(shares).reshape(16, 8000, -1).mean(axis=1)
    error = means.std(axis=0, ddof=1) / 4
    assert (np.abs(means.mean(axis=0) - weights) <= 5 * error).all()
    assert error.max() < 0.1


def test_small_lattice_is_drawn_as_well_as_by_independent_draws():
    target = targets.ising_lattice((4, 4), coupling=0.6, field=0.06)
    exact = np.float64(target_distribution(target))
    exact /= exact.sum()
    num_draws = 2**20
    run = steppe.sample(
        target,
        steppe.parallel_tempering(base=steppe.chromatic_gibbs()),
        key=jax.random.key(1),
        num_chains=64,
        num_draws=num_draws // 64,
        thinning=4,
        num_warmup=500,
    )
    rng = np.random.default_rng(0)
    independent = [np.bincount(rng.choice(len(exact), num_draws, p=exact), minlength=2**16) for _ in range(5)]
    floor = np.mean([measure_distance(counts, exact) for counts in independent])
    found = np.bincount(number_states(target, run.levels.reshape(-1, 16)), minlength=2**16)
    assert measure_distance(found, exact) <= 1.1 * floor


def number_states(target, levels):
    """Place of every state in the order of enumeration."""
    every = pack(np.asarray(target.domain.to_levels(target.domain.enumerate())))
    order = np.empty(2**16, int)
    order[every] = np.arange(2**16)
    return order[pack(levels)]


def pack(levels):
    first, second = np.packbits(levels.astype(np.uint8), axis=1).astype(int).T
    return 256 * first + second


def measure_distance(counts, exact):
    """Total variation."""
    return float(np.abs(counts / counts.sum() - exact).sum() / 2)
