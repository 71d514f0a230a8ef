"""Gradient-guided proposals of all sites at once: discrete Langevin (DLP), DLMC, and both with a center."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.errors import DomainError
from steppe.kernel.density import JointDensity
from steppe.kernel.distributions import Flips, Gaussian, Levels
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import POSITIVE, Number, parameter
from steppe.kernel.proposals.center import CenterLangevin
from steppe.kernel.proposals.site_proposal import (
    PositionProposal,
    WeighedChanges,
    flip_changes,
    level_changes,
    log_balance,
)
from steppe.kernel.types import POSITION_AND_CENTER, ChainState, Guided
from steppe.target.log_density import Target


class DiscreteLangevin(WeighedChanges, PositionProposal):
    """Draw every site's level with log-weight `log g(exp Δ_ik) − |e_k − θ_i|² / (2α)`.

    `Δ_ik` is `g·(e_k − θ_i)`, or the exact change, and `log g(exp Δ)` is `½ Δ` unless another balancing
    function is chosen.

    Notation: DLP eq. (4) and paper eq. (8); `g` is the gradient of the joint density at the state,
    `e_k` the level. Smaller `α` flips fewer sites.

    The coupling is known exactly, and its linearisation in `g` leaves out
    `−|e_k − θ_i|² / (4η)`. With `exact_coupling` that part is put back, which is the same proposal at
    `1/α + 1/(2η)` in place of `1/α`.

    Attributes
    ----------
    step_size
        `α`.
    exact_coupling
        Use the exact difference of the coupling term instead of the paper's linearised one.
    exponent
        `β`: `log g(exp Δ)` is `β Δ` instead of `½ Δ`. At a half small steps are balanced, at 1 large ones;
        Metropolis repairs the rest. `None` for what `balancing` says.
    balancing, differences
        As in `WeighedChanges`.
    """

    component_id = "discrete-langevin"

    step_size: Number = parameter(POSITIVE)
    exact_coupling: bool = eqx.field(static=True, default=False)
    exponent: Number | None = eqx.field(default=None, kw_only=True)

    def at(self, density: JointDensity, state: ChainState) -> Flips | Levels:
        """Product over sites, from one gradient or one table."""
        domain = density.domain
        stiffness = 1 / self.step_size
        if self.exact_coupling:
            stiffness += 0.5 * density.coupling.inverse_variance
        if domain.is_two_level:
            change = flip_changes(density, state, self.differences)
            return Flips(domain, state.position, self._weigh(change, domain.squared_flip * stiffness))
        change = level_changes(density, state, self.differences)
        logits = self._weigh(change, domain.squared_jumps(state.position) * stiffness)
        return Levels(domain, jnp.where(domain.level_mask, logits, -jnp.inf))

    def _weigh(self, change: Array, penalty: Number) -> Array:
        if self.exponent is not None:
            return self.exponent * change - 0.5 * penalty
        if self.balancing == "sqrt":
            return 0.5 * (change - penalty)
        return log_balance(self.balancing, change) - 0.5 * penalty


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


class PositionAndCenter(NamedTuple):
    """Independent draws of position and center."""

    position: Flips | Levels
    center: Gaussian

    def sample(self, keys: Keys) -> tuple[Array, Array]:
        """Draw both, from the two words of the same pairs."""
        own = keys.share_words(self.center.mean.size)
        return self.position.sample(own), self.center.sample(own)

    def log_prob_terms(self, value: tuple[Array, Array]) -> list[Array]:
        """Log-probability terms of both."""
        return [*self.position.log_prob_terms(value[0]), *self.center.log_prob_terms(value[1])]


class JointProposal(Guided, eqx.Module):
    """The paper's Algorithm 1: one proposal for (θ, a), both drifts taken at the old pair."""

    component_id = "joint-proposal"

    position: DiscreteLangevin
    center: CenterLangevin

    moves = POSITION_AND_CENTER
    is_conditional = False

    def at(self, density: JointDensity, state: ChainState) -> PositionAndCenter:
        """Product of the two proposals."""
        return PositionAndCenter(self.position.at(density, state), self.center.at(density, state))

    def apply(self, density: JointDensity, state: ChainState, value: tuple[Array, Array]) -> ChainState:
        """Evaluate the drawn position beside the drawn center."""
        return density.evaluate(*value)

    def inverse(self, state: ChainState, value: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return the value that leads back: the old pair."""
        assert state.center is not None
        return state.position, state.center

    def count_evaluations(self, density: JointDensity) -> int:
        """Evaluations beyond that of the proposed state: none."""
        return 0

    def support(self, density: JointDensity, state: ChainState) -> tuple[Array, Array]:
        """Refuse: pairs of a position and a real center are not enumerated."""
        raise DomainError(
            "Position and center move in one decision, so positions alone have no transition matrix. Use "
            "`edula_glu` or `edmala_glu`, or sample."
        )

    def check(self, name: str, target: Target) -> None:
        """Refuse what the position's proposal refuses."""
        self.position.check(name, target)
