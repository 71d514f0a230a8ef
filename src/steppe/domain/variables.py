"""Variables: the names, shapes and values under which the sites of a domain are known outside the kernels."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steppe.errors import DomainError

# Names of dimensions and variables of every stored run.
RESERVED = ("chain", "draw", "replica", "site", "level", "center")


class Variable(NamedTuple):
    """Consecutive sites under one name.

    Attributes
    ----------
    name
        What tables and plots call it.
    shape
        Shape of its value; `()` for one site.
    low
        Smallest value of every site, if values are integers that count from there.
    labels
        What every site is called, if not by its number.
    """

    name: str
    shape: tuple[int, ...]
    low: tuple[int, ...] | None = None
    labels: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)

    @property
    def site_names(self) -> list[str]:
        """Every site, as `z[3]`; one site without a shape, as `z`."""
        if self.labels is not None:
            return [f"{self.name}[{label}]" for label in self.labels]
        places = [", ".join(map(str, index)) for index in np.ndindex(*self.shape)]
        return [f"{self.name}[{place}]" if place else self.name for place in places]

    def to_json(self) -> dict[str, object]:
        """The variable, as it stands in files."""
        low = None if self.low is None else list(self.low)
        labels = None if self.labels is None else list(self.labels)
        return {"name": self.name, "shape": list(self.shape), "low": low, "labels": labels}


def check_variables(variables: Sequence[Variable], num_sites: int) -> tuple[Variable, ...]:
    """Return variables that share out the sites of a domain, each name once."""
    names = [variable.name for variable in variables]
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise DomainError(f"Variables of a domain need different names; got {names}.")
    sizes = [variable.size for variable in variables]
    if sum(sizes) != num_sites:
        raise DomainError(f"Variables of {num_sites} sites must share them out; these have {sizes}.")
    for variable in variables:
        for listed in (variable.low, variable.labels):
            if listed is not None and len(listed) != variable.size:
                raise DomainError(f"{variable.name!r} has {variable.size} sites and {len(listed)} entries.")
    return tuple(variables)


def count_from(low: Sequence[int], levels: np.ndarray, max_levels: int) -> np.ndarray:
    """Return `low + level` of every site in the smallest type of integers."""
    ends = min(low), max(low) + max_levels - 1
    # A type that holds the largest value below zero holds it above zero too.
    kind = np.min_scalar_type(ends[1] if ends[0] >= 0 else min(ends[0], -1 - ends[1]))
    return (levels.astype(np.int64) + np.asarray(low, np.int64)).astype(kind)
