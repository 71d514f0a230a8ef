"""Plateau walk: from the edge of a plateau, where a local search arrived, to where changes matter least.

A local search ends on the first state of a plateau that it meets, which is one of its edge, and most changes
of an edge lead down. From there a walk over states of the same height soon sees the inside, if there is one.
"""

import jax
import jax.numpy as jnp
from jax import Array

from steppe.compiling import pad_rows
from steppe.diagnostics.flatness.basins import resolve
from steppe.diagnostics.neighbours import after, gains
from steppe.diagnostics.states import map_states
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.local_search import Found, merge_same, price_of_change, price_of_differences
from steppe.modes.merge import canonicalize
from steppe.random import draws
from steppe.target import Target

MAX_STEPS = 16
MIN_STEPS = 2
BATCH = 16


def walk_plateaus(target: Target, found: Found, key: Array, counter: EvaluationCounter, limit: int) -> Found:
    """Replace every mode by the flattest state that a short walk at its height meets.

    Parameters
    ----------
    target
        What is looked at.
    found
        Modes that local searches ended on.
    key
        Of the walks.
    counter
        Of evaluations.
    limit
        What it may reach with these walks and the single-site differences of what they find; with too few
        left the modes are returned as they are.
    """
    num_modes, per_step = len(found.states), price_of_change(target, counter)
    num_left = limit - counter.num_made - num_modes * price_of_differences(counter)
    num_steps = min(MAX_STEPS, (num_left // num_modes - 1) // per_step)
    if num_steps < MIN_STEPS:
        return found
    flattest, log_density = map_states(
        _walk, target, pad_rows(found.states), num_steps, keys=key, batch_size=BATCH
    )
    counter.record(values=num_modes * (num_steps * per_step + 1))
    flattest = canonicalize(target, flattest)[:num_modes]
    return merge_same(flattest, log_density[:num_modes], found.visits)


def _walk(target: Target, position: Array, key: Array, num_steps: Array) -> tuple[Array, Array]:
    def step(index: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        state, flattest, lowest = carry
        table, is_change = gains(target, state)
        sizes = jnp.where(is_change, jnp.abs(table), 0)
        roughness = jnp.sum(sizes) / jnp.maximum(jnp.sum(is_change), 1)
        flattest = jnp.where(roughness < lowest, state, flattest)
        is_level = is_change & (sizes <= 2 * resolve(target, state, table))
        chosen = draws.categorical(jax.random.fold_in(key, index), jnp.where(is_level, 0.0, -jnp.inf))
        moved = after(target, state, chosen)
        return jnp.where(jnp.any(is_level), moved, state), flattest, jnp.minimum(lowest, roughness)

    start = (position, position, jnp.full((), jnp.inf, position.dtype))
    _, flattest, _ = jax.lax.fori_loop(0, num_steps, step, start)
    return flattest, target.log_density(flattest)
