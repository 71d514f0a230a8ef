"""Several copies of the position around one center: what an ensemble adds to the plain sweep."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.domain import Domain
from steppe.kernel.accept import Metropolis
from steppe.kernel.block import AroundBlock, ProposeAndDecide
from steppe.kernel.coupling import StarCoupling
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.proposal.center import CenterMove
from steppe.kernel.proposal.discrete_langevin import DiscreteLangevin
from steppe.kernel.proposal.sites import Flips, Levels
from steppe.kernel.state import Info, State
from steppe.pytree import piece


@piece
class Replicas(AroundBlock):
    """Move every copy by the same block given the center, each with its own decision.

    Given the center the copies are independent, so one mapped call serves all of them, and a target with a
    batched evaluation sees all copies at once.
    """

    block: ProposeAndDecide

    needs_gradient = True

    def evaluations(self, landscape: Landscape) -> float:
        """Evaluations of one step: those of every copy."""
        return (landscape.coupling.replicas or 1) * self.block.evaluations(landscape)

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        """Move all copies; report their mean acceptance and the total number of flips."""

        def move(key: Array, accept_key: Array, *copy: Array) -> tuple[State, Info]:
            position, log_density, gradient = copy
            own = Keys(keys.center, key, accept_key)
            return self.block.step(landscape, own, State(position, state.center, log_density, gradient))

        copies = state.position, state.log_density, state.gradient
        new, info = jax.vmap(move)(keys.position, keys.accept, *copies)
        moved = state._replace(position=new.position, log_density=new.log_density, gradient=new.gradient)
        return moved, Info(
            acceptance_rate=jnp.mean(info.acceptance_rate),
            is_accepted=jnp.any(info.is_accepted),
            num_flips=jnp.sum(info.num_flips),
            num_nonfinite=jnp.sum(info.num_nonfinite),
        )


class OnLattice(NamedTuple):
    """Independent draws of every site of a center that lives on the levels of the domain."""

    domain: Domain
    logits: Array

    def sample(self, keys: Keys) -> Array:
        """Draw a center."""
        own = keys._replace(position=keys.center)
        if not self.domain.is_two_level:
            return Levels(self.domain, self.logits).sample(own)
        lowest = self.domain.from_levels(jnp.zeros(self.domain.num_sites, jnp.int32))
        return Flips(self.domain, lowest, self.logits[:, 1] - self.logits[:, 0]).sample(own)


@piece
class LatticeCenter(CenterMove):
    """Draw a center on the levels of the domain, exactly: weight `exp{−Σ_r |θ_r − c|² / (2η)}`."""

    is_exact = True

    def distribution(self, landscape: Landscape, state: State) -> OnLattice:
        """Product over sites: only the mean of the copies matters."""
        domain, coupling = landscape.domain, landscape.coupling
        origin = jnp.zeros(domain.shape, state.position.dtype)
        overlap = domain.slopes(origin, coupling.anchor(state.position))
        logits = (overlap - 0.5 * domain.squared_jumps(origin)) / coupling.center_variance
        return OnLattice(domain, jnp.where(domain.level_mask, logits, -jnp.inf))


class CenterEvaluation(NamedTuple):
    """The user's value and gradient at a center that carries weight of its own."""

    log_density: Array
    gradient: Array


@piece
class WeightedCenter:
    """Move a lattice center that is itself weighted by `exp{γ U(c)}`: discrete Langevin and Metropolis.

    To the center, the copies are one point (their mean) tied to it with variance `η / R`.

    Attributes
    ----------
    proposal
        How the center moves.
    center_weight
        `γ`.
    """

    proposal: DiscreteLangevin
    center_weight: Array | float

    moves = ("center",)
    needs_gradient = True
    is_exact = True

    def start(self, landscape: Landscape, center: Array) -> CenterEvaluation:
        """Evaluate the center once before the first step."""
        return CenterEvaluation(*landscape.target.value_and_grad(center))

    def evaluations(self, landscape: Landscape) -> float:
        """Evaluations of one step: that of the proposed center."""
        return 1

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        """One decision on the center, at the cost of one evaluation."""
        coupling = landscape.coupling
        mirrored = Landscape(
            landscape.target,
            StarCoupling(coupling.center_variance),
            inverse_temperature=self.center_weight * landscape.inverse_temperature,
        )
        seen = State(state.center, coupling.anchor(state.position), *state.cache)
        own = Keys.of_step(keys.center)
        new, info = ProposeAndDecide(self.proposal, Metropolis()).step(mirrored, own, seen)
        cache = CenterEvaluation(new.log_density, new.gradient)
        return state._replace(center=new.position, cache=cache), info
