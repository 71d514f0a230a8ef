"""Replicas: several positions around one center, and a center that carries weight of its own."""

from typing import NamedTuple, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.errors import DomainError
from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.metropolis import AroundBlock, ProposalBlock
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.discrete_langevin import DiscreteLangevin
from steppe.kernel.types import CENTER, ChainState, StepInfo, Unprepared
from steppe.target.log_density import Target


class ReplicasBlock(AroundBlock[ProposalBlock[Array]]):
    """Move every replica by the same block given the center, each with its own decision.

    Given the center the replicas are independent, so one mapped call serves all of them, and a target with a
    batched evaluation sees all replicas at once.
    """

    component_id = "replicas-block"

    uses_gradient = True
    moves_replicas = True

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """Move all replicas; report their mean acceptance and the total number of flips."""
        each = state._replace(center=None)

        def move(key: Array, accept_key: Array, replica: ChainState) -> tuple[ChainState, StepInfo]:
            here = Keys(keys.center, key, accept_key)
            moved, _, info = self.block.step(here, density, replica._replace(center=state.center), own)
            return moved._replace(center=None), info

        new, info = jax.vmap(move)(keys.position, keys.accept, each)
        return (
            new._replace(center=state.center),
            own,
            StepInfo(
                acceptance_rate=jnp.mean(info.acceptance_rate),
                is_accepted=jnp.any(info.is_accepted),
                num_flips=jnp.sum(info.num_flips),
                num_nonfinite=jnp.sum(info.num_nonfinite),
            ),
        )

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: those of every replica."""
        return (density.coupling.replicas or 1) * self.block.count_evaluations(density)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: a matrix of all replicas is too large, that of one is its block's."""
        raise DomainError("Replicas have no transition matrix of one position. Use `edmala_glu`, or sample.")


class CenterEvaluation(NamedTuple):
    """The user's value and gradient at a center that carries weight of its own."""

    log_density: Array
    gradient: Array


class WeightedCenterBlock(Unprepared, eqx.Module):
    """Move a lattice center that is itself weighted by `exp{γ U(c)}`: discrete Langevin and Metropolis.

    To the center, the replicas are one point (their mean) tied to it with variance `η / R`.

    Attributes
    ----------
    proposal
        How the center moves.
    """

    component_id = "weighted-center-block"

    proposal: DiscreteLangevin

    moves = CENTER
    uses_gradient = True
    is_adjusted = True
    moves_replicas = False

    def init(
        self, density: JointDensity, state: ChainState, previous: CenterEvaluation | None = None
    ) -> CenterEvaluation:
        """Evaluate the center once before the first step."""
        assert state.center is not None
        return CenterEvaluation(*density.target.value_and_grad(state.center))

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: CenterEvaluation
    ) -> tuple[ChainState, CenterEvaluation, StepInfo]:
        """One decision on the center, at the cost of one evaluation."""
        coupling = density.coupling
        assert state.center is not None
        assert coupling.center_weight is not None
        mirrored = JointDensity(
            density.target,
            StarCoupling(coupling.center_variance),
            inverse_temperature=coupling.center_weight * density.inverse_temperature,
        )
        seen = ChainState(state.center, coupling.anchor(state.position), *own)
        block = ProposalBlock(self.proposal, Metropolis())
        new, _, info = block.step(Keys.of_step(keys.center), mirrored, seen, ())
        assert new.gradient is not None
        return state._replace(center=new.position), CenterEvaluation(new.log_density, new.gradient), info

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: that of the proposed center."""
        return 1

    def check(self, name: str, target: Target) -> None:
        """Refuse domains whose sites cannot be changed one by one."""
        self.proposal.check(name, target)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: what moves is not a position."""
        raise DomainError("A center has no transition matrix of positions.")
