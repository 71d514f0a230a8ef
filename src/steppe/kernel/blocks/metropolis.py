"""Metropolis–Hastings blocks: propose, evaluate, decide; and draws with nothing to decide."""

import dataclasses
from functools import partial
from typing import Generic, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain.base import Domain
from steppe.errors import DomainError
from steppe.kernel.acceptance import Acceptance
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import Block, ChainState, Proposal, StepInfo, Unprepared, Variable
from steppe.numerics import total
from steppe.random import draws
from steppe.target.log_density import Target

Value = TypeVar("Value")
Inner = TypeVar("Inner", bound=Block)


class ProposalBlock(eqx.Module, Generic[Value]):
    """Draw from a proposal and take it or leave it with one scalar decision."""

    component_id = "proposal-block"

    proposal: Proposal[Value]
    acceptance: Acceptance

    chains_last = False
    moves_replicas = False

    @property
    def uses_gradient(self) -> bool:
        """Whether the proposal does."""
        return self.proposal.uses_gradient

    def prepare(self, target: Target) -> Self:
        """Prepare the proposal."""
        return dataclasses.replace(self, proposal=self.proposal.prepare(target))

    @property
    def moves(self) -> tuple[Variable, ...]:
        """The variables it changes."""
        return self.proposal.moves

    @property
    def is_adjusted(self) -> bool:
        """Whether the joint density is left invariant."""
        return self.acceptance.is_adjusted or self.proposal.is_conditional

    @property
    def takes_field(self) -> bool:
        """Whether a field is decided on."""
        return self.acceptance.is_adjusted

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """Propose, evaluate once, decide once."""
        forward = self.proposal.at(density, state)
        value = forward.sample(keys)
        proposed = self.proposal.apply(density, state, value)
        log_ratio = self.acceptance.log_ratio(density, self.proposal, forward, value, state, proposed)
        new, info = decide(keys.accept, density.domain, log_ratio, state, proposed)
        return new, own, info

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: those of the proposed state, and those the proposal needs to weigh it."""
        return density.evaluations + self.proposal.count_evaluations(density)

    def check(self, name: str, target: Target) -> None:
        """Refuse what the proposal refuses."""
        self.proposal.check(name, target)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Probability of every move, from the proposal's own distribution and decision."""
        if "center" in self.moves:
            self.proposal.support(density, density.evaluate(density.domain.enumerate()[0], center))
        if density.coupling.has_center and center is None:
            raise DomainError("A transition matrix of a coupled recipe needs the `center` it is given.")
        return np.asarray(enumerate_moves(self, density, center))


class ConditionalDraw(Unprepared, eqx.Module, Generic[Value]):
    """Draw from the conditional distribution of some variables; nothing is left to decide."""

    component_id = "conditional-draw"

    proposal: Proposal[Value]

    uses_gradient = False
    is_adjusted = True
    moves_replicas = False

    @property
    def moves(self) -> tuple[Variable, ...]:
        """The variables it changes."""
        return self.proposal.moves

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], None]:
        """Draw and move there."""
        value = self.proposal.at(density, state).sample(keys)
        return self.proposal.apply(density, state, value), own, None

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: none."""
        return 0

    def check(self, name: str, target: Target) -> None:
        """Refuse what the proposal refuses."""
        self.proposal.check(name, target)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Refuse: what is drawn is not a position."""
        raise DomainError("A draw of the center has no transition matrix of positions.")


class AroundBlock(eqx.Module, Generic[Inner]):
    """What blocks that apply another block take over from it."""

    block: Inner

    @property
    def moves(self) -> tuple[Variable, ...]:
        """The variables the block changes."""
        return self.block.moves

    @property
    def is_adjusted(self) -> bool:
        """Whether the block leaves the joint density invariant."""
        return self.block.is_adjusted

    @property
    def chains_last(self) -> bool:
        """Whether the block steps many chains faster where they stand on the last axis."""
        return self.block.chains_last

    @property
    def takes_field(self) -> bool:
        """Whether the block leaves a density with a field invariant."""
        return self.block.takes_field

    def check(self, name: str, target: Target) -> None:
        """Refuse what the block refuses."""
        self.block.check(name, target)

    def prepare(self, target: Target) -> Self:
        """Prepare the block."""
        return dataclasses.replace(self, block=self.block.prepare(target))


def decide(
    key: Array, domain: Domain, log_ratio: Array, old: ChainState, proposed: ChainState
) -> tuple[ChainState, StepInfo]:
    """Take the proposed state if `log u < log_ratio`, never one that cannot be continued from.

    A state outside the support (`U = −inf`) is an ordinary rejection. A NaN, a `+inf` or a non-finite
    gradient is rejected too, and counted: it is a defect of the log-density.
    """
    is_outside = proposed.log_density == -jnp.inf
    is_finite = jnp.isfinite(proposed.log_density)
    if proposed.gradient is not None:
        is_finite &= jnp.isfinite(total(proposed.gradient.reshape(-1)))
    is_broken = ~is_outside & (~is_finite | jnp.isnan(log_ratio))
    log_ratio = jnp.where(is_outside | is_broken, -jnp.inf, log_ratio)
    is_accepted = draws.log_uniform(key) < log_ratio
    state = jax.tree.map(lambda new, kept: jnp.where(is_accepted, new, kept), proposed, old)
    return state, StepInfo(
        acceptance_rate=jnp.exp(jnp.minimum(log_ratio, 0.0)),
        is_accepted=is_accepted,
        num_flips=jnp.sum(domain.differs(state.position, old.position)),
        num_nonfinite=is_broken.astype(jnp.int32),
    )


@jax.jit
def enumerate_moves(block: ProposalBlock[Value], density: JointDensity, center: Array | None) -> Array:
    """Probability of every move between the positions of a small domain."""
    domain = density.domain
    positions = domain.enumerate()
    proposal, log_ratio_of = block.proposal, partial(block.acceptance.log_ratio, density, block.proposal)

    def row(position: Array) -> Array:
        state = density.evaluate(position, center)
        forward = proposal.at(density, state)

        def reach(value: Value) -> tuple[Array, Array]:
            proposed = proposal.apply(density, state, value)
            log_ratio = log_ratio_of(forward, value, state, proposed)
            log_ratio = jnp.where(jnp.isfinite(proposed.log_density), log_ratio, -jnp.inf)
            log_prob = sum(jnp.sum(terms) for terms in forward.log_prob_terms(value))
            return domain.index(proposed.position), jnp.exp(log_prob + jnp.minimum(log_ratio, 0.0))

        reached, moves = jax.vmap(reach)(proposal.support(density, state))
        off_diagonal = jnp.zeros(len(positions)).at[reached].add(moves)
        here = domain.index(position)
        off_diagonal = off_diagonal.at[here].set(0.0)
        return off_diagonal.at[here].set(1.0 - off_diagonal.sum())

    return jax.vmap(row)(positions)
