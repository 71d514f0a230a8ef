"""Moves of an order are drawn with the probabilities that enter the Metropolis ratio."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from contract.cases import quick_jit
from steppe import targets
from steppe.kernel.keys import Keys
from steppe.samplers.permutations import informed_permutation, uniform_permutation

NUM_DRAWS = 40_000
# χ² over the moves of each recipe; false alarm 1e-6 each. A move of probability p drawn half as often as it
# should be adds NUM_DRAWS · p / 4 to the statistic: with p = 1/60 that is 170, ten standard deviations.
FALSE_ALARM = 1e-6

RECIPES = {
    "informed": informed_permutation(moves=("swap", "two_opt", "insert")),
    "informed, with a center": informed_permutation(moves=("two_opt", "insert"), coupling_variance=0.5),
    "uniform": uniform_permutation(moves=("swap", "two_opt", "insert", "or_opt")),
}


@quick_jit
def drawn_and_listed(sampler, key):
    """WordPairs moves, and all moves with their probabilities, at one state."""
    target, proposal = sampler.target, sampler.recipe.blocks[-1].proposal
    state = sampler.init(target.domain.draw(key), key).chain
    distribution = proposal.at(sampler.density, state)
    draws = jax.vmap(lambda k: distribution.sample(Keys.of_step(k)))(jax.random.split(key, NUM_DRAWS))
    listed = proposal.support(sampler.density, state)
    return draws, listed, jnp.exp(jax.vmap(lambda move: distribution.log_prob_terms(move)[0])(listed))


@pytest.mark.parametrize("name", RECIPES)
def test_moves_are_drawn_with_their_stated_probability(name):
    target = targets.tsp(np.random.default_rng(2).uniform(0, 2, (5, 5)))
    draws, listed, probabilities = drawn_and_listed(RECIPES[name].build(target), jax.random.key(0))
    drawn, all_moves = (np.stack([np.asarray(field) for field in moves], axis=1) for moves in (draws, listed))
    assert float(probabilities.sum()) == pytest.approx(1, rel=1e-5)
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    by_move = dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
    observed = np.asarray([by_move.pop(tuple(move), 0) for move in all_moves.tolist()])
    assert not by_move  # nothing is drawn that is not listed
    expected = NUM_DRAWS * np.asarray(probabilities, float)
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(expected) - 1) > FALSE_ALARM
