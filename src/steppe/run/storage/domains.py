"""Domains from their JSON: id and parameters, as `Domain.to_json` writes them."""

import math
from collections.abc import Callable, Mapping

from steppe.domain import Binary, Categorical, Domain, Ordinal, Spin
from steppe.errors import DomainError
from steppe.permutation import Permutation

KINDS: dict[str, Callable[..., Domain]] = {
    kind.id: kind for kind in (Binary, Spin, Ordinal, Categorical, Permutation)
}
# A description may ask for anything; nothing larger is put into memory.
MAX_SITES = 2**27


def make_domain(description: Mapping[str, object]) -> Domain:
    """Return the domain that a description stands for, or say what is wrong with it."""
    parameters = dict(description)
    kind = parameters.pop("id", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise DomainError(f"A domain must be one of {', '.join(KINDS)}; got {kind!r}.")
    num_sites = _count_sites(parameters.pop("shape", None))
    try:
        return KINDS[kind](num_sites, **parameters)
    except TypeError as error:
        raise DomainError(f"The parameters of a {kind} domain are wrong: {error}.") from error


def _count_sites(shape: object) -> int:
    sizes = shape if isinstance(shape, list) and shape else [0]
    is_whole = all(type(size) is int and 1 <= size <= MAX_SITES for size in sizes)
    if not is_whole or math.prod(sizes) > MAX_SITES:
        raise DomainError(
            f"The shape of a domain must list integers of at least 1, at most {MAX_SITES} sites; got "
            f"{shape!r}."
        )
    return math.prod(sizes)
