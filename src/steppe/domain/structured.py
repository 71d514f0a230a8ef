"""Functions of shaped or named positions, as kernels call them: with one array of sites."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jax import Array
from jax.tree_util import Partial
from jax.typing import ArrayLike

from steppe.domain.base import Domain

# What a log-density takes, or what kernels hold.
Structured = ArrayLike | Mapping[str, ArrayLike]
Functions = TypeVar("Functions", bound=NamedTuple)


@dataclasses.dataclass(frozen=True)
class OnStructure:
    """Call a function with the position it takes; equal for equal domains: nothing is compiled twice."""

    domain: Domain

    def __call__(self, function: Callable[[Any], Any], position: Array) -> Any:
        """Return what the function makes of the position."""
        return function(self.domain.unflatten(position))


@dataclasses.dataclass(frozen=True)
class OfSite:
    """The same for functions of a position and a site, which are numbered as kernels hold them."""

    domain: Domain

    def __call__(self, function: Callable[..., Any], position: Array, site: Array) -> Any:
        """Return what the function makes of them."""
        return function(self.domain.unflatten(position), site)


class WithGradient(OnStructure):
    """The same for a value and a gradient, which becomes one array of sites."""

    def __call__(self, function: Callable[[Any], Any], position: Array) -> Any:
        """Return the value and the gradient."""
        value, gradient = function(self.domain.unflatten(position))
        return value, self.domain.flatten(gradient)


@dataclasses.dataclass(frozen=True)
class AfterCache:
    """The same for functions of a cache, a position and more."""

    domain: Domain

    def __call__(self, function: Callable[..., Any], cache: Any, position: Array, *more: Array) -> Any:
        """Return what the function makes of them."""
        return function(cache, self.domain.unflatten(position), *more)


def take_flat_positions(domain: Domain, functions: Functions) -> Functions:
    """Return the functions of a target as functions of positions as kernels hold them.

    Parameters
    ----------
    domain
        Where the positions live.
    functions
        Named tuple of what was given to `Target`, each a pytree or `None`.
    """
    if not isinstance(domain, Domain) or domain.is_flat:
        return functions
    wrappers = {
        "log_density": OnStructure(domain),
        "value_and_grad": WithGradient(domain),
        "batched_value_and_grad": WithGradient(domain),
        "differences": OnStructure(domain),
        "is_valid": OnStructure(domain),
        "conditional": OfSite(domain),
        "init": OnStructure(domain),
        "update": AfterCache(domain),
        "refresh": AfterCache(domain),
    }
    given = functions._asdict()
    incremental = given.pop("incremental", None)
    wrapped = {name: f if f is None else Partial(wrappers[name], f) for name, f in given.items()}
    if incremental is not None:
        made = take_flat_positions(domain, incremental)
        cached = Partial(AfterCache(domain), incremental.differences)
        wrapped["incremental"] = made._replace(differences=cached)
    return functions._replace(**wrapped)


def flatten_positions(domain: Domain, positions: Structured) -> ArrayLike:
    """Return positions as kernels hold them; what a log-density takes is welcome too."""
    if isinstance(positions, Mapping):
        return domain.flatten(positions)
    if domain.is_flat:
        return positions
    shape = np.shape(positions)
    is_held = shape[max(len(shape) - len(domain.shape), 0) :] == domain.shape
    return positions if is_held else domain.flatten(positions)
