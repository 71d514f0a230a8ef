"""Rounds of an annealing: chains along a schedule, again and again, until steps or time are used up.

A round is cut into rows; after each the host looks at the clock, at the best state so far and at whether it
is time to save. Nothing of that changes what the chains do, except where a schedule is led by them.
"""

import math
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from steppe.compiling import jit_by_work, quick_jit
from steppe.domain import Domain
from steppe.kernel.sampler import Sampler
from steppe.kernel.start import repair_starts
from steppe.kernel.types import SamplerState, StepInfo
from steppe.pytree import as_pytree
from steppe.run.adaptation.follow import FollowAcceptance
from steppe.run.annealing_state import Best, Done, Request
from steppe.run.engine import draw_positions, start_keys
from steppe.run.recombination import SparsePairs, list_sparse_pairs, recombine
from steppe.run.schedule import Adaptive, Curves, Geometric, Schedule
from steppe.run.simulate import Count, Simulation, simulate
from steppe.run.until import first_limit

MAX_KEPT = 200
MIN_KEPT = 20
# Steps of the first round where only a time is given; every following one is twice as long.
FIRST_STEPS = 64
# Distinct states that are kept as starts of local searches.
MAX_MET = 4096
# Keys of rounds are folded from a number that no chain has.
ROUND_KEYS = 2**32 - 3
VALUE_REACHED = "the value was reached"
# Rows over which the specific heat is averaged.
HEAT_ROWS = 5


def begin(request: Request) -> Done:
    """Start the chains of the first round."""
    chains = _start(request, request.key, request.initial)
    best = chains.reduced
    return Done(chains, np.array(best.position), np.asarray(best.log_density, float))


def carry_on(request: Request, done: Done, after_row: Callable[[Done], bool]) -> None:
    """Go on until something says stop; `after_row` may, by returning true, and keeps `stopped` empty."""
    advance = _choose_program(request)
    _compile(advance, request, done)
    pairs = list_sparse_pairs(request.sampler.target)
    while not done.stopped:
        if not done.num_steps:
            done.num_steps = _choose_steps(request, done)
            if not done.num_steps:
                done.stopped = "the time was used up"
                break
        num_rows = count_rows(done.num_steps, done.round)
        while done.row < num_rows and not done.stopped:
            _advance_row(advance, request, done, num_rows)
            if after_row(done):
                return
        _end_round(request, done, pairs)


