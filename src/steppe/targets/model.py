"""A target made of one model: a pytree that holds the arrays, and whose methods are the functions.

Every function of the target is a `Partial` of a method over the model, so arrays are traced leaves and
the methods are the same objects for every model of a kind: new weights never recompile.
"""

from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from steppe.domain import Domain
from steppe.target import Incremental, Target


class Model(Protocol):
    """What a model offers; `Incremental` explains the last three."""

    @property
    def domain(self) -> Domain: ...  # noqa: D102
    @property
    def is_incremental(self) -> bool: ...  # noqa: D102
    def log_density(self, position: Array) -> Array: ...  # noqa: D102
    def value_and_grad(self, position: Array) -> tuple[Array, Array]: ...  # noqa: D102
    def batched_value_and_grad(self, stack: Array) -> tuple[Array, Array]: ...  # noqa: D102
    def differences(self, position: Array) -> Array: ...  # noqa: D102
    def start(self, position: Array) -> Any: ...  # noqa: D102
    def differences_at(self, memory: Any, position: Array, sites: Array) -> Array: ...  # noqa: D102
    def follow(self, memory: Any, position: Array, site: Array, level: Array) -> Any: ...  # noqa: D102


@jax.tree_util.register_pytree_node_class
class ModelTarget(Target):
    """A target that remembers its model. Subclasses add what can be asked of a position."""

    @property
    def model(self) -> Any:
        """The arrays the target was made from."""
        # Taken from the log-density instead of being kept beside it, so that no leaf is stored twice.
        return self._functions.log_density.args[0]  # type: ignore[attr-defined]


Kind = TypeVar("Kind", bound=ModelTarget)


def target_of(model: Model, kind: type[Kind]) -> Kind:
    """Make a target of the given kind from the methods of a model."""
    model = jax.tree.map(jnp.asarray, model)  # once: copies of a leaf would be transferred one by one
    methods: Any = type(model)
    incremental = Incremental(
        init=Partial(methods.start, model),
        differences=Partial(methods.differences_at, model),
        update=Partial(methods.follow, model),
    )
    return kind(
        Partial(methods.log_density, model),
        model.domain,
        value_and_grad=Partial(methods.value_and_grad, model),
        batched_value_and_grad=Partial(methods.batched_value_and_grad, model),
        differences=Partial(methods.differences, model),
        incremental=incremental if model.is_incremental else None,
    )
