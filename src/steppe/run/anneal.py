"""`anneal`: run chains while hyper-parameters of the recipe move along a schedule, and keep the best states.

This is optimisation with samplers. While numbers move, no distribution is left invariant, and the result says
nothing about probabilities.
"""

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.compiling import jit_by_work
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.start import check_start, flatten_start, repair_starts
from steppe.kernel.types import SamplerState, StepInfo
from steppe.presented import Presented
from steppe.pytree import as_pytree
from steppe.run.adaptation.follow import FollowAcceptance
from steppe.run.engine import start_keys
from steppe.run.progress import count_bar
from steppe.run.schedule import Schedule, check_schedule
from steppe.run.simulate import Count, Simulation, simulate
from steppe.target import Target
from steppe.validation import count, random_key

if TYPE_CHECKING:
    from steppe.results import Results

MAX_KEPT = 200


@dataclasses.dataclass(frozen=True)
class Annealed(Presented):
    """What an annealed run found; the first axis counts chains.

    Attributes
    ----------
    best_position, best_log_density
        The best state each chain has met, replicas of an ensemble included.
    position, center, log_density
        Where each chain ended; replicas of an ensemble are on the second axis.
    history
        Figures along the way, each of shape (chains, rows): `progress`, `log_density` (of the best replica),
        `best_log_density`, `acceptance_rate`, `num_flips`, and every scheduled or adapted number.
    """

    best_position: Array
    best_log_density: Array
    position: Array
    center: Array | None
    log_density: Array
    history: dict[str, np.ndarray]

    def present(self) -> "Results":
        """Return what every chain found as results."""
        from steppe.report.present_annealed import present_annealed

        return present_annealed(self)


class _Best(NamedTuple):
    """What a chain has met so far, and what its last step did."""

    position: Array
    log_density: Array
    current: Array
    acceptance_rate: Array
    num_flips: Array


