"""Parallel tempering: replicas at several temperatures that trade them, so that hot ones carry cold ones far.

The joint density is the product of `exp{β_r U(θ_r)}` over the rungs of a ladder, from `β = 0` (or close to
it) to 1. Moves at a rung keep its factor, and swaps between neighbours are decided on, so the joint density
is left invariant. Swaps alternate between even and odd pairs (non-reversible tempering, Syed et al. 2022),
which makes a replica travel along the ladder instead of diffusing. Replicas stay where they are in memory and
their rungs move: a swap exchanges two integers. What is seen is the replica at the last rung.
"""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from steppe.errors import CompositionError, DomainError
from steppe.kernel.blocks.metropolis import AroundBlock
from steppe.kernel.density import JointDensity, field_terms
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import scale_parameter
from steppe.kernel.types import Block, ChainState, RungStatistics, StepInfo
from steppe.random import draws
from steppe.target.log_density import Target

# What becomes of a ladder before a run, see `TemperedBlock.fate`.
Fate = Literal["adapted", "sized", "placed", "fixed"]
# Stands for β = 0, at which a forbidden state (`U = −inf`) would weigh `0 · ∞`; so it weighs 0.
SMALLEST_BETA = 1e-30


class Replica(NamedTuple):
    """One replica, or a stack of them: a chain and what the block that moves it remembers."""

    chain: ChainState
    memory: PyTree


class Ladder(NamedTuple):
    """What a tempered chain remembers.

    Attributes
    ----------
    replicas
        The replicas, stacked.
    rung
        At which rung every replica is.
    num_rounds
        Rounds so far; even and odd pairs take turns.
    came_from
        The end of the ladder at which every replica was last: 0 none, 1 the hot one, 2 the cold one after
        the hot one.
    round_trips
        How often every replica came from the hot end to the cold one and back.
    """

    replicas: Replica
    rung: Array
    num_rounds: Array
    came_from: Array
    round_trips: Array


