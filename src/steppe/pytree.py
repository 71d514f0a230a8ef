"""Dataclasses that JAX can trace: numbers are leaves, everything marked `static` is structure.

Changing a leaf never recompiles; changing a static field does. All pieces of a sampler are built
from this one decorator.
"""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
from jax.core import Tracer

T = TypeVar("T")


def static(**options: Any) -> Any:
    """Declare a dataclass field that is part of the compiled structure, not a traced number."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static))
def piece(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and register it with JAX as a pytree."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


def is_concrete(tree: Any) -> bool:
    """Whether no leaf of `tree` is being traced, so that its values can be looked at."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


@piece
class Relative:
    """A number in units of the domain's shortest squared move, resolved when a recipe is built."""

    multiple: float

    def resolve(self, squared_unit: float) -> float:
        """Return the number for a domain with this unit."""
        return self.multiple * squared_unit

    def __repr__(self) -> str:
        return f"{self.multiple:g}·unit"
