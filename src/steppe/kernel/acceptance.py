"""Acceptance rules: Metropolis, or none. One scalar decision per chain and block.

Both answers are log-ratios: a move is taken when `log u < log ratio`. Unadjusted proposals have ratio
`+inf`, so that "unadjusted" and "Metropolis with the acceptance forced" are the same program.
"""

from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from steppe.kernel.density import JointDensity, subtract_sums
from steppe.kernel.types import ChainState, Distribution, Proposal

Value = TypeVar("Value")


class Unadjusted(eqx.Module):
    """Take every proposal. What is sampled is biased unless the proposal is a conditional draw."""

    component_id = "unadjusted"

    is_adjusted = False

    def log_ratio(
        self,
        density: JointDensity,
        proposal: Proposal[Value],
        forward: Distribution[Value],
        value: Value,
        old: ChainState,
        new: ChainState,
    ) -> Array:
        """Return `+inf`."""
        return jnp.full((), jnp.inf, new.log_density.dtype)


class Metropolis(eqx.Module):
    """Metropolis–Hastings: the joint density of position and center is left invariant."""

    component_id = "metropolis"

    is_adjusted = True

    def log_ratio(
        self,
        density: JointDensity,
        proposal: Proposal[Value],
        forward: Distribution[Value],
        value: Value,
        old: ChainState,
        new: ChainState,
    ) -> Array:
        """`log p(new) q(old | new) − log p(old) q(new | old)`."""
        backward = proposal.at(density, new)
        gained = [density.coupling_terms(new), *backward.log_prob_terms(proposal.inverse(old, value))]
        paid = [density.coupling_terms(old), *forward.log_prob_terms(value)]
        return density.change(new, old) + subtract_sums(gained, paid)


Acceptance = Unadjusted | Metropolis
