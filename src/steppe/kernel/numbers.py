"""The numbers of a recipe by name: every traced field of every piece, found by walking the pieces."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from steppe.pytree import Relative


def pieces(node: Any) -> Iterator[Any]:
    """Yield every dataclass inside a recipe, depth first."""
    if isinstance(node, tuple):
        for child in node:
            yield from pieces(child)
    elif _is_piece(node):
        yield node
        for field in dataclasses.fields(node):
            yield from pieces(getattr(node, field.name))


def all_numbers(node: Any) -> dict[str, Any]:
    """Return the numbers of a tree of pieces by name."""
    return {name: value for piece in pieces(node) for name, value in numbers_of(piece)}


def numbers_of(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the traced fields of one piece, not of the pieces inside it."""
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if _is_number(value) and not field.metadata.get("static"):
            yield field.name, value


def with_numbers(node: Any, numbers: dict[str, Any]) -> Any:
    """Return a copy of a tree of pieces with the named numbers replaced wherever they stand."""
    if isinstance(node, tuple):
        return tuple(with_numbers(child, numbers) for child in node)
    if not _is_piece(node):
        return node
    own = dict(numbers_of(node))
    fields = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    changed = {
        name: numbers.get(name, value) if name in own else with_numbers(value, numbers)
        for name, value in fields.items()
    }
    return dataclasses.replace(node, **changed)


def _is_number(value: Any) -> bool:
    return hasattr(value, "dtype") or isinstance(value, int | float | Relative)


def _is_piece(node: Any) -> bool:
    return dataclasses.is_dataclass(node) and not isinstance(node, Relative)
