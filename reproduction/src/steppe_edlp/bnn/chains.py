"""Chains of networks, logged as they go: likelihood on the training rows and outputs on others."""

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

# Change of log(step size) per step and unit of (observed − wanted) acceptance while the temperature falls.
GAIN = 0.05
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
    series = _choose(work)(sampler, starts, key, with_ones, jnp.asarray(betas), jnp.asarray(gains))
    return Logged(*(np.asarray(part, float) for part in series))


def _run(sampler: Sampler, starts: Array, key: Array, rows: Array, betas: Array, gains: Array) -> Any:
    target: Any = sampler.target

    def advance(beta: Array, step_size: Array | None, states: SamplerState, first: Array, number: int) -> Any:
        """Some steps at one temperature and step size, and their mean acceptance rate."""
        step = {} if step_size is None else {"step_size": step_size}
        now = sampler.replace({"inverse_temperature": beta, **step})
        steps = {"first_step": first, "every": number, "observe": lambda _, __, info: info.acceptance_rate}
        found = simulate(now, key, states, number, **steps)
        return found.state, found.observed.mean()

    def point(carry: Any, now: tuple[Array, Array, Array]) -> Any:
        (states, step_size), (number, beta, gain) = carry, now
        outputs = jax.lax.map(lambda position: target.outputs(position, rows), states.position)
        likelihood = states.log_density.mean() / target.temperature
        states, acceptance = advance(beta, step_size, states, 1 + LOG_PER * number, LOG_PER)
        if step_size is not None:
            step_size = step_size * jnp.exp(LOG_PER * gain * (acceptance - TARGET_ACCEPTANCE))
        return (states, step_size), (likelihood, outputs.mean(axis=0), acceptance)

    step_size = sampler.parameters.get("step_size")
    states, _ = advance(betas[0], step_size, jax.vmap(sampler.init)(starts), jnp.asarray(0), 1)
    return jax.lax.scan(point, (states, step_size), (jnp.arange(len(betas)), betas, gains))[1]


_choose = jit_by_work(_run)
