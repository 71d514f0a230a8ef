"""Search for a start: random draws, then changes after which fewer constraints are broken.

A log-density of −inf says only that a state is impossible. The program that computed it says more: which
comparisons of a constraint fail and by how much, and how many numbers on the way are not finite. Their sum is
what the search lowers, one change after another.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core
from jax.typing import ArrayLike

from steppe.compiling import quick_jit
from steppe.domain.base import Domain
from steppe.pytree import is_concrete
from steppe.target.log_density import Target

MAX_DRAWS = 100
NUM_CANDIDATES = 16
MIN_CHANGES, CHANGES_PER_SITE = 200, 4
WRAPPERS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2"}
SHAPES_ONLY = {"broadcast_in_dim", "reshape", "squeeze", "transpose", "copy", "rev", "slice", "expand_dims"}


class Traced(NamedTuple):
    """A number of a program.

    Attributes
    ----------
    value
        The array.
    from_true, from_false
        Of a boolean: how far it is from being true and from being false.
    is_excluded
        Whether it is the constant −inf.
    """

    value: Array
    from_true: Array | None = None
    from_false: Array | None = None
    is_excluded: bool = False


class Search(NamedTuple):
    """Where a search for a start is, what it has met there and how many evaluations it has made."""

    position: Array
    log_density: Array
    num_evaluations: Array


def search_starts(
    target: Target, keys: Array, positions: Array, values: Array, max_evaluations: ArrayLike
) -> Search:
    """Replace positions whose log-density is not finite by such where it is, or by as near as it came.

    Parameters
    ----------
    target
        What will be sampled.
    keys
        One for each position: what replaces a position does not depend on the others.
    positions, values
        Where to begin, and the log-density there.
    max_evaluations
        How many evaluations of the log-density a search may make.
    """
    at = Search(positions, values, jnp.zeros(len(positions), int))
    is_known = is_concrete((target, at))
    for stage, compiled in STAGES:  # two programs: the first is mostly enough
        if is_known and np.isfinite(at.log_density).all():
            break
        at = (compiled if is_known else stage)(target, keys, at, max_evaluations)
    return at


def count_most_evaluations(target: Target) -> int:
    """Evaluations after which a search for a start is given up, unless told."""
    return MAX_DRAWS + NUM_CANDIDATES * (MIN_CHANGES + CHANGES_PER_SITE * target.domain.num_sites)


@partial(jax.vmap, in_axes=(None, 0, 0, None))
def _draw_until_finite(target: Target, key: Array, start: Search, max_evaluations: ArrayLike) -> Search:
    def draw(at: Search) -> Search:
        position = target.domain.draw(jax.random.fold_in(key, at.num_evaluations))
        return Search(position, target.log_density(position), at.num_evaluations + 1)

    def is_wanted(at: Search) -> Array:
        return ~jnp.isfinite(at.log_density) & (at.num_evaluations < jnp.minimum(MAX_DRAWS, max_evaluations))

    return jax.lax.while_loop(is_wanted, draw, start)


@partial(jax.vmap, in_axes=(None, 0, 0, None))
def _change_until_finite(target: Target, key: Array, start: Search, max_evaluations: ArrayLike) -> Search:
    """Of a few random changes take the best, unless it is worse than no change."""

    def change(carry: tuple[Search, Array]) -> tuple[Search, Array]:
        at, defects = carry
        words = jax.random.bits(jax.random.fold_in(key, at.num_evaluations), (NUM_CANDIDATES, 2))
        tried = jax.vmap(partial(_change_one, target.domain, at.position))(*words.T)
        values, scores = jax.vmap(partial(measure_defects, target))(tried)
        scores = jnp.where(jnp.isfinite(values), -1.0, scores)
        best = jnp.argmin(scores)
        is_taken = scores[best] <= defects
        moved = Search(
            jnp.where(is_taken, tried[best], at.position),
            jnp.where(is_taken, values[best], at.log_density),
            at.num_evaluations + NUM_CANDIDATES,
        )
        return moved, jnp.minimum(scores[best], defects)

    def is_wanted(carry: tuple[Search, Array]) -> Array:
        at, _ = carry
        return ~jnp.isfinite(at.log_density) & (at.num_evaluations + NUM_CANDIDATES <= max_evaluations)

    return jax.lax.while_loop(is_wanted, change, (start, jnp.full((), jnp.inf)))[0]


STAGES = tuple((stage, quick_jit(stage)) for stage in (_draw_until_finite, _change_until_finite))


def _change_one(domain: Domain, position: Array, first: Array, second: Array) -> Array:
    """Another level at one site; of a permutation, two items swapped."""
    site = (first % domain.num_sites).astype(jnp.int32)
    if not domain.is_site_product:
        other = (second % domain.num_sites).astype(jnp.int32)
        return position.at[site].set(position[other]).at[other].set(position[site])
    size = jnp.asarray(np.asarray(domain.num_levels, np.int32))[site]
    step = 1 + (second >> 8).astype(jnp.int32) % jnp.maximum(size - 1, 1)
    level = (domain.levels_at(position, site[None]).astype(jnp.int32) + step) % size
    return domain.replace_sites(position, site[None], level)


# ---- what the program of a log-density says about a state that it excludes ---------------------------------


def measure_defects(target: Target, position: Array) -> tuple[Array, Array]:
    """Log-density of a state, and how far it is from being finite."""
    leaves, structure = jax.tree.flatten((target, position))

    def evaluate(*leaves: Array) -> Array:
        own, state = jax.tree.unflatten(structure, leaves)
        return own.log_density(state)

    closed, tally = jax.make_jaxpr(evaluate)(*leaves), _Tally()
    (value,) = tally.run(closed.jaxpr, [*map(Traced, closed.consts)], [*map(Traced, leaves)])
    return value.value, sum(tally.defects, jnp.zeros(()))


class _Tally:
    """Runs a program and adds up its defects."""

    def __init__(self) -> None:
        self.defects: list[Array] = []

    def run(self, jaxpr: core.Jaxpr, consts: list[Traced], arguments: list[Traced]) -> list[Traced]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments], strict=True))

        def read(atom: core.Var | core.Literal) -> Traced:
            match atom:
                case core.Literal():
                    value = jnp.asarray(atom.val, cast("jax.ShapeDtypeStruct", atom.aval).dtype)
                    return Traced(value, is_excluded=bool(np.all(np.asarray(atom.val) == -np.inf)))
                case _:
                    return known[atom]

        for equation in jaxpr.eqns:
            results = self._apply(equation, [read(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _apply(self, equation: core.JaxprEqn, inputs: list[Traced]) -> list[Traced]:
        name, parameters = equation.primitive.name, equation.params
        inner = parameters.get("jaxpr", parameters.get("call_jaxpr"))
        if name in WRAPPERS and inner is not None:
            match inner:
                case core.ClosedJaxpr():
                    return self.run(inner.jaxpr, [*map(Traced, inner.consts)], inputs)
                case _:
                    return self.run(inner, [], inputs)
        match equation.primitive.get_bind_params(parameters):
            case (functions, bound):  # as older JAX gives them
                pass
            case bound:
                functions = ()

        def bind(*values: Array) -> list[Array]:
            results = equation.primitive.bind(*functions, *values, **bound)
            return results if equation.primitive.multiple_results else [results]

        values = bind(*(given.value for given in inputs))
        if name == "select_n" and len(inputs) == 3:
            self._record_exclusion(*inputs)
        self.defects += [jnp.sum(~jnp.isfinite(v), dtype=float) for v in values if v.dtype.kind == "f"]
        if values[0].dtype != bool:
            moves = name in SHAPES_ONLY or name == "convert_element_type"
            return [Traced(v, is_excluded=moves and inputs[0].is_excluded) for v in values]
        axes = parameters.get("axes", ())
        return [_measure_boolean(name, bind, inputs, axes, v) for v in values]

    def _record_exclusion(self, choice: Traced, if_false: Traced, if_true: Traced) -> None:
        """`where(choice, value, -inf)` asks for `choice`."""
        if choice.value.dtype == bool and if_false.is_excluded != if_true.is_excluded:
            distances = _distances(choice)[0 if if_false.is_excluded else 1]
            self.defects.append(jnp.sum(jnp.nan_to_num(distances, nan=1e6, posinf=1e6)))


def _distances(given: Traced) -> tuple[Array, Array]:
    if given.from_true is not None and given.from_false is not None:
        return given.from_true, given.from_false
    truth = jnp.asarray(given.value, float)
    return 1 - truth, truth


def _measure_boolean(
    name: str,
    bind: Callable[..., list[Array]],
    inputs: list[Traced],
    axes: tuple[int, ...],
    value: Array,
) -> Traced:
    """How far a comparison, or what was made of some, is from being true and from being false."""
    if name in ("eq", "ne", "lt", "le", "gt", "ge"):
        first, second = (jnp.asarray(given.value, float) for given in inputs)
        distance = jnp.abs(first - second)
        missed = jnp.where(value, 0.0, jnp.maximum(distance, 1.0) if name in ("ne", "lt", "gt") else distance)
        spared = jnp.where(value, jnp.maximum(distance, 1.0), 0.0)
        return Traced(value, missed, spared)
    distances = [_distances(given) for given in inputs if given.value.dtype == bool]
    if name == "not":
        return Traced(value, distances[0][1], distances[0][0])
    if name in ("and", "or") and len(distances) == 2:
        (true, false), (other_true, other_false) = distances
        if name == "and":
            return Traced(value, true + other_true, jnp.minimum(false, other_false))
        return Traced(value, jnp.minimum(true, other_true), false + other_false)
    if name in ("reduce_and", "reduce_or"):
        (true, false) = distances[0] if name == "reduce_and" else distances[0][::-1]
        missed, spared = jnp.sum(true, axes), jnp.min(false, axes, initial=jnp.inf)
        return Traced(value, *((missed, spared) if name == "reduce_and" else (spared, missed)))
    if name in SHAPES_ONLY and len(inputs) == 1:
        true, false = distances[0]
        return Traced(value, bind(true)[0], bind(false)[0])
    return Traced(value)
