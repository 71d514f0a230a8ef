"""The hot end of a ladder: the coldest temperature at which states found in the cold are soon forgotten.

Only log Z needs `β = 0`. A replica comes back with news from any temperature at which the base recipe forgets
where it was, and rungs hotter than that are wasted: on a ±J glass of 8³ spins, half of all. States are taken
from uniform ones to `β = 1` by a few steps of the base recipe, which leaves them in many different modes, and
are then moved at a candidate `β`. `m` is the fraction of sites at which a state still agrees with its own
beginning, minus that with other ones; a `β` passes if `m` is small, for all sites together and for each.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.kernel.blocks.tempering import parameters_at
from steppe.kernel.sampler import Sampler
from steppe.run.simulate import simulate
from steppe.target import Target

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe

NUM_STARTS = 64
# Steps to `β = 1`, and at a candidate.
NUM_QUENCHED, NUM_MELTED = 32, 16
CANDIDATES = np.geomspace(0.05, 0.5, 16)
# The largest `m` that passes, as a fraction of what it is before the steps: of all sites at once (mean and
# two standard errors), and of the slowest one, which is measured less well.
MAX_MEMORY, MAX_SITE_MEMORY = 0.1, 0.6
# A site at which starts hardly differ has nothing to forget.
MIN_SPREAD = 0.2


def find_hottest(
    target: Target, base: "Recipe", scales: np.ndarray, betas: np.ndarray, *, key: Array
) -> float:
    """Return the inverse temperature at which a ladder may begin, 0 if none is shown to do.

    Parameters
    ----------
    target
        What is sampled.
    base
        How a replica moves.
    scales, betas
        A ladder, and by what the step size of the base, if it has one, is scaled at its rungs.
    key
        Random key.
    """
    if not target.domain.is_site_product or target.domain.num_reals:
        return 0.0
    path = np.append(CANDIDATES, 1.0)
    arrays = jnp.asarray(path, float), jnp.asarray(np.exp(np.interp(path, betas, np.log(scales))), float)
    own, other, apart = (
        np.asarray(one, float) for one in _melt(base.build(target, audit=False), key, *arrays)
    )
    hottest = 0.0
    for beta, left in zip(CANDIDATES, own - other, strict=True):  # (start, site)
        if not is_forgotten(left, apart):
            break
        hottest = float(beta)
    return hottest


def is_forgotten(left: np.ndarray, apart: np.ndarray) -> bool:
    """Whether `m`, (start, site), is small beside the fraction of starts that differ at a site."""
    means = left.mean(axis=1)
    bound = means.mean() + 2 * means.std(ddof=1) / np.sqrt(len(means))
    spread = apart >= MIN_SPREAD
    if not spread.any():
        return False
    slowest = (left.mean(axis=0)[spread] / apart[spread]).max()
    return bool(bound <= MAX_MEMORY * apart.mean() and slowest <= MAX_SITE_MEMORY)


@quick_jit
def _melt(sampler: Sampler, key: Array, path: Array, scales: Array) -> tuple[Array, Array, Array]:
    """Agreement with the own start and with others, (β, start, site); how often starts differ at a site."""
    domain = sampler.target.domain
    draw_key, quench_key, melt_key = jax.random.split(key, 3)
    uniform = jax.vmap(domain.draw)(jax.random.split(draw_key, NUM_STARTS))
    cold = sampler.replace(parameters_at(sampler.parameters, path[-1], scales[-1]))
    starts = simulate(cold, quench_key, jax.vmap(cold.init)(uniform), NUM_QUENCHED).state
    levels = jax.vmap(domain.to_levels)(starts.position)

    def share(levels: Array, others: Array) -> Array:
        """How often others have the level of a state, by site."""
        same = jnp.mean(levels[:, None] == others[None], axis=1)
        return (same * NUM_STARTS - (levels == others)) / (NUM_STARTS - 1)

    def melt(one: tuple[Array, Array]) -> tuple[Array, Array]:
        done = simulate(
            sampler.replace(parameters_at(sampler.parameters, *one)), melt_key, starts, NUM_MELTED
        ).state
        after = jax.vmap(domain.to_levels)(done.position)
        return (after == levels).astype(float), share(after, levels)

    own, other = jax.lax.map(melt, (path[:-1], scales[:-1]))
    return own, other, 1 - jnp.mean(share(levels, levels), axis=0)