@checked(RunError)
def anneal(
    target: Target,
    recipe: Recipe,
    schedule: Schedule,
    *,
    key: Array,
    num_steps: int,
    num_chains: int = 4,
    initial: ArrayLike | None = None,
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
        `steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 20.0))`. It may move
        any number of the
        recipe; none of them recompiles anything.
    key
        Random key; the same key, chains and steps give the same result.
    num_steps
        Steps per chain, rounded up to whole rows of the history.
    num_chains
        Number of independent chains.
    initial
        Starting positions, one per chain; by default random ones where the log-density is finite.
    adapt
        Let the step size follow an acceptance rate of 0.574 all the way, unless the schedule sets it or the
        recipe is unadjusted.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Notes
    -----
    Stationary distribution: none. Numbers that move leave nothing invariant; use `steppe.sample` for draws.
    """
    moved = check_schedule(recipe, schedule)
    num_chains, num_steps = (
        count("anneal(num_chains=...)", num_chains),
        count("anneal(num_steps=...)", num_steps),
    )
    key = random_key("anneal", key)
    sampler = recipe.build(target, audit=False)
    is_followed = (
        adapt and recipe.is_adjusted and "step_size" in sampler.parameters and "step_size" not in moved
    )
    follow = FollowAcceptance(target.domain.squared_unit) if is_followed else None
    num_rows = min(num_steps, MAX_KEPT)
    stride = -(-num_steps // num_rows)
    chains = _start(sampler, key, num_chains, initial, follow=follow)
    rows = []
    advance = _advance(num_steps * num_chains * target.domain.num_sites)
    scheduled = as_pytree(schedule)
    with count_bar("annealing", num_rows, progress) as report:
        for row in range(num_rows):
            first, last = row * stride, num_rows * stride
            chains, statistics = advance(sampler, scheduled, key, chains, first, stride, last, follow=follow)
            rows.append(statistics)
            report(row + 1)
    history = {name: np.stack([np.asarray(row[name]) for row in rows], axis=1) for name in rows[0]}
    end, best = chains.state, chains.reduced
    return Annealed(best.position, best.log_density, end.position, end.center, end.log_density, history)


def _start(
    sampler: Sampler,
    key: Array,
    num_chains: int,
    initial: ArrayLike | None,
    *,
    follow: FollowAcceptance | None,
) -> Simulation:
    keys, target = start_keys(key, jnp.arange(num_chains)), sampler.target
    if initial is not None:
        initial = flatten_start(target.domain, initial)
        check_start(target, initial, batched=True, num_chains=num_chains)
        return _evaluate(sampler, jnp.asarray(initial, jnp.result_type(float)), keys, follow=follow)
    drawn = jax.vmap(target.domain.draw)(keys)
    chains = _evaluate(sampler, drawn, keys, follow=follow)
    values, names = chains.state.log_density, np.arange(num_chains)
    repaired = repair_starts(target, keys, drawn, values, names, num_chains)
    return chains if repaired is drawn else _evaluate(sampler, repaired, keys, follow=follow)


@partial(jax.jit, static_argnames="follow")
def _evaluate(
    sampler: Sampler, positions: Array, keys: Array, *, follow: FollowAcceptance | None
) -> Simulation:
    def one(position: Array, key: Array) -> Simulation:
        state = sampler.init(position, key)
        zero = jnp.zeros((), state.log_density.dtype)
        best = _Best(*_best_replica(state), zero, zero, jnp.zeros((), int))
        return Simulation(state, None if follow is None else follow.init(sampler), best)

    return jax.vmap(one)(positions, keys)


@partial(jit_by_work, static_argnames="follow", donate_argnames="chains")
def _advance(
    sampler: Sampler,
    schedule: Schedule,
    key: Array,
    chains: Simulation,
    first: Count,
    stride: Count,
    num_steps: Count,
    *,
    follow: FollowAcceptance | None,
) -> tuple[Simulation, dict[str, Array]]:
    """Advance every chain by `stride` steps, remembering the best state."""
    chains = simulate(
        sampler,
        key,
        chains.state,
        stride,
        first_step=first,
        schedule=lambda step: schedule(_progress(step, num_steps)),
        adapt=follow,
        adapted=chains.adapted,
        num_warmup=num_steps,
        reduce=_keep_best,
        reduced=chains.reduced,
    )
    return chains, _describe(schedule, chains, _progress(first + stride - 1, num_steps))


def _describe(schedule: Schedule, chains: Simulation, progress: Array) -> dict[str, Array]:
    """Statistics of every chain after a step, and the hyper-parameters it moved with."""
    best, moving = chains.reduced, dict(schedule(progress))
    if chains.adapted is not None:
        moving["step_size"] = jnp.exp(chains.adapted)
    every_chain = partial(jnp.broadcast_to, shape=best.current.shape)
    return {
        "progress": every_chain(progress),
        "log_density": best.current,
        "best_log_density": best.log_density,
        "acceptance_rate": best.acceptance_rate,
        "num_flips": best.num_flips,
        **{name: every_chain(jnp.asarray(value, best.current.dtype)) for name, value in moving.items()},
    }


def _progress(step: Count, num_steps: Count) -> Array:
    return step / jnp.maximum(num_steps - 1, 1)


def _keep_best(best: _Best, state: SamplerState, info: StepInfo, step: Array) -> _Best:
    position, value = _best_replica(state)
    return _Best(
        position=jnp.where(value > best.log_density, position, best.position),
        log_density=jnp.maximum(value, best.log_density),
        current=value,
        acceptance_rate=info.acceptance_rate,
        num_flips=info.num_flips,
    )


def _best_replica(state: SamplerState) -> tuple[Array, Array]:
    """Position and value of a state, of the best replica if there are several."""
    if not state.log_density.ndim:
        return state.position, state.log_density
    return state.position[jnp.argmax(state.log_density)], jnp.max(state.log_density)
