"""Batched evaluation: how a target's own form for stacks reaches a kernel that sees one chain.

A kernel calls a function of one position. When the kernel is mapped over chains (or replicas, or
both), `jax.vmap` asks a custom rule, and the rule hands the whole stack to the batched function, with
all mapped axes folded into one.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
from jax import Array
from jax.custom_batching import custom_vmap
from jaxtyping import PyTree

Model = TypeVar("Model")
# The model is any pytree; a position goes to a value and a gradient, a stack of them to as many of each.
Evaluate = Callable[[Model, Array], tuple[Array, Array]]
Evaluated = tuple[Array, Array]
Mapped = PyTree[bool]


@custom_vmap
def call_batched(
    single: Evaluate[Model], batched: Evaluate[Model], model: Model, position: Array
) -> Evaluated:
    """Return `single(model, position)`; under `vmap`, `batched` of the stack of positions."""
    return single(model, position)


@call_batched.def_vmap
def _map_single(
    axis_size: int,
    is_mapped: list[Mapped],
    single: Evaluate[Model],
    batched: Evaluate[Model],
    model: Model,
    position: Array,
) -> tuple[Evaluated, tuple[bool, bool]]:
    if _any_mapped(is_mapped[2]):
        axes = _axes(is_mapped[2:])
        return jax.vmap(single, axes, axis_size=axis_size)(model, position), (True, True)
    return _call_stack(batched, model, position), (True, True)


@custom_vmap
def _call_stack(batched: Evaluate[Model], model: Model, stack: Array) -> Evaluated:
    return batched(model, stack)


@_call_stack.def_vmap
def _map_stack(
    axis_size: int, is_mapped: list[Mapped], batched: Evaluate[Model], model: Model, stack: Array
) -> tuple[Evaluated, tuple[bool, bool]]:
    if _any_mapped(is_mapped[1]):
        axes = _axes(is_mapped[1:])
        return jax.vmap(batched, axes, axis_size=axis_size)(model, stack), (True, True)
    folded = stack.reshape((-1, *stack.shape[2:]))
    values, gradients = _call_stack(batched, model, folded)
    return (values.reshape(stack.shape[:2]), gradients.reshape(stack.shape)), (True, True)


def _any_mapped(is_mapped: Mapped) -> bool:
    return any(jax.tree.leaves(is_mapped))


def _axes(is_mapped: list[Mapped]) -> tuple[PyTree[int | None], ...]:
    return tuple(jax.tree.map(lambda mapped: 0 if mapped else None, part) for part in is_mapped)
