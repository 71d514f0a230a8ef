"""Functions of shaped or named positions, as kernels call them: with one array of sites."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jax import Array
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.domain.base import Domain
from steppe.domain.product import Product
from steppe.errors import TargetError

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


@dataclasses.dataclass(frozen=True)
class OnMixed:
    """The same for functions of discrete and real parts together, at given real coordinates."""

    domain: Product

    def __call__(
        self, function: Callable[..., PyTree], reals: Array | None, position: Array, *more: Array
    ) -> PyTree:
        """Return what the function makes of them."""
        if reals is None:
            raise TargetError(
                f"A target on {self.domain!r} has real parts, and only discrete ones were given. Sample it "
                "by `steppe.mixed(...)`, or hold them fixed: `target.given({...})` is the target of the "
                "discrete parts alone."
            )
        structured = {**self.domain.unflatten(position), **self.domain.unflatten_reals(reals)}
        return function(structured, *more)


def take_mixed_positions(domain: Product, functions: Functions) -> Functions:
    """Return functions of discrete and real parts as functions of discrete sites, reals to be given."""
    refused = {"value_and_grad", "batched_value_and_grad", "differences", "incremental"}
    given = {name for name, function in functions._asdict().items() if function is not None}
    if given & refused:
        raise TargetError(
            f"`Target({sorted(given & refused)[0]}=...)` is not for a domain with real parts: leave it out. "
            "`is_valid`, `interactions`, `conditional` and `multilinear` are."
        )
    wrapper = OnMixed(domain)
    return functions._replace(
        **{name: Partial(wrapper, getattr(functions, name), None) for name in sorted(given)}
    )


def give_reals(functions: Functions, reals: Array) -> Functions:
    """Return functions that `take_mixed_positions` made, at given real coordinates."""
    given = {name: function for name, function in functions._asdict().items() if function is not None}
    return functions._replace(
        **{name: Partial(made.func, made.args[0], reals) for name, made in given.items()}
    )


def split_reals(domain: Domain, positions: Structured) -> tuple[Structured, Array | None]:
    """Return what a log-density takes as its discrete parts and its real coordinates, if they are there."""
    if not isinstance(domain, Product) or not domain.num_reals or not isinstance(positions, Mapping):
        return positions, None
    discrete = {name: part for name, part in positions.items() if name not in domain.real_parts}
    if len(discrete) == len(positions):
        return discrete, None
    return discrete, domain.flatten_reals(positions)


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
    if isinstance(domain, Product) and domain.num_reals:
        return take_mixed_positions(domain, functions)
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
