"""Chains of networks, logged as they go: likelihood on the training rows and outputs on others."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.kernel.compose import Recipe, Sampler
from steppe.run.adaptation import TARGET_ACCEPTANCE
from steppe.targets.binary_network import BinaryNetwork

# Change of log(step size) per step and unit of (observed − wanted) acceptance while the temperature falls.
GAIN = 0.05
# Activations below which compiling takes longer than running.
SHORT_WORK = 1e9
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
    go = _run_soon if work < SHORT_WORK else _run_fast
    series = go(sampler, starts, key, with_ones, jnp.asarray(betas), jnp.asarray(gains))
    return Logged(*(np.asarray(part, float) for part in series))


def _run(sampler: Sampler, starts: Array, key: Array, rows: Array, betas: Array, gains: Array) -> Any:
    target: Any = sampler.target

    def step(beta: Array, gain: Array, carry: Any, key: Array) -> Any:
        states, log_step = carry
        now = _at(sampler, beta, log_step)
        states, info = jax.vmap(now.step)(jax.random.split(key, len(starts)), states)
        acceptance = info.acceptance_rate.mean()
        moved = None if log_step is None else log_step + gain * (acceptance - TARGET_ACCEPTANCE)
        return (states, moved), acceptance

    def point(carry: Any, now: tuple[Array, Array, Array]) -> Any:
        keys, beta, gain = now
        states = carry[0]
        outputs = jax.lax.map(lambda position: target.outputs(position, rows), states.position)
        likelihood = states.log_density.mean() / target.temperature
        carry, acceptance = jax.lax.scan(partial(step, beta, gain), carry, keys)
        return carry, (likelihood, outputs.mean(axis=0), acceptance.mean())

    first, key = jax.random.split(key)
    log_step = jnp.log(sampler.parameters["step_size"]) if "step_size" in sampler.parameters else None
    start = (jax.vmap(sampler.init)(starts), log_step)
    carry, _ = step(betas[0], gains[0], start, first)  # iteration 0
    keys = jax.random.split(key, len(betas) * LOG_PER).reshape(len(betas), LOG_PER)
    return jax.lax.scan(point, carry, (keys, betas, gains))[1]


def _at(sampler: Sampler, beta: Array, log_step: Array | None) -> Sampler:
    """Return the same sampler at another temperature and step size."""
    step = {} if log_step is None else {"step_size": jnp.exp(log_step)}
    return sampler.replace({"inverse_temperature": beta, **step})


_run_fast, _run_soon = jax.jit(_run), quick_jit(_run)
