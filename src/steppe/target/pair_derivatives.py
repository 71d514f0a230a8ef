"""Second derivatives of a log-density whose sites interact in pairs only: the same at all positions.

The gradient of such a multilinear log-density is the table of differences of single sites, and after a change
of one site it is the old gradient and a row of the second derivatives. So Gibbs sampling needs no cache
written by hand. Whether second derivatives read the position is seen in the program that computes them, not
measured.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from steppe.compiling import evaluate_at_once
from steppe.mapped import max_mapped
from steppe.pytree import is_concrete
from steppe.target.log_density import Incremental, Target

# Coordinates of a position whose second derivatives are kept: 16 MB of them in float32.
MAX_COORDINATES = 2048
# Steps after which the gradient is computed anew, for what rounding did to it.
MAX_AGE = 64
# Parameters of primitives that call another program with the same arguments.
CALLED = ("jaxpr", "call_jaxpr")
CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call")


class Slopes(NamedTuple):
    """What is remembered of a position: the gradient, and how many steps ago it was computed."""

    gradient: Array
    age: Array


def find_pair_derivatives(target: Target) -> Array | None:
    """Second derivatives of a multilinear target, (coordinate, coordinate), if no position changes them.

    `None` where the target is not declared multilinear, has a constraint or a form of its own, is too large
    or traced, or where its second derivatives read the position.
    """
    if not target.domain.is_site_product or target.domain.num_reals:
        return None
    number = math.prod(target.domain.shape)
    is_plain = target.is_multilinear and target.incremental is None and not target.has_constraint
    if not is_plain or number > MAX_COORDINATES or not is_concrete(target):
        return None
    with evaluate_at_once():  # a recipe may be built inside a traced function
        return None if _reads_position(target) else _differentiate_twice(target)


class FollowedPairs(Target):
    """A target whose differences follow single changes by its second derivatives.

    Attributes
    ----------
    base
        The target.
    derivatives
        Its second derivatives, (coordinate, coordinate).
    """

    base: Target
    derivatives: Array

    def log_density(self, position: Array) -> Array:
        """Log-density of the target."""
        return self.base.log_density(position)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """Value and gradient of the target."""
        return self.base.value_and_grad(position)

    @property
    def is_multilinear(self) -> bool:
        """It is."""
        return True

    @property
    def incremental(self) -> Incremental[Slopes]:
        """Differences from a gradient that is kept in step."""
        return follow_pairs(self.base, self.derivatives)

    def _check(self) -> None:
        """The base has been checked."""


def follow_pairs(target: Target, derivatives: Array) -> Incremental[Slopes]:
    """The incremental form of a target with these second derivatives."""
    domain, shape = target.domain, target.domain.shape
    rows = derivatives.reshape(domain.num_sites, -1, derivatives.shape[-1])

    def start(position: Array) -> Slopes:
        return Slopes(target.value_and_grad(position)[1], jnp.zeros((), jnp.int32))

    def tabulate(cache: Slopes, position: Array, sites: Array) -> Array:
        return domain.slopes(position, cache.gradient)[sites]

    def update(cache: Slopes, position: Array, site: Array, level: Array) -> Slopes:
        jump = domain.replace_sites(position, site, level)[site] - position[site]
        change = (jump.reshape(-1) @ rows[site]).reshape(shape)
        return cache._replace(gradient=cache.gradient + change)

    def renew(cache: Slopes, position: Array) -> Slopes:
        return jax.lax.cond(
            max_mapped(cache.age) >= MAX_AGE - 1,
            lambda: start(position),
            lambda: cache._replace(age=cache.age + 1),
        )

    return Incremental(start, tabulate, update, renew)


@jax.jit
def _differentiate_twice(target: Target) -> Array:
    position = jnp.zeros(target.domain.shape)
    number = position.size
    gradient = jax.grad(target.log_density)
    columns = jax.lax.map(
        lambda direction: jax.jvp(gradient, (position,), (direction.reshape(position.shape),))[1].reshape(-1),
        jnp.eye(number),
        batch_size=64,
    )
    return 0.5 * (columns + columns.T)


def _reads_position(target: Target) -> bool:
    """Whether the product of second derivatives and a direction depends on the position."""
    position = jnp.zeros(target.domain.shape)

    def differentiate(position: Array, direction: Array) -> Array:
        return jax.jvp(jax.grad(target.log_density), (position,), (direction,))[1]

    program = jax.make_jaxpr(differentiate)(position, position).jaxpr
    return any(_find_dependent(program, (True, False)))


def _find_dependent(program: Jaxpr, is_dependent: Iterable[bool]) -> list[bool]:
    """Which results of a program depend on some of its arguments; on all of them, if it cannot be told."""
    dependent = {variable for variable, depends in zip(program.invars, is_dependent, strict=True) if depends}

    def depends(value: Var | Literal) -> bool:
        return isinstance(value, Var) and value in dependent

    for equation in program.eqns:
        given = [depends(value) for value in equation.invars]
        called = next((equation.params[name] for name in CALLED if name in equation.params), None)
        if equation.primitive.name in CALLS and called is not None and any(given):
            inner = called.jaxpr if isinstance(called, ClosedJaxpr) else called
            found = _find_dependent(inner, given)
        else:
            found = [any(given)] * len(equation.outvars)
        dependent |= {variable for variable, is_so in zip(equation.outvars, found, strict=True) if is_so}
    return [depends(value) for value in program.outvars]
