"""Dataclasses that JAX can trace: numbers are leaves, everything marked `static` is structure.

Changing a leaf never recompiles; changing a static field does. All pieces of a sampler are built
from this one decorator.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar, dataclass_transform

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import GetAttrKey, Partial

T = TypeVar("T")


def static(**options: Any) -> Any:
    """Declare a dataclass field that is part of the compiled structure, not a traced number."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static))
def piece(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and register it with JAX as a pytree.

    `jax.tree_util.register_dataclass` would be shorter, but in jax 0.10 the structures of two classes
    registered with it are equal whenever their fields are (`Metropolis` has the fields of `Unadjusted`:
    none), and `jit` may then run the program compiled for the other one.
    """
    made: Any = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(made)
    traced = tuple(field.name for field in fields if not field.metadata.get("static"))
    fixed = tuple(field.name for field in fields if field.metadata.get("static"))

    def flatten_with_keys(node: Any) -> tuple[Any, tuple[Any, ...]]:
        children = tuple((GetAttrKey(name), getattr(node, name)) for name in traced)
        return children, tuple(getattr(node, name) for name in fixed)

    def flatten(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(node, name) for name in traced), tuple(getattr(node, name) for name in fixed)

    def unflatten(structure: tuple[Any, ...], children: Iterable[Any]) -> Any:
        node = object.__new__(made)
        for name, value in zip((*traced, *fixed), (*children, *structure), strict=True):
            object.__setattr__(node, name, value)
        return node

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    return made


def is_concrete(tree: Any) -> bool:
    """Whether no leaf of `tree` is being traced, so that its values can be looked at."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


class Relative(eqx.Module):
    """A number in units of the domain's shortest squared move, resolved when a recipe is built."""

    multiple: float = eqx.field(static=True)

    def resolve(self, squared_unit: float) -> float:
        """Return the number for a domain with this unit."""
        return self.multiple * squared_unit

    def __repr__(self) -> str:
        return f"{self.multiple:g}·unit"


def as_pytree(function: Any) -> Any:
    """Wrap plain functions, to have no leaves; put the arrays of those that are pytrees on the device."""
    return Partial(function) if jax.tree_util.all_leaves([function]) else jax.tree.map(on_device, function)


def on_device(leaf: Any) -> Any:
    """Return a NumPy array as one of jax, and anything else as it is.

    In jax 0.10 a NumPy array that was traced in one precision and is passed in the other reaches the program
    in the wrong size; an array of jax keeps the precision it was made in.
    """
    is_numeric = isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufc"
    return jnp.asarray(leaf) if is_numeric else leaf
