"""What is sampled: a log-density of ONE state on a domain, with whatever makes it cheap.

`π(θ) ∝ exp U(θ)`: the log-density `U` is larger where states are better. An energy has the opposite
sign; use `Target.from_energy` for one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from steppe.batching import call_batched
from steppe.domain import Domain
from steppe.errors import TargetError
from steppe.pytree import as_pytree


class Incremental(NamedTuple):
    """How a target follows one-site changes at the cost of what changed.

    Attributes
    ----------
    init
        `init(position) → cache`, any pytree of arrays (for example the inputs to hidden units).
    differences
        `differences(cache, position, sites) → table` of shape `(len(sites), max_levels)`: the exact
        `U(site set to level) − U(position)`, finite everywhere: what is forbidden outright belongs into
        `is_valid`, because blocks are followed through states that may not be valid themselves.
    update
        `update(cache, position, site, level) → cache` after one site of `position` takes `level`.
    """

    init: Callable[[Array], Any]
    differences: Callable[[Any, Array, Array], Array]
    update: Callable[[Any, Array, Array, Array], Any]


class _Functions(NamedTuple):
    """The callables of a target, each a pytree, so that arrays held by them are traced leaves."""

    log_density: Callable[[Array], Array]
    value_and_grad: Callable[[Array], tuple[Array, Array]] | None
    batched_value_and_grad: Callable[[Array], tuple[Array, Array]] | None
    differences: Callable[[Array], Array] | None
    is_valid: Callable[[Array], Array] | None
    incremental: Incremental | None


@jax.tree_util.register_pytree_node_class
class Target:
    """A log-density on a domain.

    Parameters
    ----------
    log_density
        `U(position) → scalar` for one position of shape `domain.shape`, written in JAX. It may be a
        pytree (an equinox module, a `jax.tree_util.Partial`): its arrays are then traced, and changing
        them does not recompile.
    domain
        Where the position lives.
    value_and_grad
        `position → (value, gradient)`, if you can do it faster than `jax.value_and_grad`.
    batched_value_and_grad
        The same for a stack of positions, used whenever a kernel is mapped over chains.
    differences
        `position → table` of shape `(num_sites, max_levels)`, the exact
        `U(site set to level) − U(position)`, if it is cheap.
    is_valid
        `position → bool` for constrained spaces. An invalid state has `U = −inf`.
    incremental
        An `Incremental`, so that single-site and block samplers cost what changed.
    """

    domain: Domain
    _functions: _Functions

    def __init__(
        self,
        log_density: Callable[[Array], Array],
        domain: Domain,
        *,
        value_and_grad: Callable[[Array], tuple[Array, Array]] | None = None,
        batched_value_and_grad: Callable[[Array], tuple[Array, Array]] | None = None,
        differences: Callable[[Array], Array] | None = None,
        is_valid: Callable[[Array], Array] | None = None,
        incremental: Incremental | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise TargetError(
                f"`Target(log_density, domain)` needs a domain such as `steppe.Binary(64)`; got {domain!r}."
            )
        self.domain = domain
        self._functions = _Functions(
            log_density=_pytree_function("log_density", log_density),
            value_and_grad=_optional_function("value_and_grad", value_and_grad),
            batched_value_and_grad=_optional_function("batched_value_and_grad", batched_value_and_grad),
            differences=_optional_function("differences", differences),
            is_valid=_optional_function("is_valid", is_valid),
            incremental=_incremental_functions(incremental),
        )
        _check_shapes(self)

    @classmethod
    def from_energy(cls, energy: Callable[[Array], Array], domain: Domain, **functions: Any) -> "Target":
        """Target `π ∝ exp(−energy)`; further arguments as for `Target`, in terms of `U = −energy`."""
        return cls(Partial(_negative, _pytree_function("energy", energy)), domain, **functions)

    # ---- evaluation --------------------------------------------------------------------------

    def log_density(self, position: Array) -> Array:
        """`U(position)`, `−inf` where the position is not valid."""
        value = jnp.asarray(self._functions.log_density(position), jnp.result_type(float))
        return self._mask(position, value)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """`U` and its gradient together. Where the position is not valid only `U` is `−inf`."""
        single = self._functions.value_and_grad or Partial(
            jax.value_and_grad(_apply, argnums=1), self._functions.log_density
        )
        batched = self._functions.batched_value_and_grad
        evaluate = single if batched is None else Partial(call_batched, single, batched)
        value, gradient = evaluate(position)
        dtype = jnp.result_type(float)  # whatever precision the user's function answers in
        return self._mask(position, jnp.asarray(value, dtype)), jnp.asarray(gradient, dtype)

    def differences(self, position: Array) -> Array:
        """Exact table `U(site i set to level k) − U(position)`, site × level.

        Uses the function given to the target, or evaluates the log-density of every neighbour. Levels
        that a ragged site does not have are `−inf`.
        """
        if self._functions.differences is None:
            table = self._over_neighbours(self.log_density, position) - self.log_density(position)
        else:
            table = jnp.asarray(self._functions.differences(position), jnp.result_type(float))
            if self.has_constraint:
                is_valid = self._over_neighbours(self.is_valid, position)
                table = jnp.where(is_valid, table, -jnp.inf)
        return jnp.where(self.domain.level_mask, table, -jnp.inf)

    def move_differences(self, kind: str, position: Array) -> Array:
        """Exact `U(after) − U(position)` of all `"swap"`, `"two_opt"` or `"insert"` moves of a permutation.

        A subclass on a `Permutation` domain may offer this table over (first, last) place; entries that are
        no move may hold anything. Ask `has_move_differences` first.
        """
        raise TargetError(
            f"`{type(self).__name__}` makes no tables of {kind!r} moves. Define `move_differences(kind, "
            "position)` in a subclass of `Target`, or evaluate `log_density` after every move."
        )

    def is_valid(self, position: Array) -> Array:
        """Whether the position satisfies the constraint; always true without one."""
        is_valid = self._functions.is_valid
        return jnp.asarray(True) if is_valid is None else is_valid(position)

    def _over_neighbours(self, function: Callable[[Array], Array], position: Array) -> Array:
        num_sites, num_levels = self.domain.num_sites, self.domain.max_levels
        sites, levels = jnp.asarray(np.indices((num_sites, num_levels)).reshape(2, -1))
        neighbours = jax.vmap(self.domain.replace_sites, (None, 0, 0))(position, sites, levels)
        return jax.vmap(function)(neighbours).reshape(num_sites, num_levels)

    def _mask(self, position: Array, value: Array) -> Array:
        if not self.has_constraint:
            return value
        return jnp.where(self.is_valid(position), value, -jnp.inf)

    # ---- what is on offer ----------------------------------------------------------------------

    @property
    def has_differences(self) -> bool:
        """Whether the target brought its own table of exact differences."""
        return self._functions.differences is not None

    @property
    def has_constraint(self) -> bool:
        """Whether some positions of the domain are not valid."""
        return self._functions.is_valid is not None

    @property
    def has_move_differences(self) -> bool:
        """Whether the target, on permutations, makes its own tables of exact differences of moves."""
        return type(self).move_differences is not Target.move_differences

    @property
    def incremental(self) -> Incremental | None:
        """The incremental form, if the target has one."""
        return self._functions.incremental

    # ---- pytree: functions are children (their arrays are leaves), the domain is structure -------

    def tree_flatten(self) -> tuple[tuple[_Functions], Domain]:
        """Split into traced children and static structure, for JAX."""
        return (self._functions,), self.domain

    @classmethod
    def tree_unflatten(cls, domain: Domain, children: tuple[_Functions]) -> Self:
        """Rebuild from traced children, for JAX; nothing is checked again."""
        target = object.__new__(cls)
        target.domain, (target._functions,) = domain, children
        return target

    def __repr__(self) -> str:
        offers = [name for name, function in self._functions._asdict().items() if function is not None]
        return f"Target({self.domain!r}, {', '.join(offers)})"


def _negative(energy: Callable[[Array], Array], position: Array) -> Array:
    return -energy(position)


def _apply(function: Callable[[Array], Array], position: Array) -> Array:
    return function(position)


def _pytree_function(name: str, function: Any) -> Any:
    if not callable(function):
        raise TargetError(f"`{name}` must be a function of one position; got {type(function).__name__}.")
    return as_pytree(function)


def _optional_function(name: str, function: Any) -> Any:
    return None if function is None else _pytree_function(name, function)


def _incremental_functions(incremental: Incremental | None) -> Incremental | None:
    if incremental is None:
        return None
    if not isinstance(incremental, Incremental):
        raise TargetError(
            "`incremental` must be a `steppe.Incremental(init, differences, update)`; got "
            f"{type(incremental).__name__}."
        )
    parts = incremental._asdict().items()
    return Incremental(**{k: _pytree_function(f"incremental.{k}", f) for k, f in parts})


def _check_shapes(target: Target) -> None:
    """Trace every function once, without running it, and compare what comes out with the domain."""
    functions, domain = target._functions, target.domain
    position = jax.ShapeDtypeStruct(domain.shape, jnp.result_type(float))
    value = _traced("log_density", functions.log_density, position)
    _expect("log_density", value, (), jnp.floating, "one real number (a scalar)")
    if functions.value_and_grad is not None:
        value, gradient = _pair("value_and_grad", functions.value_and_grad, position)
        _expect("value_and_grad", value, (), jnp.floating, "a scalar value")
        _expect("value_and_grad", gradient, domain.shape, jnp.floating, "a gradient")
    if functions.batched_value_and_grad is not None:
        stack = jax.ShapeDtypeStruct((3, *domain.shape), jnp.result_type(float))
        value, gradient = _pair("batched_value_and_grad", functions.batched_value_and_grad, stack)
        _expect("batched_value_and_grad", value, (3,), jnp.floating, "values of 3 positions")
        _expect("batched_value_and_grad", gradient, stack.shape, jnp.floating, "3 gradients")
    if functions.differences is not None:
        table = _traced("differences", functions.differences, position)
        shape = (domain.num_sites, domain.max_levels)
        _expect("differences", table, shape, jnp.floating, "a table of sites × levels")
    if functions.incremental is not None:
        _check_incremental(functions.incremental, domain, position)
    if functions.is_valid is not None:
        valid = _traced("is_valid", functions.is_valid, position)
        _expect("is_valid", valid, (), jnp.bool_, "one boolean")


def _check_incremental(incremental: Incremental, domain: Domain, position: jax.ShapeDtypeStruct) -> None:
    cache = _traced("incremental.init", incremental.init, position)
    sites, site = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((1,), ()))
    table = _traced("incremental.differences", incremental.differences, cache, position, sites)
    wanted = (1, domain.max_levels)
    _expect("incremental.differences", table, wanted, jnp.floating, "a table of one site × levels")
    updated = _traced("incremental.update", incremental.update, cache, position, site, site)
    if jax.tree.map(_kind, updated) != jax.tree.map(_kind, cache):
        raise TargetError(
            "`incremental.update` must return a cache like the one `incremental.init` makes, "
            f"{jax.tree.map(_kind, cache)}; got {jax.tree.map(_kind, updated)}."
        )


def _kind(leaf: Any) -> tuple[tuple[int, ...], str]:
    return leaf.shape, str(leaf.dtype)


def _traced(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise TargetError(
            f"`{name}` failed on {_described(arguments)}: {type(error).__name__}: {reason}. It must be a JAX "
            "function of one such position."
        ) from error


def _described(arguments: tuple[Any, ...]) -> str:
    leaves = jax.tree.leaves(arguments)
    return " and ".join(f"an array of shape {leaf.shape} and type {leaf.dtype}" for leaf in leaves)


def _pair(name: str, function: Callable[..., Any], position: jax.ShapeDtypeStruct) -> Any:
    result = _traced(name, function, position)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TargetError(f"`{name}` must return a pair (value, gradient); got {_describe(result)}.")
    return result


def _expect(name: str, result: Any, shape: tuple[int, ...], kind: Any, what: str) -> None:
    fits = hasattr(result, "shape") and result.shape == shape and jnp.issubdtype(result.dtype, kind)
    if not fits:
        raise TargetError(
            f"`{name}` must return {what} of shape {shape} and a {kind.__name__} type; got "
            f"{_describe(result)}. {_scope(name)}"
        )


def _scope(name: str) -> str:
    if name.startswith("batched"):
        return "Write it for a stack of positions, one per chain."
    return "Write it for ONE position; chains are mapped for you."


def _describe(result: Any) -> str:
    if hasattr(result, "shape"):
        return f"an array of shape {result.shape} and type {result.dtype}"
    return f"a {type(result).__name__}"
