"""Parallel tempering: hot copies of a chain travel far and hand their places down to the cold one.

The joint law is the product of `exp{β_r U(θ_r)}` over temperatures. Moves within a temperature keep its
factor, and swaps between neighbours are decided on, so the joint law is kept exactly. The chain that is seen
is the first, at `β = 1`; the others are carried in the cache of its state.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.kernel import noise
from steppe.kernel.block import AroundBlock
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.state import Info, State
from steppe.pytree import piece, static


class Hidden(NamedTuple):
    """What a tempered chain carries beside its state.

    Attributes
    ----------
    own
        The cache of the cold chain itself.
    hot
        States of the hot chains, one per further temperature.
    """

    own: Any
    hot: State


@piece
class Tempered(AroundBlock):
    """Move every chain by the same block at its own temperature, then swap neighbours.

    Attributes
    ----------
    block
        How a chain moves.
    inverse_temperatures
        `β_r` from 1 down, relative to that of the landscape.
    """

    block: Any
    inverse_temperatures: tuple[float, ...] = static()

    @property
    def needs_gradient(self) -> bool:
        """Whether chains move by the gradient."""
        return self.block.needs_gradient

    @property
    def proposal(self) -> Any:
        """The proposal of the block, if it has one."""
        return getattr(self.block, "proposal", None)

    @property
    def scan(self) -> str:
        """The scan of the block, if it has one."""
        return getattr(self.block, "scan", "")

    def evaluations(self, landscape: Landscape) -> float:
        """Evaluations of one step: those of every chain; swaps cost none."""
        return len(self.inverse_temperatures) * self.block.evaluations(landscape)

    def hide(self, state: State) -> State:
        """Start all hot chains where the cold one starts."""
        num_hot = len(self.inverse_temperatures) - 1
        hot = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_hot, *jnp.shape(leaf))), state)
        return state._replace(cache=Hidden(state.cache, hot))

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        """Move all chains and swap; reports the mean acceptance and the flips of the cold chain."""
        cold = state._replace(cache=state.cache.own)
        chains = jax.tree.map(lambda one, others: jnp.concatenate([one[None], others]), cold, state.cache.hot)
        betas = jnp.asarray(self.inverse_temperatures, state.log_density.dtype)

        def move(beta: Array, key: Array, accept_key: Array, chain: State) -> tuple[State, Info]:
            own = dataclasses.replace(landscape, inverse_temperature=landscape.inverse_temperature * beta)
            return self.block.step(own, Keys(keys.center, key, accept_key), chain)

        move_keys, accept_keys = (jax.random.split(key, len(betas)) for key in (keys.position, keys.accept))
        moved, info = jax.vmap(move)(betas, move_keys, accept_keys, chains)
        order, is_swapped = self.swap(landscape, keys.center, moved.log_density)
        chains = jax.tree.map(lambda leaf: leaf[order], moved)
        new, hot = (jax.tree.map(lambda leaf, part=part: leaf[part], chains) for part in (0, slice(1, None)))
        return new._replace(cache=Hidden(new.cache, hot)), Info(
            acceptance_rate=jnp.mean(info.acceptance_rate),
            is_accepted=jnp.any(info.is_accepted) | is_swapped,
            num_flips=jnp.sum(landscape.domain.differs(new.position, state.position)),
            num_nonfinite=jnp.sum(info.num_nonfinite),
        )

    def swap(self, landscape: Landscape, key: Array, log_density: Array) -> tuple[Array, Array]:
        """Decide on swaps of neighbours, even places first: who is where, and whether anyone moved."""
        last = len(self.inverse_temperatures) - 1
        order = jnp.arange(last + 1)
        is_swapped = jnp.zeros((), bool)
        for place in (*range(0, last, 2), *range(1, last, 2)):
            pair = order[jnp.array([place, place + 1])]
            log_ratio = self.swap_log_ratio(landscape, place, log_density[pair])
            accepted = noise.log_uniform(jax.random.fold_in(key, place)) < log_ratio
            order = order.at[place].set(jnp.where(accepted, pair[1], pair[0]))
            order = order.at[place + 1].set(jnp.where(accepted, pair[0], pair[1]))
            is_swapped |= accepted
        return order, is_swapped

    def swap_log_ratio(self, landscape: Landscape, place: int, pair: Array) -> Array:
        """`(β_r − β_s)(U_s − U_r)` for the neighbours `r = place` and `s = place + 1`."""
        colder, hotter = self.inverse_temperatures[place : place + 2]
        return landscape.inverse_temperature * (colder - hotter) * (pair[1] - pair[0])
