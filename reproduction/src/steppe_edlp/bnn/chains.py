"""Chains of networks, logged as they go: likelihood on the training rows and outputs on others."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import jit_by_work
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState
from steppe.run.adaptation import TARGET_ACCEPTANCE
from steppe.run.simulate import simulate
from steppe.targets.binary_network import BinaryNetwork
from steppe_edlp.work import Checkpoint

# Change of log(step size) per step and unit of (observed − wanted) acceptance while the temperature falls.
GAIN = 0.05
SEGMENT = 20  # log points between checkpoints
LOG_PER = 5  # steps between log points, as in the paper


class Heat(NamedTuple):
    """How chains are cooled: log points with a falling temperature, and the inverse one they start at.

    With `num_points = 0` nothing is cooled and no step size adapted.
    """

    num_points: int = 0
    hottest: float = 1.0


class Logged(NamedTuple):
    """What was logged, log point by log point.

    Attributes
    ----------
    likelihood
        Mean over chains of `−mean (f − y)²` on the training rows.
    outputs
        Mean output of the current networks on every row asked for.
    acceptance
        Mean acceptance rate since the point before.
    """

    likelihood: np.ndarray
    outputs: np.ndarray
    acceptance: np.ndarray


def log_chains(
    target: BinaryNetwork,
    recipe: Recipe,
    rows: np.ndarray,
    seed: int,
    *,
    num_chains: int,
    num_points: int,
    heat: Heat | None = None,
    checkpoint: Checkpoint | None = None,
) -> Logged:
    """Run chains from random networks and log them after steps 0, 5, 10, ….

    Parameters
    ----------
    target
        The posterior.
    recipe
        How to sample it.
    rows
        Rows to predict, without labels.
    seed
        Of starts and steps.
    num_chains
        Networks side by side; their mean output is what predicts.
    num_points
        Log points, five steps apart.
    heat
        How they are cooled before; `None` for not at all.
    checkpoint
        Where to leave how far a long run came, and to take it up from.
    """
    heat = Heat() if heat is None else heat
    sampler = recipe.build(target, audit=False)
    key_start, key = jax.random.split(jax.random.key(seed))
    starts = target.domain.draw(key_start, (num_chains,))
    cooled = np.geomspace(heat.hottest, 1.0, heat.num_points)
    betas = np.concatenate([cooled, np.ones(num_points - heat.num_points)])
    adapts = recipe.is_adjusted and "step_size" in sampler.parameters
    gains = GAIN * adapts * (np.arange(num_points) < heat.num_points)
    with_ones = jnp.asarray(np.c_[rows, np.ones(len(rows))], jnp.result_type(float))
    work = num_points * LOG_PER * num_chains * target.num_hidden * len(target.y)
    plan = [jnp.asarray(part) for part in (np.arange(num_points), betas, gains)]
    if checkpoint is None:
        series = _choose(work)(sampler, starts, key, with_ones, *plan)
    else:
        series = _run_in_segments(sampler, starts, key, with_ones, plan, checkpoint)
    return Logged(*(np.asarray(part, float) for part in series))


def _begin(sampler: Sampler, starts: Array, key: Array, beta: Array) -> Any:
    """States after the first step, and the step size."""
    step_size = sampler.parameters.get("step_size")
    states, _ = _advance(sampler, key, beta, step_size, jax.vmap(sampler.init)(starts), jnp.asarray(0), 1)
    return states, step_size


def _advance(
    sampler: Sampler,
    key: Array,
    beta: Array,
    step_size: Array | None,
    states: SamplerState,
    first: Array,
    number: int,
) -> Any:
    """Some steps at one temperature and step size, and their mean acceptance rate."""
    step = {} if step_size is None else {"step_size": step_size}
    now = sampler.replace({"inverse_temperature": beta, **step})
    steps = {"first_step": first, "every": number, "observe": lambda _, __, info: info.acceptance_rate}
    found = simulate(now, key, states, number, **steps)
    return found.state, found.observed.mean()


def _continue(
    sampler: Sampler, key: Array, rows: Array, carry: Any, numbers: Array, betas: Array, gains: Array
) -> Any:
    """The carry after some log points, and what was logged at each."""
    target: Any = sampler.target

    def point(carry: Any, now: tuple[Array, Array, Array]) -> Any:
        (states, step_size), (number, beta, gain) = carry, now
        outputs = jax.lax.map(lambda position: target.outputs(position, rows), states.position)
        likelihood = states.log_density.mean() / target.temperature
        states, acceptance = _advance(sampler, key, beta, step_size, states, 1 + LOG_PER * number, LOG_PER)
        if step_size is not None:
            step_size = step_size * jnp.exp(LOG_PER * gain * (acceptance - TARGET_ACCEPTANCE))
        return (states, step_size), (likelihood, outputs.mean(axis=0), acceptance)

    return jax.lax.scan(point, carry, (numbers, betas, gains))


def _run(
    sampler: Sampler, starts: Array, key: Array, rows: Array, numbers: Array, betas: Array, gains: Array
) -> Any:
    carry = _begin(sampler, starts, key, betas[0])
    return _continue(sampler, key, rows, carry, numbers, betas, gains)[1]


_choose = jit_by_work(_run)
_begin_well, _continue_well = jax.jit(_begin), jax.jit(_continue)


def _run_in_segments(
    sampler: Sampler,
    starts: Array,
    key: Array,
    rows: Array,
    plan: Sequence[Array],
    checkpoint: Checkpoint,
) -> list[np.ndarray]:
    """The same, leaving behind after every segment how far it came."""
    beginning = (sampler, starts, key, plan[1][0])
    structure = jax.tree.structure(jax.eval_shape(_begin, *beginning))
    if (found := checkpoint.load()) is None:
        carry, series = _begin_well(*beginning), [np.empty((0, *shape)) for shape in ((), (len(rows),), ())]
    else:
        carry = jax.tree.unflatten(structure, [found[f"leaf{n}"] for n in range(structure.num_leaves)])
        series = [found[f"series{n}"] for n in range(3)]
    for first in range(len(series[0]), len(plan[0]), SEGMENT):
        segment = [part[first : first + SEGMENT] for part in plan]
        carry, more = _continue_well(sampler, key, rows, carry, *segment)
        series = [np.concatenate(pair) for pair in zip(series, more, strict=True)]
        leaves = {f"leaf{n}": np.asarray(leaf) for n, leaf in enumerate(jax.tree.leaves(carry))}
        checkpoint.save({**leaves, **{f"series{n}": part for n, part in enumerate(series)}})
    return series
