"""Dual averaging is Hoffman and Gelman's, and BlackJAX's but for two things that are meant.

On one series of acceptance rates both move the step size alike. They differ in the average that is kept
when warm-up is over: section 3.2 of the paper averages `log ε` after the update (ours), BlackJAX 1.7 the one
before it, one update behind. And ours stays within bounds, for on a few sites no step size may accept as
little as is wanted, and the search would leave for infinity. So our own is kept.
"""

import blackjax.optimizers.dual_averaging as theirs
import jax.numpy as jnp
import numpy as np
import pytest

from steppe.run.adaptation.dual_averaging import DualAveraging

WANTED, START = 0.574, 0.3
WIDE = (1e-30, 1e30)
RATES = np.random.default_rng(8).beta(2.0, 1.5, 300)


@pytest.fixture
def both(float64):
    """`log ε` and its average after every update: ours, then BlackJAX's."""
    ours = DualAveraging.start(jnp.asarray(START))
    init, update, _ = theirs.dual_averaging()
    blackjax = init(START)
    found = []
    for rate in RATES:
        ours = ours.update(jnp.asarray(rate), WANTED, WIDE)
        blackjax = update(blackjax, WANTED - rate)
        found.append([ours.log_value, ours.log_average, blackjax.log_x, blackjax.log_x_avg])
    return np.array(found).T


def average(values):
    """x̄ ← t^−κ x + (1 − t^−κ) x̄, κ = 0.75."""
    kept, averages = 0.0, []
    for t, value in enumerate(values, start=1):
        kept = t**-0.75 * value + (1 - t**-0.75) * kept
        averages.append(kept)
    return averages


def test_the_step_size_moves_as_in_blackjax(both):
    ours, _, blackjax, _ = both
    np.testing.assert_allclose(ours, blackjax, rtol=1e-12)


def test_the_average_is_that_of_the_paper_and_blackjax_is_one_update_behind(both):
    values, ours, _, blackjax = both
    np.testing.assert_allclose(ours, average(values), rtol=1e-12)
    np.testing.assert_allclose(blackjax, average([np.log(START), *values[:-1]]), rtol=1e-12)
    assert not np.allclose(ours, blackjax, rtol=1e-3)


def test_a_rate_that_is_never_reached_leads_to_the_bound_and_no_further(float64):
    ours, bounds = DualAveraging.start(jnp.asarray(START)), (1e-2, 1e2)
    for _ in range(200):
        ours = ours.update(jnp.asarray(1.0), WANTED, bounds)
    np.testing.assert_allclose(np.exp(ours.log_value), bounds[1])
    assert np.exp(ours.log_average) <= bounds[1] * (1 + 1e-12)
