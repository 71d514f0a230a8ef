"""Functions of shaped or named positions, as kernels call them: with one array of sites."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
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
class OnLevels:
    """The same for functions of integer levels."""

    domain: Domain

    def __call__(self, function: Callable[..., PyTree], position: Array, *more: Array) -> PyTree:
        """Return what the function makes of the levels of a position."""
        return function(show_levels(self.domain, position), *more)


def show_levels(domain: Domain, position: Array) -> PyTree:
    """Return the levels of a position as integers, in the shape or under the names a log-density knows."""
    return domain.unflatten_levels(domain.to_levels(position).astype(jnp.int32))


def take_levels(domain: Domain, functions: Functions) -> Functions:
    """Return functions of integer levels as functions of positions as kernels hold them."""
    check_only(functions, "as_levels=True", ("log_density", "is_valid", "differences", "conditional"))
    given = {name: function for name, function in functions._asdict().items() if function is not None}
    return functions._replace(**{name: Partial(OnLevels(domain), f) for name, f in given.items()})


def check_only(functions: NamedTuple, what: str, allowed: tuple[str, ...]) -> None:
    """Refuse functions that do not go with what was declared."""
    given = {name for name, function in functions._asdict().items() if function is not None}
    refused = sorted(given - set(allowed))
    if refused:
        raise TargetError(
            f"`Target({refused[0]}=...)` does not go with {what}: leave it out. These do: "
            f"{', '.join(allowed)}."
        )


@dataclasses.dataclass(frozen=True)
class OnMixed:
    """The same for functions of discrete and real parts together, at given real coordinates."""

    domain: Product
    as_levels: bool

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
        domain = self.domain
        parts = show_levels(domain, position) if self.as_levels else domain.unflatten(position)
        return function({**parts, **domain.unflatten_reals(reals)}, *more)


def take_mixed_positions(domain: Product, functions: Functions, as_levels: bool) -> Functions:
    """Return functions of discrete and real parts as functions of discrete sites, reals to be given."""
    check_only(functions, "real parts", ("log_density", "is_valid", "conditional"))
    given = {name: function for name, function in functions._asdict().items() if function is not None}
    wrapper = OnMixed(domain, as_levels)
    return functions._replace(**{name: Partial(wrapper, f, None) for name, f in given.items()})


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


def take_flat_positions(domain: Domain, functions: Functions, *, as_levels: bool = False) -> Functions:
    """Return the functions of a target as functions of positions as kernels hold them.

    Parameters
    ----------
    domain
        Where the positions live.
    functions
        Named tuple of what was given to `Target`, each a pytree or `None`.
    as_levels
        Whether they take integer levels.
    """
    if not isinstance(domain, Domain):
        return functions
    if isinstance(domain, Product) and domain.num_reals:
        return take_mixed_positions(domain, functions, as_levels)
    if as_levels:
        return take_levels(domain, functions)
    if domain.is_flat:
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
