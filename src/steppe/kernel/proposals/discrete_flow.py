"""Discrete Langevin Monte Carlo (DLMC): every site follows its own jump process for a while."""

import jax
import jax.numpy as jnp
from jax import Array

from steppe.kernel.density import JointDensity
from steppe.kernel.distributions import Flips, Levels
from steppe.kernel.parameters import POSITIVE, Number, parameter
from steppe.kernel.proposals.site_proposal import PositionProposal
from steppe.kernel.types import ChainState


class DiscreteFlow(PositionProposal):
    """Stay with probability `exp(−h)`, else draw the level with log-weight `g·e_k`, at every site alone.

    Notation: Sun et al. (2023), with rates that jump to a level in proportion to its weight; `g` is the
    gradient of the joint density, `e_k` the level, and the time `h` is `α` in squared moves of the domain.
    This is the exact transition of a continuous-time chain that leaves the linearised density invariant,
    so where sites are independent every proposal is accepted at any `h`. `DiscreteLangevin` is its first
    step in `α`, with a square root of the weights.

    Attributes
    ----------
    step_size
        `α`.
    """

    component_id = "discrete-flow"

    step_size: Number = parameter(POSITIVE)

    def at(self, density: JointDensity, state: ChainState) -> Flips | Levels:
        """Product over sites, from one gradient."""
        domain, gradient = density.domain, density.gradient(state)
        time = self.step_size / domain.squared_unit
        log_moves = jnp.log(-jnp.expm1(-time))
        if domain.is_two_level:
            change = domain.flip_slopes(state.position, gradient)
            # Flip: (1 − e⁻ʰ) σ(change). Not: σ(−change) + e⁻ʰ σ(change).
            flips = log_moves + jax.nn.log_sigmoid(change)
            stays = jnp.logaddexp(jax.nn.log_sigmoid(-change), jax.nn.log_sigmoid(change) - time)
            return Flips(domain, state.position, flips - stays)
        change = jnp.where(domain.level_mask, domain.slopes(state.position, gradient), -jnp.inf)
        moves = log_moves + jax.nn.log_softmax(change, axis=-1)
        return Levels(domain, jnp.where(_is_current(density, state), jnp.logaddexp(moves, -time), moves))


def _is_current(density: JointDensity, state: ChainState) -> Array:
    """Boolean table over sites and levels: the level each site has."""
    levels = density.domain.to_levels(state.position).astype(jnp.int32)
    return jnp.arange(density.domain.max_levels) == levels[:, None]
