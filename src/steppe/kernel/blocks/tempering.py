"""Parallel tempering: hot replicas of a chain travel far and hand their places down to the cold one.

The joint density is the product of `exp{β_r U(θ_r)}` over temperatures. Moves within a temperature keep its
factor, and swaps between neighbours are decided on, so the joint density is left invariant. The chain that
is seen is the first, at `β = 1`; the others are the memory of the block.
"""

import dataclasses
from typing import NamedTuple, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from steppe.errors import DomainError
from steppe.kernel.blocks.metropolis import AroundBlock
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import Block, ChainState, StepInfo
from steppe.random import draws


class Rung(NamedTuple):
    """One temperature, or a stack of them: a chain and what the block that moves it remembers."""

    chain: ChainState
    memory: PyTree


class HotRungs(NamedTuple):
    """What a tempered chain remembers beside its state.

    Attributes
    ----------
    cold
        What the block remembers of the cold chain.
    hot
        The hot chains, one per further temperature, with what the block remembers of them.
    """

    cold: PyTree
    hot: Rung


class TemperedBlock(AroundBlock[Block]):
    """Move every chain by the same block at its own temperature, then swap neighbours.

    Attributes
    ----------
    block
        How a chain moves.
    inverse_temperatures
        `β_r` from 1 down, relative to that of the density.
    """

    component_id = "tempered-block"

    inverse_temperatures: tuple[float, ...] = eqx.field(static=True)

    moves_replicas = False

    @property
    def uses_gradient(self) -> bool:
        """Whether chains move by the gradient."""
        return self.block.uses_gradient

    def init(self, density: JointDensity, state: ChainState, previous: HotRungs | None = None) -> HotRungs:
        """Start all hot chains where the cold one starts."""
        num_hot = len(self.inverse_temperatures) - 1
        cold = self.block.init(density, state, None if previous is None else previous.cold)
        rung = Rung(state, cold)
        hot = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_hot, *jnp.shape(leaf))), rung)
        return HotRungs(cold, hot)

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: HotRungs
    ) -> tuple[ChainState, HotRungs, StepInfo]:
        """Move all chains and swap; reports the mean acceptance and the flips of the cold chain."""
        rungs = jax.tree.map(
            lambda one, others: jnp.concatenate([one[None], others]), Rung(state, own.cold), own.hot
        )
        betas = jnp.asarray(self.inverse_temperatures, state.log_density.dtype)

        def move(beta: Array, key: Array, accept_key: Array, rung: Rung) -> tuple[Rung, StepInfo]:
            there = dataclasses.replace(density, inverse_temperature=density.inverse_temperature * beta)
            here = Keys(keys.center, key, accept_key)
            chain, memory, info = self.block.step(here, there, rung.chain, rung.memory)
            assert info is not None
            return Rung(chain, memory), info

        move_keys, accept_keys = (jax.random.split(key, len(betas)) for key in (keys.position, keys.accept))
        moved, info = jax.vmap(move)(betas, move_keys, accept_keys, rungs)
        order, is_swapped = self.swap(density, keys.center, moved.chain.log_density)
        rungs = jax.tree.map(lambda leaf: leaf[order], moved)
        cold, hot = (jax.tree.map(lambda leaf, part=part: leaf[part], rungs) for part in (0, slice(1, None)))
        return (
            cold.chain,
            HotRungs(cold.memory, hot),
            StepInfo(
                acceptance_rate=jnp.mean(info.acceptance_rate),
                is_accepted=jnp.any(info.is_accepted) | is_swapped,
                num_flips=jnp.sum(density.domain.differs(cold.chain.position, state.position)),
                num_nonfinite=jnp.sum(info.num_nonfinite),
            ),
        )

    def swap(self, density: JointDensity, key: Array, log_density: Array) -> tuple[Array, Array]:
        """Decide on swaps of neighbours, even places first: who is where, and whether anyone moved."""
        last = len(self.inverse_temperatures) - 1
        order = jnp.arange(last + 1)
        is_swapped = jnp.zeros((), bool)
        for place in (*range(0, last, 2), *range(1, last, 2)):
            pair = order[jnp.array([place, place + 1])]
            log_ratio = self.swap_log_ratio(density, place, log_density[pair])
            accepted = draws.log_uniform(jax.random.fold_in(key, place)) < log_ratio
            order = order.at[place].set(jnp.where(accepted, pair[1], pair[0]))
            order = order.at[place + 1].set(jnp.where(accepted, pair[0], pair[1]))
            is_swapped |= accepted
        return order, is_swapped

    def swap_log_ratio(self, density: JointDensity, place: int, pair: Array) -> Array:
        """`(β_r − β_s)(U_s − U_r)` for the neighbours `r = place` and `s = place + 1`."""
        colder, hotter = self.inverse_temperatures[place : place + 2]
        return density.inverse_temperature * (colder - hotter) * (pair[1] - pair[0])

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: those of every chain; swaps cost none."""
        return len(self.inverse_temperatures) * self.block.count_evaluations(density)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: the hot chains are part of the state."""
        raise DomainError(
            "A tempered recipe carries hot chains beside its position, which alone has no transition matrix. "
            "Use its base recipe, or sample."
        )