def count_rows(num_steps: int, round_: int) -> int:
    """Rows of the history of a round: fewer of later ones."""
    return min(num_steps, max(MAX_KEPT // (1 + round_), MIN_KEPT))


def _choose_steps(request: Request, done: Done) -> int:
    """Steps of the next round, 0 if there is no time for one."""
    if request.num_steps is not None:
        return request.num_steps
    if not done.steps:
        return FIRST_STEPS
    usual = FIRST_STEPS * 2**done.round
    left = _steps_left(request, done)
    # A last round that takes all the time there is finds more than one of half of it and a rest.
    return usual if left > 3 * usual else max(int(left), 0)


def _steps_left(request: Request, done: Done) -> float:
    used = ((request.time_limit, done.seconds), (request.until.cpu_seconds, done.cpu_seconds))
    return first_limit(*(done.steps * (limit - spent) / spent for limit, spent in used if limit is not None))


def _advance_row(advance: Callable[..., PyTree], request: Request, done: Done, num_rows: int) -> None:
    stride = -(-done.num_steps // num_rows)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    done.chains, statistics = advance(
        request.sampler,
        _current_schedule(request, done),
        _round_key(request.key, done.round),
        done.chains,
        done.row * stride,
        stride,
        num_rows * stride,
        np.float32(done.start),
        follow=request.follow,
    )
    row = {name: np.asarray(values, float) for name, values in statistics.items()}
    done.seconds += time.perf_counter() - begun
    done.cpu_seconds += time.process_time() - begun_cpu
    done.row += 1
    done.steps += stride
    _note(request, done, row, stride)
    if isinstance(request.schedule, Adaptive):
        assert request.temperatures is not None
        observed = float(row[request.schedule.statistic].mean())
        if request.schedule.statistic == "num_flips":
            observed /= request.sampler.target.domain.num_sites
        done.beta = request.schedule.lead(done.beta, observed, done.row / num_rows, request.temperatures)


def _note(request: Request, done: Done, row: dict[str, np.ndarray], stride: int) -> None:
    """Keep statistics of a row, and see whether it is time to stop."""
    best = float(row["best_log_density"].max())
    # Of a round that is better than all before; chains of the same round may have met better states before.
    is_better = best > done.best_met
    done.num_idle = 0 if is_better else done.num_idle + stride
    done.best_met = max(done.best_met, best)
    row["best_log_density"] = np.maximum(row["best_log_density"], done.best_log_density)
    row["round"] = np.full(len(row["best_log_density"]), float(done.round))
    done.rows.append(row)
    evaluations = done.steps * request.num_chains * request.sampler.evaluations_per_step
    done.trace.append((evaluations, done.seconds, done.best_met))
    if request.until.is_reached(done.best_met, done.num_idle):
        value = request.until.value
        has_value = value is not None and request.until.is_reached(done.best_met, -1)
        done.stopped = VALUE_REACHED if has_value else "nothing better came for the steps allowed"
    elif _is_over(request, done):
        done.stopped = "the time was used up"


def _is_over(request: Request, done: Done) -> bool:
    has_wall = request.time_limit is not None and done.seconds >= request.time_limit
    cpu_limit = request.until.cpu_seconds
    return has_wall or (cpu_limit is not None and done.cpu_seconds >= cpu_limit)


def _end_round(request: Request, done: Done, pairs: SparsePairs | None) -> None:
    """Keep what the round found, and start the next one if there is to be one."""
    best = done.chains.reduced
    # Evaluated anew: of a million changes that chains add up, float32 loses whole units.
    keys = start_keys(request.key, jnp.arange(request.num_chains))
    evaluated = _evaluate(request.sampler, jnp.asarray(best.position), keys, follow=request.follow)
    values = np.asarray(evaluated.reduced.log_density, float)
    is_better = values > done.best_log_density
    done.best_position[is_better] = np.asarray(best.position)[is_better]
    done.best_log_density = np.maximum(values, done.best_log_density)
    _keep_met(request, done)
    if pairs is not None and done.stopped != VALUE_REACHED:
        _recombine(request, done, pairs)
    if done.stopped:
        return
    if done.round + 1 >= request.max_rounds:
        done.stopped = "all steps were made"
        return
    if request.reheats:
        done.start = _find_heat_peak(done)
    done.round, done.row, done.num_steps, done.beta = done.round + 1, 0, 0, 0.0
    initial = jnp.asarray(done.best_position) if request.reheats else None
    done.chains = _start(request, _round_key(request.key, done.round), initial)


def _recombine(request: Request, done: Done, pairs: SparsePairs) -> None:
    """Put the best parts of all chains together, in the place of the best state."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    order = np.argsort(-np.asarray(done.chains.reduced.log_density), kind="stable")
    best = int(np.argmax(done.best_log_density))
    found = recombine(pairs, done.best_position[best], np.asarray(done.chains.reduced.position)[order])
    if np.array_equal(found, done.best_position[best]):
        value = -math.inf
    else:
        value = float(request.sampler.target.log_density(jnp.asarray(found)))
    done.seconds += time.perf_counter() - begun
    done.cpu_seconds += time.process_time() - begun_cpu
    # What the sums say may be lost in rounding.
    if value <= done.best_log_density[best]:
        return
    done.best_position[best], done.best_log_density[best] = found, value
    done.rows[-1]["best_log_density"][best] = value
    done.best_met, done.num_idle = value, 0
    done.trace[-1] = (done.trace[-1][0], done.seconds, value)
    _add_met(done, request.sampler.target.domain.to_levels(jnp.asarray(found))[None])
    if request.until.is_reached(value, -1):
        done.stopped = VALUE_REACHED


def _keep_met(request: Request, done: Done) -> None:
    best, ends = done.chains.reduced.position, done.chains.state.position
    _add_met(done, _list_levels(best, ends, request.sampler.target.domain))


def _add_met(done: Done, states: Array) -> None:
    for levels in np.asarray(states, np.int32):
        if len(done.met) < MAX_MET:
            done.met.setdefault(levels.tobytes(), levels)


@partial(quick_jit, static_argnames="domain")
def _list_levels(best: Array, ends: Array, domain: Domain) -> Array:
    states = jnp.concatenate([best, ends.reshape(-1, *domain.shape)])
    return domain.to_levels(states).astype(jnp.int32)


def _find_heat_peak(done: Done) -> float:
    """Progress at which the variance of the log-density over chains, times β², was largest in this round."""
    rows = [row for row in done.rows if row["round"][0] == done.round]
    betas = np.asarray([row.get("inverse_temperature", np.ones(1)).mean() for row in rows])
    spread = np.asarray([np.var(row["log_density"]) for row in rows])
    heat = np.convolve(betas**2 * spread, np.ones(HEAT_ROWS) / HEAT_ROWS, "same")
    return float(rows[int(np.argmax(heat))]["progress"][0])


def _current_schedule(request: Request, done: Done) -> Schedule:
    if not isinstance(request.schedule, Adaptive):
        return as_pytree(request.schedule)
    assert request.temperatures is not None
    if not done.beta:
        done.beta = request.temperatures[0]
    return Curves({"inverse_temperature": Geometric(done.beta, done.beta)})


def _round_key(key: Array, round_: int) -> Array:
    return key if not round_ else jax.random.fold_in(jax.random.fold_in(key, ROUND_KEYS), round_)


# ---- programs ----------------------------------------------------------------------------------------------


def _start(request: Request, key: Array, initial: Array | None) -> Simulation:
    sampler, follow, num_chains = request.sampler, request.follow, request.num_chains
    keys, target = start_keys(key, jnp.arange(num_chains)), sampler.target
    if initial is not None:
        return _evaluate(sampler, jnp.asarray(initial, jnp.result_type(float)), keys, follow=follow)
    drawn = draw_positions(keys, target.domain)
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
        best = Best(*_best_replica(state), zero, zero, jnp.zeros((), int))
        return Simulation(state, None if follow is None else follow.init(sampler), best)

    return jax.vmap(one)(positions, keys)


def _choose_program(request: Request) -> Callable[..., PyTree]:
    is_timed = request.num_steps is None or request.max_rounds > 1
    steps = math.inf if is_timed else request.num_steps or 0
    return advance_chains(steps * request.num_chains * request.sampler.target.domain.num_sites)


def _compile(advance: Callable[..., PyTree], request: Request, done: Done) -> None:
    """Make no step, so that compiling takes none of the time."""
    if request.time_limit is None and request.until.cpu_seconds is None:
        return
    schedule, key = _current_schedule(request, done), _round_key(request.key, done.round)
    first, none = np.float32(done.start), (0, 0, 1)
    done.chains, _ = advance(request.sampler, schedule, key, done.chains, *none, first, follow=request.follow)


@partial(jit_by_work, static_argnames="follow", donate_argnames="chains")
def advance_chains(
    sampler: Sampler,
    schedule: Schedule,
    key: Array,
    chains: Simulation,
    first: Count,
    stride: Count,
    num_steps: Count,
    start: Array,
    *,
    follow: FollowAcceptance | None,
) -> tuple[Simulation, dict[str, Array]]:
    """Advance every chain by `stride` steps, remembering the best state."""

    def progress(step: Count) -> Array:
        return start + (1 - start) * (step / jnp.maximum(num_steps - 1, 1))

    chains = simulate(
        sampler,
        key,
        chains.state,
        stride,
        first_step=first,
        schedule=lambda step: schedule(progress(step)),
        adapt=follow,
        adapted=chains.adapted,
        num_warmup=num_steps,
        reduce=_keep_best,
        reduced=chains.reduced,
    )
    return chains, _describe(schedule, chains, progress(first + stride - 1))


def _describe(schedule: Schedule, chains: Simulation, progress: Array) -> dict[str, Array]:
    """Statistics of every chain after a step, and the hyper-parameters it moved with."""
    best, moving = chains.reduced, dict(schedule(progress))
    if chains.adapted is not None:
        moving["step_size"] = jnp.exp(chains.adapted.log_step)
    every_chain = partial(jnp.broadcast_to, shape=best.current.shape)
    return {
        "progress": every_chain(progress),
        "log_density": best.current,
        "best_log_density": best.log_density,
        "acceptance_rate": best.acceptance_rate,
        "num_flips": best.num_flips,
        **{name: every_chain(jnp.asarray(value, best.current.dtype)) for name, value in moving.items()},
    }


def _keep_best(best: Best, state: SamplerState, info: StepInfo, step: Array) -> Best:
    position, value = _best_replica(state)
    return Best(
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
