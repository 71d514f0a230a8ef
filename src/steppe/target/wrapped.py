"""Wrapped targets: what `Target(log_density, domain)` makes, with functions in the place of methods."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.domain.base import Domain
from steppe.domain.product import Product
from steppe.domain.structured import give_reals, take_flat_positions
from steppe.errors import TargetError
from steppe.target.interactions import Interactions
from steppe.target.log_density import (
    COMPLETIONS,
    Cache,
    Function,
    Incremental,
    LogDensity,
    Target,
    ValueAndGrad,
    as_function,
    differentiate,
    evaluate_conditional,
    evaluate_differences,
)
from steppe.validation import flag


class _Functions(NamedTuple):
    """The callables of a wrapped target, each a pytree, so that arrays held by them are traced leaves."""

    log_density: LogDensity
    value_and_grad: ValueAndGrad | None
    batched_value_and_grad: ValueAndGrad | None
    differences: Callable[[Array], Array] | None
    is_valid: Callable[[Array], Array] | None
    incremental: Incremental[PyTree] | None
    conditional: Callable[[Array, Array], Array] | None


class WrappedTarget(Target):
    """What `Target(log_density, domain, ...)` makes: functions of the user in the place of methods."""

    _label = "Target"
    _functions: _Functions
    _interactions: Interactions | None
    _is_linear: bool = eqx.field(static=True)

    def __init__(
        self,
        log_density: LogDensity,
        domain: Domain,
        *,
        value_and_grad: ValueAndGrad | None = None,
        batched_value_and_grad: ValueAndGrad | None = None,
        differences: Callable[[Array], Array] | None = None,
        is_valid: Callable[[Array], Array] | None = None,
        incremental: Incremental[PyTree] | None = None,
        interactions: ArrayLike | None = None,
        conditional: Callable[[Array, Array], Array] | None = None,
        multilinear: bool = False,
        as_levels: bool = False,
    ) -> None:
        self.domain = domain
        self._is_linear = flag("Target(multilinear=...)", multilinear, error=TargetError)
        is_given = interactions is not None
        self._interactions = Interactions.read(interactions, domain.num_sites) if is_given else None
        functions = _Functions(
            log_density=as_function("log_density", log_density),
            value_and_grad=_as_optional_function("value_and_grad", value_and_grad),
            batched_value_and_grad=_as_optional_function("batched_value_and_grad", batched_value_and_grad),
            differences=_as_optional_function("differences", differences),
            is_valid=_as_optional_function("is_valid", is_valid),
            incremental=_as_incremental(incremental),
            conditional=_as_optional_function("conditional", conditional),
        )
        takes_levels = flag("Target(as_levels=...)", as_levels, error=TargetError)
        if takes_levels and multilinear:
            raise TargetError(
                "`Target(as_levels=True, multilinear=True)`: integers have no gradient. Leave one out."
            )
        self._functions = take_flat_positions(domain, functions, as_levels=takes_levels)

    def given(self, reals: ArrayLike | Mapping[str, ArrayLike]) -> Target:
        """The target of the discrete parts with the real ones held fixed."""
        domain = self.domain
        if not isinstance(domain, Product) or not domain.num_reals:
            return super().given(reals)
        held = domain.flatten_reals(reals) if isinstance(reals, Mapping) else jnp.asarray(reals)
        made = object.__new__(WrappedTarget)  # the functions are checked already
        fields = {"domain": domain.discrete, "_functions": give_reals(self._functions, held)}
        for field in dataclasses.fields(self):
            object.__setattr__(made, field.name, fields.get(field.name, getattr(self, field.name)))
        return made

    def log_density(self, position: Array) -> Array:
        """The function given."""
        return self._functions.log_density(position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """The function given, or the log-density differentiated."""
        given = self._functions.value_and_grad
        return differentiate(self, position) if given is None else given(position)

    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]:
        """The function given."""
        assert self._functions.batched_value_and_grad is not None
        return self._functions.batched_value_and_grad(stack)

    def differences(self, position: Array) -> Array:
        """The function given, or the log-density evaluated."""
        given = self._functions.differences
        return evaluate_differences(self, position) if given is None else given(position)

    @property
    def is_multilinear(self) -> bool:
        """As it was declared."""
        return self._is_linear

    def is_valid(self, position: Array) -> Array:
        """The function given, or always true."""
        given = self._functions.is_valid
        return jnp.asarray(True) if given is None else given(position)

    def conditional(self, position: Array, site: Array) -> Array:
        """The function given, or the log-density evaluated."""
        given = self._functions.conditional
        return evaluate_conditional(self, position, site) if given is None else given(position, site)

    @property
    def incremental(self) -> Incremental[PyTree] | None:
        """As it was given."""
        return self._functions.incremental

    @property
    def interactions(self) -> Interactions | None:
        """As they were given."""
        return self._interactions

    @property
    def has_constraint(self) -> bool:
        """Whether `is_valid` was given."""
        return self._functions.is_valid is not None

    @property
    def offers(self) -> tuple[str, ...]:
        """Names of the functions given."""
        given = self._functions._asdict().items()
        return tuple(name for name, function in given if function is not None and name in COMPLETIONS)


def _as_optional_function(name: str, function: Function | None) -> Function | None:
    return None if function is None else as_function(name, function)


def _as_incremental(incremental: Incremental[Cache] | None) -> Incremental[Cache] | None:
    if incremental is None:
        return None
    if not isinstance(incremental, Incremental):
        raise TargetError(
            "`incremental` must be a `steppe.Incremental(init, differences, update)`; got "
            f"{type(incremental).__name__}."
        )
    return Incremental(
        as_function("incremental.init", incremental.init),
        as_function("incremental.differences", incremental.differences),
        as_function("incremental.update", incremental.update),
        _as_optional_function("incremental.refresh", incremental.refresh),
    )


Target._wrapper = WrappedTarget
