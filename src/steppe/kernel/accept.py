"""Is the proposal corrected? One scalar decision per chain and block.

Both answers are log-ratios: a move is taken when `log u < log ratio`. Uncorrected proposals have ratio
`+inf`, so that "unadjusted" and "Metropolis with the acceptance forced" are the same program.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from steppe.kernel.landscape import Landscape, difference_of_sums
from steppe.kernel.state import State
from steppe.pytree import piece


@piece
class Unadjusted:
    """Take every proposal. The stationary law is biased unless the proposal is an exact draw."""

    leaves_target_invariant = False

    def log_ratio(
        self, landscape: Landscape, proposal: Any, forward: Any, value: Any, old: State, new: State
    ) -> Array:
        """Return `+inf`."""
        return jnp.full((), jnp.inf, new.log_density.dtype)


@piece
class Metropolis:
    """Metropolis–Hastings: the joint law of position and center is left invariant exactly."""

    leaves_target_invariant = True

    def log_ratio(
        self, landscape: Landscape, proposal: Any, forward: Any, value: Any, old: State, new: State
    ) -> Array:
        """`log p(new) q(old | new) − log p(old) q(new | old)`."""
        backward = proposal.distribution(landscape, new)
        gained = [landscape.coupling_terms(new), *backward.terms(proposal.reverse(old, value))]
        paid = [landscape.coupling_terms(old), *forward.terms(value)]
        return landscape.gain(new, old) + difference_of_sums(gained, paid)


Accept = Unadjusted | Metropolis
