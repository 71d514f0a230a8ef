"""The hot end of a ladder: where states found in the cold are forgotten, and what asks for `β = 0`."""

from typing import Any

import jax
import numpy as np
import pytest

import steppe
from steppe.errors import RunError
from steppe.run.hot_end import MAX_SITE_MEMORY, find_hottest, is_forgotten
from steppe.run.storage.record import RungsRecord
from steppe.run.temperature_ladder import is_asked, with_uniform_end
from steppe.targets import ising_lattice, spin_glass

KEY = jax.random.key(0)
GIBBS = steppe.chromatic_gibbs()


def make_memory(of_all=0.0, of_one=0.0, num_sites=400):
    """Agreement with the own start beyond that with others, (start, site), half of which differ."""
    left = 0.5 * np.random.default_rng(0).choice([-1.0, 1.0], (64, num_sites)) + 0.5 * of_all
    left[:, 0] = 0.5 * of_one
    return left, np.full(num_sites, 0.5)


def test_noise_is_no_memory():
    assert is_forgotten(*make_memory())


@pytest.mark.parametrize(
    "memory",
    [
        make_memory(of_all=0.12),
        make_memory(of_one=1.1 * MAX_SITE_MEMORY),
        (make_memory()[0], np.full(400, 0.1)),  # starts hardly differ
        make_memory(num_sites=8),  # too few sites to show anything
    ],
    ids=["all sites", "one site", "equal starts", "few sites"],
)
def test_what_is_left_or_cannot_be_told_is_memory(memory):
    assert not is_forgotten(*memory)


def test_log_normalisers_and_stored_ladders_ask_for_their_own_hot_end():
    adapted = with_uniform_end(steppe.parallel_tempering())
    block: Any = adapted.blocks[0]
    assert (block.fate, float(block.inverse_temperatures[0])) == ("sized", 0.0)
    begun: Any = steppe.parallel_tempering(hottest=0.2)
    assert with_uniform_end(begun) is begun
    target = steppe.Target(lambda x: x.sum(), steppe.Binary(40))
    with pytest.raises(RunError, match="from β = 0"):
        steppe.log_normalizer(target, key=KEY, recipe=begun)
    ladder: Any = begun.blocks[0]
    stored = RungsRecord(
        asked="sized",
        num_asked=12,
        hottest_asked=float(ladder.inverse_temperatures[0]),
        inverse_temperatures=[0.2, 1.0],
        step_scales=[1.0, 1.0],
    )
    assert is_asked(stored, ladder)
    assert not is_asked(stored, block)


@pytest.mark.slow
def test_the_hot_end_of_a_ferromagnet_is_hotter_than_its_transition():
    hottest = find_hottest(ising_lattice((16, 16), 1.5), GIBBS, np.ones(2), np.array([0.0, 1.0]), key=KEY)
    assert 0.1 < hottest < 0.4407 / 1.5


@pytest.mark.slow
def test_ladders_of_glasses_are_cut_and_agree_with_those_from_zero():
    """Mean energies of both ladders at five standard errors over 16 chains: a false alarm in 10⁴."""
    glass = spin_glass((6, 6, 6), scale=1 / 0.6)
    means = []
    for hottest in (None, 0.0):
        recipe = steppe.parallel_tempering(base=GIBBS, hottest=hottest)
        tuned = steppe.tune_ladder(glass, recipe, key=KEY)
        means.append((tuned.inverse_temperatures[0], len(tuned.inverse_temperatures)))
        run = steppe.sample(glass, tuned.recipe, key=KEY, num_chains=16, num_draws=500, progress=False)
        energies = run.trace.statistic("log_density").mean(axis=1)
        means[-1] += (energies.mean(), energies.std(ddof=1) / 4)
    cut, whole = means
    assert 0 < cut[0] <= 0.5
    assert whole[0] == 0
    assert cut[1] < 0.8 * whole[1]
    assert abs(cut[2] - whole[2]) <= 5 * np.hypot(cut[3], whole[3])