class TemperedBlock(AroundBlock[Block]):
    """Move every replica by the same block at its own temperature, then offer every second pair a swap.

    Attributes
    ----------
    block
        How a replica moves.
    inverse_temperatures
        `β_r`, increasing to 1, relative to that of the density.
    step_scales
        By what the step size of the block is multiplied at every rung.
    reference
        Log-probabilities `ℓ` of the levels of every site, (site, level), of the product distribution `ρ` at
        `β = 0`: rung `r` has the density `ρ^{1 − β_r} exp{β_r U}`. `None` for the uniform one.
    fate
        What becomes of the ladder before a run: `"adapted"` (hot end, number and place of the rungs),
        `"sized"` (number and place), `"placed"` (their place), or `"fixed"`.
    """

    component_id = "tempered-block"

    inverse_temperatures: Array
    step_scales: Array
    reference: Array | None = None
    fate: Fate = eqx.field(static=True, default="fixed")

    moves_replicas = False

    @property
    def uses_gradient(self) -> bool:
        """Whether replicas move by the gradient."""
        return self.block.uses_gradient

    @property
    def num_rungs(self) -> int:
        """Number of temperatures."""
        return len(self.inverse_temperatures)

    @property
    def axis(self) -> int:
        """Where replicas stand in arrays."""
        return -1 if self.block.chains_last else 0

    def init(self, density: JointDensity, state: ChainState, previous: Ladder | None = None) -> Ladder:
        """Start all replicas where the chain starts; after a change of the target they keep their places."""
        size = self.num_rungs
        if previous is not None:
            replicas = jax.vmap(lambda replica: self.refresh(density, replica), self.axis, self.axis)(
                previous.replicas
            )
            return previous._replace(replicas=replicas)
        one = Replica(state, self.block.init(density, state))
        replicas = jax.vmap(lambda _: one, out_axes=self.axis)(jnp.arange(size))
        zeros = jnp.zeros(size, jnp.int32)
        return Ladder(replicas, jnp.arange(size), jnp.zeros((), jnp.int32), zeros, zeros)

    def refresh(self, density: JointDensity, replica: Replica) -> Replica:
        """Evaluate a replica again, and what its block remembers."""
        old = replica.chain
        if self.uses_gradient:
            chain = density.evaluate(old.position, old.center)
        else:
            chain = old._replace(log_density=density.target.log_density(old.position))
        return Replica(chain, self.block.init(density, chain, replica.memory))

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Ladder
    ) -> tuple[ChainState, Ladder, StepInfo]:
        """Move all replicas and swap; reports the acceptance and the flips at the cold end."""
        betas, scales = self.inverse_temperatures[own.rung], self.step_scales[own.rung]

        def move(
            beta: Array, scale: Array, key: Array, accept_key: Array, replica: Replica
        ) -> tuple[Replica, StepInfo]:
            field = None if self.reference is None else (1 - beta) * self.reference
            beta = jnp.maximum(beta, SMALLEST_BETA)
            scaled = density.inverse_temperature * beta
            there = dataclasses.replace(density, inverse_temperature=scaled, field=field)
            here = Keys(keys.center, key, accept_key)
            block = scale_parameter(self.block, "step_size", scale)
            chain, memory, info = block.step(here, there, replica.chain, replica.memory)
            assert info is not None
            return Replica(chain, memory), info

        move_keys, accept_keys = (
            jax.random.split(key, self.num_rungs) for key in (keys.position, keys.accept)
        )
        axis = self.axis
        replicas, info = jax.vmap(move, (0, 0, 0, 0, axis), (axis, 0))(
            betas, scales, move_keys, accept_keys, own.replicas
        )
        by_rung = invert(own.rung)
        log_density = self.heights(density, replicas)[by_rung]
        new_by_rung = self.swap(density, keys.center, own.num_rounds, log_density, by_rung)
        ladder = self._count_trips(own, replicas, invert(new_by_rung))
        seen = jax.tree.map(lambda leaf: jnp.take(leaf, new_by_rung[-1], axis=axis), replicas.chain)
        return (
            seen,
            ladder,
            StepInfo(
                acceptance_rate=info.acceptance_rate[by_rung[-1]],
                is_accepted=jnp.any(info.is_accepted) | jnp.any(new_by_rung != by_rung),
                num_flips=jnp.sum(density.domain.differs(seen.position, state.position)),
                num_nonfinite=jnp.sum(info.num_nonfinite),
                rungs=RungStatistics(
                    log_density=log_density,
                    acceptance_rate=info.acceptance_rate[by_rung],
                    swap_rate=self.swap_rates(density, log_density),
                    rung=ladder.rung,
                    round_trips=jnp.sum(ladder.round_trips),
                ),
            ),
        )

    def heights(self, density: JointDensity, replicas: Replica) -> Array:
        """`U` of every replica, minus `log ρ` where there is a reference: what `β_r` multiplies."""
        chain, reference = replicas.chain, self.reference
        if reference is None:
            return chain.log_density
        terms = jax.vmap(partial(field_terms, density.domain, reference), self.axis)(chain.position)
        return chain.log_density - jnp.sum(terms, axis=-1) / density.inverse_temperature

    def check(self, name: str, target: Target) -> None:
        """Refuse what the block refuses, and a reference that does not fit the domain."""
        self.block.check(name, target)
        domain, reference = target.domain, self.reference
        if reference is None:
            return
        if not domain.is_site_product or domain.is_ragged:
            raise CompositionError(
                f"`{name}(reference=...)` needs sites with as many levels each; got {domain!r}."
            )
        if reference.shape != (domain.num_sites, domain.max_levels):
            raise CompositionError(
                f"`{name}(reference=...)` has probabilities of shape {reference.shape} for "
                f"{domain.num_sites} sites of {domain.max_levels} levels."
            )

    def _count_trips(self, own: Ladder, replicas: Replica, rung: Array) -> Ladder:
        is_hot, is_cold = rung == 0, rung == self.num_rungs - 1
        is_back = is_hot & (own.came_from == 2)
        came_from = jnp.where(is_hot, 1, jnp.where(is_cold & (own.came_from == 1), 2, own.came_from))
        return Ladder(replicas, rung, own.num_rounds + 1, came_from, own.round_trips + is_back)

    def swap(
        self, density: JointDensity, key: Array, num_rounds: Array, log_density: Array, by_rung: Array
    ) -> Array:
        """Decide on swaps of every second pair of neighbours: the replica at every rung.

        Parameters
        ----------
        density
            Whose inverse temperature that of the rungs is relative to.
        key
            Key of the round.
        num_rounds
            Rounds so far: an even number offers swaps to the pairs (0, 1), (2, 3), …, an odd one to the
            others.
        log_density, by_rung
            `U` (minus `log ρ`) at every rung, and the replica there.
        """
        pairs = jnp.arange(self.num_rungs - 1)
        uniforms = jax.vmap(lambda pair: draws.log_uniform(jax.random.fold_in(key, pair)))(pairs)
        is_offered = self.is_offered(num_rounds, pairs)
        is_swapped = is_offered & (uniforms < self.swap_log_ratios(density, log_density))
        no = jnp.zeros(1, bool)
        up, down = jnp.concatenate([is_swapped, no]), jnp.concatenate([no, is_swapped])
        moved_up, moved_down = jnp.roll(by_rung, -1), jnp.roll(by_rung, 1)
        return jnp.where(up, moved_up, jnp.where(down, moved_down, by_rung))

    def is_offered(self, num_rounds: Array, pairs: Array) -> Array:
        """Whether a pair of neighbours, known by the hotter one, may swap in a round."""
        return pairs % 2 == num_rounds % 2

    def swap_log_ratios(self, density: JointDensity, log_density: Array) -> Array:
        """`(β_{r+1} − β_r)(U_r − U_{r+1})` of every pair of neighbours."""
        steps = density.inverse_temperature * jnp.diff(self.inverse_temperatures)
        return -steps * jnp.diff(log_density)

    def swap_rates(self, density: JointDensity, log_density: Array) -> Array:
        """Probability with which every pair of neighbours swaps, if it is offered to."""
        ratios = self.swap_log_ratios(density, log_density)
        return jnp.where(jnp.isnan(ratios), 0, jnp.exp(jnp.minimum(ratios, 0)))

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: those of every replica; swaps cost none."""
        return self.num_rungs * self.block.count_evaluations(density)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: all replicas are part of the state."""
        raise DomainError(
            "A tempered recipe carries hot replicas beside its position, which alone has no transition "
            "matrix. Use its base recipe, or sample."
        )


def parameters_at(parameters: Mapping[str, Array], beta: Array, scale: Array) -> dict[str, Array]:
    """Hyper-parameters that change with the temperature: `β` from 0 on, and a step size if there is one."""
    scaled = {name: value * scale for name, value in parameters.items() if name == "step_size"}
    return {"inverse_temperature": jnp.maximum(beta, SMALLEST_BETA), **scaled}


def invert(permutation: Array) -> Array:
    """Return the inverse of a short permutation, without a sort."""
    places = jnp.arange(permutation.shape[0])
    return jnp.sum(jnp.where(permutation == places[:, None], places, 0), axis=1)
