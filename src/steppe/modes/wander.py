"""On level ground: from the edge where a climb arrived to where changes matter least.

A climb ends on the first state of a plateau that it meets, which is one of its edge, and most changes of an
edge lead down. From there a walk over states of the same height soon sees the inside, if there is one.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.diagnostics.flatness.basins import resolved
from steppe.diagnostics.neighbours import after, gains
from steppe.diagnostics.states import map_states
from steppe.modes.climbing import Found, change_cost, gap_cost
from steppe.modes.merge import same_form
from steppe.random import draws
from steppe.target import Target

MOST_STEPS = 16
LEAST_STEPS = 2
BATCH = 64


def wandered(target: Target, found: Found, key: Array, budget: int) -> Found:
    """Replace every mode by the flattest state that a short walk at its height meets.

    Parameters
    ----------
    target
        What is looked at.
    found
        Modes that climbs ended on.
    key
        Of the walks.
    budget
        Evaluations to make at most; with too few the modes are returned as they are.
    """
    per_step = change_cost(target)
    num_steps = min(MOST_STEPS, (budget // len(found.states) - 1) // per_step)
    if num_steps < LEAST_STEPS:
        return found
    flattest, log_density = map_states(
        _wander, target, found.states, num_steps, keys=key, batch_size=min(BATCH, len(found.states))
    )
    states, first, which = np.unique(
        same_form(target, flattest), axis=0, return_index=True, return_inverse=True
    )
    visits = np.zeros((len(states), found.visits.shape[1]), int)
    np.add.at(visits, which.ravel(), found.visits)
    spent = len(found.states) * (num_steps * per_step + 1)
    spent -= (len(found.states) - len(states)) * gap_cost(target)  # counted for every mode found
    return Found(states, log_density[first], visits, found.num_evaluations + spent)


def _wander(target: Target, position: Array, key: Array, num_steps: Array) -> tuple[Array, Array]:
    def step(index: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        state, flattest, least = carry
        table, is_change = gains(target, state)
        sizes = jnp.where(is_change, jnp.abs(table), 0)
        roughness = jnp.sum(sizes) / jnp.maximum(jnp.sum(is_change), 1)
        flattest = jnp.where(roughness < least, state, flattest)
        is_level = is_change & (sizes <= 2 * resolved(target, state, table))
        chosen = draws.categorical(jax.random.fold_in(key, index), jnp.where(is_level, 0.0, -jnp.inf))
        moved = after(target, state, chosen)
        return jnp.where(jnp.any(is_level), moved, state), flattest, jnp.minimum(least, roughness)

    start = (position, position, jnp.full((), jnp.inf, position.dtype))
    _, flattest, _ = jax.lax.fori_loop(0, num_steps, step, start)
    return flattest, target.log_density(flattest)
