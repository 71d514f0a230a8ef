"""Blocks that step many chains in one call, with chains on the last axis.

What is looked up for a site is then a row of numbers, one per chain. `jax.vmap` of a step reaches `step_many`
by a rule of its own.
"""

import dataclasses
from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap
from jaxtyping import PyTree

from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import POSITION, ChainState, StepInfo


class Moved(NamedTuple):
    """Many chains after a sweep, chains on the last axis."""

    position: Array
    log_density: Array
    num_flips: Array
    num_nonfinite: Array


class ManyChainsBlock(eqx.Module):
    """What blocks share that remember nothing and step all chains in one call of `step_many`."""

    moves = POSITION
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False
    chains_last = True
    takes_field = False

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """Step a chain; mapped over chains, all of them in one call."""
        moved = step_chain(self, density, keys.position, state.position)
        info = StepInfo(
            acceptance_rate=jnp.ones((), moved.log_density.dtype),
            is_accepted=jnp.ones((), bool),
            num_flips=moved.num_flips,
            num_nonfinite=moved.num_nonfinite,
        )
        return state._replace(position=moved.position, log_density=moved.log_density), own, info

    @abstractmethod
    def step_many(self, density: JointDensity, keys: Array, position: Array) -> Moved:
        """Step many chains once, which stand on the last axis; the inverse temperature may differ."""


# What of a step is mapped where chains are: everything.
EVERY_ONE: PyTree[bool] = Moved(True, True, True, True)  # pyright: ignore[reportArgumentType]


# ---- one step under `vmap` ---------------------------------------------------------------------------------


@custom_vmap
def step_chain(block: ManyChainsBlock, density: JointDensity, key: Array, position: Array) -> Moved:
    """Step one chain by `step_many`; under `vmap`, all chains by one call of it."""
    moved = block.step_many(density, key[None], position[..., None])
    return jax.tree.map(lambda array: array[..., 0], moved)


@step_chain.def_vmap
def _map_step(
    axis_size: int,
    is_mapped: tuple[PyTree, ...],
    block: ManyChainsBlock,
    density: JointDensity,
    key: Array,
    position: Array,
) -> tuple[Moved, PyTree[bool]]:
    if _is_target_mapped(is_mapped):
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, tuple(is_mapped))
        moved = jax.vmap(step_chain.fun, axes, axis_size=axis_size)(block, density, key, position)
        return moved, EVERY_ONE
    keys = key if is_mapped[2] else jnp.broadcast_to(key, (axis_size,))
    positions = position if is_mapped[3] else jnp.broadcast_to(position, (axis_size, *position.shape))
    moved = step_group(block, density, keys, jnp.moveaxis(positions, 0, -1))
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, 0), moved), EVERY_ONE


@custom_vmap
def step_group(block: ManyChainsBlock, density: JointDensity, keys: Array, position: Array) -> Moved:
    """Step chains on the last axis by `step_many`; under `vmap`, such as ladders of replicas, all at once."""
    return block.step_many(density, keys, position)


@step_group.def_vmap
def _map_group(
    axis_size: int,
    is_mapped: tuple[PyTree, ...],
    block: ManyChainsBlock,
    density: JointDensity,
    keys: Array,
    position: Array,
) -> tuple[Moved, PyTree[bool]]:
    if _is_target_mapped(is_mapped):
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, tuple(is_mapped))
        return jax.vmap(step_group.fun, axes, axis_size=axis_size)(block, density, keys, position), EVERY_ONE
    shape = position.shape[-1], axis_size  # the new axis last, where many chains stand anyway

    def join(array: Array, is_mapped: bool) -> Array:
        """Put the new axis behind that of the chains, and make one of them."""
        spread = jnp.moveaxis(array, 0, -1) if is_mapped else array[..., None]
        return jnp.broadcast_to(spread, (*spread.shape[:-2], *shape)).reshape(*spread.shape[:-2], -1)

    beta, is_own = jnp.asarray(density.inverse_temperature), is_mapped[1].inverse_temperature
    if beta.ndim == int(is_own):  # one for all chains of a group
        beta = jnp.expand_dims(beta, -1)
    joined = dataclasses.replace(density, inverse_temperature=join(beta, is_own))
    moved = step_group(block, joined, join(keys, is_mapped[2]), join(position, is_mapped[3]))
    return jax.tree.map(lambda a: jnp.moveaxis(a.reshape(*a.shape[:-1], *shape), -1, 0), moved), EVERY_ONE


def _is_target_mapped(is_mapped: tuple[PyTree, ...]) -> bool:
    """Whether what chains share differs: the block, or the density in more than its temperature."""
    block, density = is_mapped[:2]
    return any(jax.tree.leaves((block, density.target, density.coupling, density.penalty)))
