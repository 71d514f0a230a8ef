"""How a target's own batched evaluation reaches a kernel that sees one chain.

A kernel calls a function of one position. When the kernel is mapped over chains (or replicas, or
both), `jax.vmap` asks a custom rule, and the rule hands the whole stack to the batched function, with
all mapped axes folded into one.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.custom_batching import custom_vmap

Evaluate = Callable[[Array], tuple[Array, Array]]


@custom_vmap
def call_batched(single: Evaluate, batched: Evaluate, position: Array) -> tuple[Array, Array]:
    """Return `single(position)`; under `vmap`, `batched` of the stack of positions."""
    return single(position)


@call_batched.def_vmap
def _map_single(
    axis_size: int, in_batched: Any, single: Evaluate, batched: Evaluate, position: Array
) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
    if _any_mapped(in_batched[:2]):
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, in_batched)
        results = jax.vmap(lambda f, _, x: f(x), axes, axis_size=axis_size)(single, batched, position)
        return results, (True, True)
    return _call_stack(batched, position), (True, True)


@custom_vmap
def _call_stack(batched: Evaluate, stack: Array) -> tuple[Array, Array]:
    return batched(stack)


@_call_stack.def_vmap
def _map_stack(
    axis_size: int, in_batched: Any, batched: Evaluate, stack: Array
) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
    if _any_mapped(in_batched[:1]):
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, in_batched)
        results = jax.vmap(lambda f, x: f(x), axes, axis_size=axis_size)(batched, stack)
        return results, (True, True)
    folded = stack.reshape((-1, *stack.shape[2:]))
    values, gradients = _call_stack(batched, folded)
    return (values.reshape(stack.shape[:2]), gradients.reshape(stack.shape)), (True, True)


def _any_mapped(in_batched: Any) -> bool:
    return any(jax.tree.leaves(in_batched))
