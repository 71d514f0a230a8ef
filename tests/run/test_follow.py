"""Step sizes that follow the acceptance rate of an annealing."""

import jax.numpy as jnp
import numpy as np
import pytest

from steppe.run.adaptation.follow import GAIN, FollowAcceptance, Followed
from steppe.run.adaptation.warmup import TARGET_ACCEPTANCE

FOLLOW = FollowAcceptance(1.0)


def follow(rates, start=0.2):
    """Step sizes after a number of observed acceptance rates."""
    adapted, sizes = Followed(jnp.log(start), jnp.asarray(0.25)), []
    for rate in rates:
        adapted = FOLLOW.update(adapted, jnp.asarray(rate))
        sizes.append(float(jnp.exp(adapted.log_step)))
    return np.asarray(sizes)


def test_steps_that_are_never_accepted_shrink_tenfold_within_twenty_five():
    assert follow([0.0] * 25)[-1] < 0.02


def test_single_refusals_move_the_step_at_the_usual_gain():
    rates = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    expected = np.log(0.2) + np.cumsum(GAIN * (np.asarray(rates) - TARGET_ACCEPTANCE))
    np.testing.assert_allclose(np.log(follow(rates)), expected, rtol=1e-5)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_step_sizes_stay_within_their_range(rate):
    sizes = follow([rate] * 200)
    assert sizes.min() > 0.009
    assert sizes.max() < 1e3
