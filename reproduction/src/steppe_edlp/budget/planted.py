"""A plateau beside narrow wells on few bits: all states, and those that are little below the best."""

import jax
import numpy as np
from jax import Array

from steppe.targets import planted_plateau
from steppe_edlp.budget.enumerated import Instance

NUM_SITES, NUM_WELLS = 14, 6
SLOPE, RADIUS = 2.0, 2
# Nats by which the plateau lies below the wells.
LOSS = 1.0
NEAR = 2


def make_planted(seed: int, *, tolerance: float) -> Instance:
    """Draw patterns of wells and of a plateau and enumerate all states.

    Parameters
    ----------
    seed
        Of the patterns.
    tolerance
        An affordable state is at most so many nats below the best.
    """
    planted = planted_plateau(
        seed, num_sites=NUM_SITES, num_wells=NUM_WELLS, slope=SLOPE, radius=RADIUS, loss=LOSS
    )
    target, domain = planted.target, planted.target.domain
    states = domain.enumerate()
    log_density = np.asarray(jax.vmap(target.log_density)(states), float)
    excess = log_density.max() - log_density
    affordable = np.flatnonzero(excess <= tolerance)
    bits = np.asarray(states)[affordable]

    def draw_starts(key: Array, number: int) -> Array:
        return domain.draw(key, (number,))

    return Instance(
        target,
        log_density=log_density,
        excess=excess,
        affordable=affordable,
        distances=np.abs(bits[:, None] - bits).sum(axis=-1).astype(int),
        near=NEAR,
        number=lambda positions: np.asarray(domain.index(positions)),
        draw_starts=draw_starts,
    )
