"""Discrete Langevin Monte Carlo (DLMC): every site follows its own jump process for a while."""

import jax
import jax.numpy as jnp
from jax import Array

from steppe.kernel.landscape import Landscape
from steppe.kernel.proposal.discrete_langevin import DiscreteLangevin
from steppe.kernel.proposal.sites import Flips, Levels
from steppe.kernel.state import State
from steppe.pytree import piece


@piece
class DiscreteFlow(DiscreteLangevin):
    """Stay with probability `exp(−h)`, else draw the level with log-weight `g·e_k`, at every site alone.

    Notation: Sun et al. (2023), with rates that jump to a level in proportion to its weight; `g` is the
    gradient of the bent landscape, `e_k` the level, and the time `h` is `α` in squared moves of the domain.
    This is the exact transition of a continuous-time chain that leaves the linearised landscape invariant,
    so where sites are independent every proposal is accepted at any `h`. `DiscreteLangevin` is its first
    step in `α`, with a square root of the weights.
    """

    def distribution(self, landscape: Landscape, state: State) -> Flips | Levels:
        """Product over sites, from one gradient."""
        domain, slope = landscape.domain, landscape.slope(state)
        time = self.step_size / domain.squared_unit
        log_moves = jnp.log(-jnp.expm1(-time))
        if domain.is_two_level:
            gain = domain.flip_slopes(state.position, slope)
            # Flip: (1 − e⁻ʰ) σ(gain). Not: σ(−gain) + e⁻ʰ σ(gain).
            flips = log_moves + jax.nn.log_sigmoid(gain)
            stays = jnp.logaddexp(jax.nn.log_sigmoid(-gain), jax.nn.log_sigmoid(gain) - time)
            return Flips(domain, state.position, flips - stays)
        gain = jnp.where(domain.level_mask, domain.slopes(state.position, slope), -jnp.inf)
        moves = log_moves + jax.nn.log_softmax(gain, axis=-1)
        return Levels(domain, jnp.where(_is_current(landscape, state), jnp.logaddexp(moves, -time), moves))


def _is_current(landscape: Landscape, state: State) -> Array:
    """Boolean table over sites and levels: the level each site has."""
    levels = landscape.domain.to_levels(state.position).astype(jnp.int32)
    return jnp.arange(landscape.domain.max_levels) == levels[:, None]
