"""Hyper-parameters: named numbers of a component, with their range declared beside the field.

`parameter(...)` declares one. They are traced leaves, so changing a value never recompiles. A recipe finds
and replaces them by name in its own components only; the arrays of a target are never looked at.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import equinox as eqx
from jax import Array
from jax.tree_util import KeyPath, keystr, tree_map_with_path
from typing_extensions import TypeIs

from steppe.pytree import Relative

if TYPE_CHECKING:
    Number = Array | float
else:  # until a recipe is built, a hyper-parameter may be a multiple of the domain's unit
    Number = Array | float | Relative
M = TypeVar("M", bound=eqx.Module)
N = TypeVar("N")


class Range(NamedTuple):
    """Where a hyper-parameter may lie: above or at `low`, below `high`, always finite."""

    low: float
    high: float
    includes_low: bool

    def contains(self, value: float) -> bool:
        """Whether a finite number lies inside."""
        is_above = value >= self.low if self.includes_low else value > self.low
        return bool(is_above and value < self.high)

    def __str__(self) -> str:
        if self == POSITIVE:
            return "positive"
        return f"{'in [' if self.includes_low else 'in ('}{self.low:g}, {self.high:g})"


POSITIVE = Range(0.0, float("inf"), includes_low=False)
NOT_NEGATIVE = Range(0.0, float("inf"), includes_low=True)
FRACTION = Range(0.0, 1.0, includes_low=True)
ANY_FINITE = Range(-float("inf"), float("inf"), includes_low=False)


def parameter(within: Range = ANY_FINITE, default: float | None = None) -> Number:
    """Declare a field that is a hyper-parameter: a traced number with a range.

    Parameters
    ----------
    within
        Where it may lie, checked in the sampler's own precision when a recipe is built.
    default
        As for any field; `None` if it must be given.
    """
    if default is None:
        return eqx.field(metadata={"range": within})
    return eqx.field(metadata={"range": within}, default=default)


def optional_parameter(within: Range = ANY_FINITE) -> Number | None:
    """Declare a hyper-parameter that may be left out: `None` leaves nothing to set."""
    return eqx.field(metadata={"range": within}, default=None)


class Declared(NamedTuple):
    """A hyper-parameter of a component: its name, its value and where it may lie."""

    name: str
    value: Number | Relative
    range: Range


def list_parameters(node: object) -> Iterator[Declared]:
    """Yield the hyper-parameters of a component and of all components inside it, depth first."""
    if not isinstance(node, eqx.Module):
        return
    for field in dataclasses.fields(node):
        value = node.__dict__[field.name]
        if "range" in field.metadata and value is not None:
            yield Declared(field.name, value, field.metadata["range"])
        for child in value if isinstance(value, tuple) else (value,):
            yield from list_parameters(child)


def read_parameters(node: eqx.Module) -> dict[str, Number | Relative]:
    """Return the hyper-parameters of a component by name."""
    return {declared.name: declared.value for declared in list_parameters(node)}


def replace_parameters(node: M, values: Mapping[str, Number | Relative]) -> M:
    """Return a copy of a component with the named hyper-parameters replaced wherever they stand."""

    def replace(path: KeyPath, value: Number | Relative) -> Number | Relative:
        return values.get(keystr(path[-1:], simple=True), value)

    return tree_map_with_path(replace, node, is_leaf=is_relative)


def scale_parameter(node: N, name: str, factor: Array) -> N:
    """Return a copy of a component with a hyper-parameter multiplied wherever it stands."""

    def scale(path: KeyPath, value: Array) -> Array:
        return value * factor if keystr(path[-1:], simple=True) == name else value

    return tree_map_with_path(scale, node)


def is_relative(node: object) -> TypeIs[Relative]:
    """Whether a node is a number in units of a domain."""
    return isinstance(node, Relative)
