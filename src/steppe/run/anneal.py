"""`anneal`: run chains while numbers of the recipe move along a schedule, and keep the best states.

This is optimisation with samplers. While numbers move, no law is left invariant, and the result says
nothing about probabilities.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.kernel.numbers import with_numbers
from steppe.kernel.sampler import Sampler
from steppe.kernel.start import check_start
from steppe.kernel.state import State
from steppe.pytree import as_pytree
from steppe.run.adapt import RANGE, TARGET_ACCEPTANCE
from steppe.run.engine import start_keys
from steppe.run.progress import count_bar
from steppe.run.schedule import Schedule, check_schedule
from steppe.target import Target
from steppe.validation import count, random_key

# Change of log(step size) per step and unit of (observed − wanted) acceptance. The wanted step size moves
# with the schedule, so the gain does not fall; at 0.05 it follows within some fifty steps.
GAIN = 0.05
MAX_KEPT = 200
# Steps × chains × sites below which compiling takes longer than running: such runs are compiled in a third of
# the time, to a program that is up to 30 % slower.
SHORT_WORK = 1e8


@dataclasses.dataclass(frozen=True)
class Annealed:
    """What an annealed run found; the first axis counts chains.

    Attributes
    ----------
    best_position, best_log_density
        The best state each chain has met, copies of an ensemble included.
    position, center, log_density
        Where each chain ended; copies of an ensemble are on the second axis.
    history
        Figures along the way, each of shape (chains, rows): `progress`, `log_density` (of the best copy),
        `best_log_density`, `acceptance_rate`, `num_flips`, and every scheduled or adapted number.
    """

    best_position: Array
    best_log_density: Array
    position: Array
    center: Array | None
    log_density: Array
    history: dict[str, np.ndarray]


class _Walk(NamedTuple):
    """One chain between rows."""

    state: State
    log_step: Array
    best_position: Array
    best_log_density: Array


def anneal(
    target: Target,
    recipe: Recipe,
    schedule: Schedule,
    *,
    key: Array,
    num_steps: int,
    num_chains: int = 4,
    initial: Any = None,
    adapt: bool = True,
    progress: bool | None = None,
) -> Annealed:
    """Run chains along a schedule and return the best states met.

    Parameters
    ----------
    target
        What to optimise.
    recipe
        How to move.
    schedule
        From progress in [0, 1] to the numbers that move, such as
        `steppe.schedule(inverse_temperature=steppe.geometric(0.5, 20.0))`. It may move any number of the
        recipe; none of them recompiles anything.
    key
        Random key; the same key, chains and steps give the same result.
    num_steps
        Steps per chain, rounded up to whole rows of the history.
    num_chains
        Number of independent chains.
    initial
        Starting positions, one per chain; uniform random ones by default.
    adapt
        Let the step size follow an acceptance rate of 0.574 all the way, unless the schedule sets it or the
        recipe is unadjusted.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Notes
    -----
    Law: none. Numbers that move leave nothing invariant; use `steppe.sample` for draws.
    """
    if not isinstance(recipe, Recipe):
        raise RunError(
            f"`anneal(target, recipe, ...)` needs a recipe such as `steppe.dmala()`; got {recipe!r}."
        )
    moved = check_schedule(recipe, schedule)
    num_chains, num_steps = (
        count("anneal(num_chains=...)", num_chains),
        count("anneal(num_steps=...)", num_steps),
    )
    key = random_key("anneal", key)
    sampler = recipe.build(target, audit=False)
    adapts = adapt and recipe.is_exact and "step_size" in sampler.numbers and "step_size" not in moved
    num_rows = min(num_steps, MAX_KEPT)
    stride = -(-num_steps // num_rows)
    walks = _start(sampler, key, num_chains, initial)
    rows = []
    is_short = num_steps * num_chains * target.domain.num_sites < SHORT_WORK
    compiled = _advance_soon if is_short else _advance_fast
    advance = partial(compiled, sampler, as_pytree(schedule), key, adapts=adapts)
    with count_bar("annealing", num_rows, progress) as report:
        for row in range(num_rows):
            walks, figures = advance(walks, row * stride, stride, num_rows * stride)
            rows.append(figures)
            report(row + 1)
    history = {name: np.stack([np.asarray(row[name]) for row in rows], axis=1) for name in rows[0]}
    end = walks.state
    return Annealed(
        walks.best_position, walks.best_log_density, end.position, end.center, end.log_density, history
    )


def _start(sampler: Sampler, key: Array, num_chains: int, initial: Any) -> _Walk:
    keys = start_keys(key, jnp.arange(num_chains))
    if initial is None:
        initial = jax.vmap(sampler.target.domain.draw)(keys)
    else:
        check_start(sampler.target, initial, batched=True, num_chains=num_chains)
    return _evaluated(sampler, jnp.asarray(initial, jnp.result_type(float)), keys)


@jax.jit
def _evaluated(sampler: Sampler, positions: Array, keys: Array) -> _Walk:
    def one(position: Array, key: Array) -> _Walk:
        state = sampler.init(position, key)
        step_size = jnp.asarray(sampler.numbers.get("step_size", 1.0), state.log_density.dtype)
        return _Walk(state, jnp.log(step_size), *_best(state))

    return jax.vmap(one)(positions, keys)


def _advance(
    sampler: Sampler,
    schedule: Schedule,
    key: Array,
    walks: _Walk,
    first: Array,
    stride: Array,
    num_steps: Array,
    *,
    adapts: bool,
) -> tuple[_Walk, dict[str, Array]]:
    """Advance every chain by `stride` steps, of which the figures of the last are returned."""
    chains = jnp.arange(walks.log_step.shape[0])
    keys = jax.vmap(partial(jax.random.fold_in, key))(chains)

    def step(offset: Array, carry: Any) -> Any:
        walks, _ = carry
        index = first + offset
        progress = index / jnp.maximum(num_steps - 1, 1)
        one = partial(_step, sampler, schedule(progress), progress, adapts)
        return jax.vmap(one)(jax.vmap(jax.random.fold_in, (0, None))(keys, index), walks)

    shapes = jax.eval_shape(lambda walks: step(jnp.zeros((), jnp.int32), (walks, None))[1], walks)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.fori_loop(0, stride, step, (walks, nothing))


_advance_fast, _advance_soon = (
    compiled(_advance, static_argnames="adapts", donate_argnames="walks") for compiled in (jax.jit, quick_jit)
)


def _step(
    sampler: Sampler, numbers: Any, progress: Array, adapts: bool, key: Array, walk: _Walk
) -> tuple[_Walk, dict[str, Array]]:
    own = {"step_size": jnp.exp(walk.log_step)} if adapts else {}
    state, info = with_numbers(sampler, {**numbers, **own}).step(key, walk.state)
    log_step = walk.log_step + GAIN * (info.acceptance_rate - TARGET_ACCEPTANCE)
    log_step = jnp.clip(log_step, *(np.log(bound * sampler.target.domain.squared_unit) for bound in RANGE))
    position, value = _best(state)
    is_better = value > walk.best_log_density
    best = jnp.where(is_better, position, walk.best_position)
    best_value = jnp.maximum(value, walk.best_log_density)
    figures = {
        "progress": progress,
        "log_density": value,
        "best_log_density": best_value,
        "acceptance_rate": info.acceptance_rate,
        "num_flips": info.num_flips,
        **{name: jnp.asarray(number, value.dtype) for name, number in {**numbers, **own}.items()},
    }
    return _Walk(state, log_step, best, best_value), figures


def _best(state: State) -> tuple[Array, Array]:
    """Position and value of a state, of the best copy if it is an ensemble."""
    if not state.log_density.ndim:
        return state.position, state.log_density
    return state.position[jnp.argmax(state.log_density)], jnp.max(state.log_density)
