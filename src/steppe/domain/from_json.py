"""Domains from their JSON: id and parameters, as `Domain.to_json` writes them."""

import math
from collections.abc import Callable, Mapping

from steppe.domain.base import MAX_SITES, Domain, Variable
from steppe.domain.categorical import Categorical
from steppe.domain.coordinates import Real
from steppe.domain.permutation import Permutation
from steppe.domain.product import Product
from steppe.domain.real import Binary, Counts, Ordinal, Spin
from steppe.errors import DomainError

KINDS: dict[str, Callable[..., Domain]] = {
    kind.id: kind for kind in (Binary, Spin, Ordinal, Counts, Categorical, Permutation)
}


def make_domain(description: Mapping[str, object]) -> Domain:
    """Return the domain that a description stands for, or say what is wrong with it."""
    parameters = dict(description)
    kind = parameters.pop("id", None)
    if kind == Product.id:
        return _make_product(parameters)
    if not isinstance(kind, str) or kind not in KINDS:
        raise DomainError(f"A domain must be one of {', '.join([*KINDS, Product.id])}; got {kind!r}.")
    sizes = _check_sizes(parameters.pop("shape", None))
    variables = parameters.pop("variables", None)
    try:
        domain = KINDS[kind](sizes[0] if len(sizes) == 1 else tuple(sizes), **parameters)
        return domain if variables is None else domain.with_variables(*_make_variables(variables))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DomainError):
            raise
        raise DomainError(f"The parameters of a {kind} domain are wrong: {error}.") from error


def _make_product(parameters: Mapping[str, object]) -> Product:
    try:
        parts = {name: _make_part(part) for name, part in parameters["parts"]}  # type: ignore[attr-defined]
        if len(parts) != len(parameters["parts"]) or len(parameters) != 1:  # type: ignore[arg-type]
            raise ValueError("names of parts differ, and nothing else is described")
        return Product(**parts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DomainError):
            raise
        raise DomainError(f"The parts of a product domain are wrong: {error}.") from error


def _make_part(description: Mapping[str, object]) -> Domain | Real:
    if description.get("id") != Real.id:
        return make_domain(description)
    if description.keys() != {"id", "shape", "scale"}:
        raise DomainError(f"Real coordinates have a shape and a scale; got {sorted(description)}.")
    return Real(tuple(_check_sizes(description["shape"])), description["scale"])  # type: ignore[arg-type]


def _make_variables(described: object) -> list[Variable]:
    if not isinstance(described, list):
        raise TypeError(f"variables are a list; got {described!r}")
    return [
        Variable(
            name=variable["name"],
            shape=tuple(_check_sizes(variable["shape"])) if variable["shape"] else (),
            low=None if variable["low"] is None else tuple(map(int, variable["low"])),
            labels=None if variable["labels"] is None else tuple(map(str, variable["labels"])),
        )
        for variable in described
    ]


def _check_sizes(shape: object) -> list[int]:
    sizes = shape if isinstance(shape, list) and shape else [0]
    is_whole = all(type(size) is int and 1 <= size <= MAX_SITES for size in sizes)
    if not is_whole or math.prod(sizes) > MAX_SITES:
        raise DomainError(
            f"The shape of a domain must list integers of at least 1, at most {MAX_SITES} sites; got "
            f"{shape!r}."
        )
    return sizes
