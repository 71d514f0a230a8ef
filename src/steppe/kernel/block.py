"""One block of a step: propose, evaluate, decide."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel import noise
from steppe.kernel.accept import Accept
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.state import Info, State
from steppe.numerics import total
from steppe.pytree import piece


@piece
class ProposeAndDecide:
    """Draw from a proposal and take it or leave it with one scalar decision."""

    proposal: Any
    accept: Accept

    needs_gradient = True

    @property
    def moves(self) -> tuple[str, ...]:
        """Fields of the state that the block changes."""
        return self.proposal.moves

    @property
    def is_exact(self) -> bool:
        """Whether the block leaves the joint law invariant."""
        return self.accept.leaves_target_invariant or self.proposal.is_exact

    def evaluations(self, landscape: Landscape) -> float:
        """Evaluations of one step: those of the proposed state, and those the proposal needs to weigh it."""
        weighs = getattr(self.proposal, "evaluations", None)
        return landscape.evaluations + (0 if weighs is None else weighs(landscape))

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        """Propose, evaluate once, decide once."""
        forward = self.proposal.distribution(landscape, state)
        value = forward.sample(keys)
        proposed = self.proposal.move(landscape, state, value)
        log_ratio = self.accept.log_ratio(landscape, self.proposal, forward, value, state, proposed)
        return decide(keys.accept, landscape.domain, log_ratio, state, proposed)


class AroundBlock:
    """What everything that applies another block takes over from it."""

    block: Any

    @property
    def moves(self) -> tuple[str, ...]:
        """Fields of the state that the block changes."""
        return self.block.moves

    @property
    def is_exact(self) -> bool:
        """Whether the block leaves the joint law invariant."""
        return self.block.is_exact


@piece
class Draw:
    """Draw from a proposal that is exact for its variables; nothing is left to decide."""

    proposal: Any

    needs_gradient = False
    is_exact = True

    @property
    def moves(self) -> tuple[str, ...]:
        """Fields of the state that the block changes."""
        return self.proposal.moves

    def evaluations(self, landscape: Landscape) -> float:
        """Evaluations of one step: none."""
        return 0

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, None]:
        """Draw and move there."""
        value = self.proposal.distribution(landscape, state).sample(keys)
        return self.proposal.move(landscape, state, value), None


def decide(key: Array, domain: Domain, log_ratio: Array, old: State, proposed: State) -> tuple[State, Info]:
    """Take the proposed state if `log u < log_ratio`, never one that cannot be continued from.

    A state outside the support (`U = −inf`) is an ordinary rejection. A NaN, a `+inf` or a non-finite
    gradient is rejected too, and counted: it is a defect of the log-density.
    """
    is_outside = proposed.log_density == -jnp.inf
    is_finite = jnp.isfinite(proposed.log_density) & jnp.isfinite(total(proposed.gradient.reshape(-1)))
    is_broken = ~is_outside & (~is_finite | jnp.isnan(log_ratio))
    log_ratio = jnp.where(is_outside | is_broken, -jnp.inf, log_ratio)
    is_accepted = noise.log_uniform(key) < log_ratio
    state = jax.tree.map(lambda new, kept: jnp.where(is_accepted, new, kept), proposed, old)
    return state, Info(
        acceptance_rate=jnp.exp(jnp.minimum(log_ratio, 0.0)),
        is_accepted=is_accepted,
        num_flips=jnp.sum(domain.differs(state.position, old.position)),
        num_nonfinite=is_broken.astype(jnp.int32),
    )
