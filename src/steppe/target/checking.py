"""Checks of a target's functions: each is traced once, not run, and its result compared with the domain."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import PyTree

from steppe.errors import TargetError

Shape = tuple[int, ...]
Function = Callable[..., PyTree]


def check_scalar(name: str, function: Function, position: jax.ShapeDtypeStruct) -> None:
    """Refuse a log-density that is not one real number."""
    _expect(name, _trace(name, function, position), (), "one real number (a scalar)")


def check_value_and_grad(name: str, function: Function, position: jax.ShapeDtypeStruct) -> None:
    """Refuse anything but a scalar and a gradient of the position's shape."""
    value, gradient = _trace_pair(name, function, position)
    _expect(name, value, (), "a scalar value")
    _expect(name, gradient, position.shape, "a gradient")


def check_batched_value_and_grad(name: str, function: Function, position: jax.ShapeDtypeStruct) -> None:
    """Refuse anything but a value and a gradient for each position of a stack."""
    stack = jax.ShapeDtypeStruct((3, *position.shape), position.dtype)
    value, gradient = _trace_pair(name, function, stack)
    _expect(name, value, (3,), "values of 3 positions")
    _expect(name, gradient, stack.shape, "3 gradients")


def check_table(name: str, function: Function, position: jax.ShapeDtypeStruct, shape: Shape) -> None:
    """Refuse anything but a table of differences."""
    _expect(name, _trace(name, function, position), shape, "a table of sites × levels")


def check_boolean(name: str, function: Function, position: jax.ShapeDtypeStruct) -> None:
    """Refuse anything but one boolean."""
    _expect(name, _trace(name, function, position), (), "one boolean", jnp.bool_)


def check_conditional(name: str, function: Function, position: jax.ShapeDtypeStruct, num_levels: int) -> None:
    """Refuse anything but one log-weight per level."""
    weights = _trace(name, function, position, jax.ShapeDtypeStruct((), jnp.int32))
    _expect(name, weights, (num_levels,), "a log-weight per level of one site")


def check_incremental(
    init: Function,
    differences: Function,
    update: Function,
    refresh: Function | None,
    all_differences: Function | None,
    position: jax.ShapeDtypeStruct,
    shape: Shape,
) -> None:
    """Refuse an incremental form whose table or whose updated cache has another shape."""
    cache = _trace("incremental.init", init, position)
    sites, site = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((1,), ()))
    table = _trace("incremental.differences", differences, cache, position, sites)
    _expect("incremental.differences", table, (1, shape[1]), "a table of one site × levels")
    if all_differences is not None:
        table = _trace("incremental.all_differences", all_differences, cache, position)
        _expect("incremental.all_differences", table, shape, "a table of sites × levels")
    updated = {"update": _trace("incremental.update", update, cache, position, site, site)}
    if refresh is not None:
        updated["refresh"] = _trace("incremental.refresh", refresh, cache, position)
    for name, found in updated.items():
        if jax.tree.map(_kind, found) != jax.tree.map(_kind, cache):
            raise TargetError(
                f"`incremental.{name}` must return a cache like the one `incremental.init` makes, "
                f"{jax.tree.map(_kind, cache)}; got {jax.tree.map(_kind, found)}."
            )


def _kind(leaf: jax.ShapeDtypeStruct) -> tuple[Shape, str]:
    return leaf.shape, str(leaf.dtype)


def _trace(name: str, function: Function, *arguments: PyTree[jax.ShapeDtypeStruct]) -> PyTree:
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        seen = " and ".join(_describe(leaf) for leaf in jax.tree.leaves(arguments))
        is_index = isinstance(error, TypeError) and "ndex" in reason and "integer" in reason
        remedy = (
            "Positions are floats, so that U can be differentiated: write a look-up `table[i, z[i]]` as "
            "`jnp.sum(table * z)` with one-hot rows `z`, or give `Target(..., as_levels=True)` and get "
            "integers."
            if is_index
            else "It must be a JAX function of one such position."
        )
        what = f"{type(error).__name__}: {reason.rstrip('.')}"
        raise TargetError(f"`{name}` failed on {seen}: {what}. {remedy}") from error


def _trace_pair(
    name: str, function: Function, position: jax.ShapeDtypeStruct
) -> tuple[PyTree[jax.ShapeDtypeStruct], PyTree[jax.ShapeDtypeStruct]]:
    result = _trace(name, function, position)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TargetError(f"`{name}` must return a pair (value, gradient); got {_describe(result)}.")
    return result[0], result[1]


def _expect(name: str, result: PyTree, shape: Shape, what: str, kind: DTypeLike = jnp.floating) -> None:
    is_array = isinstance(result, jax.ShapeDtypeStruct | Array)
    if not (is_array and result.shape == shape and jnp.issubdtype(result.dtype, kind)):
        type_name = "bool" if kind is jnp.bool_ else "floating"
        raise TargetError(
            f"`{name}` must return {what} of shape {shape} and a {type_name} type; got "
            f"{_describe(result)}. {_scope(name)}"
        )


def _scope(name: str) -> str:
    if name.startswith("batched"):
        return "Write it for a stack of positions, one per chain."
    return "Write it for ONE position; chains are mapped for you."


def _describe(result: PyTree) -> str:
    if isinstance(result, jax.ShapeDtypeStruct | Array):
        return f"an array of shape {result.shape} and type {result.dtype}"
    return f"a {type(result).__name__}"
