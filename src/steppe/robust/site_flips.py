"""Random flips of sites as maps of positions: each moves every site by a fixed number of levels.

Site `i` with `L` levels goes from level `k` to `(k + shift) mod L`, where the shift is 0 for a site that
stays and uniform over `1 … L − 1` for one that flips. A map moves every site on its own, whatever the others
do, so a change of one site before the flips is a change of the same site after them: gradients, tables of
differences and incremental forms of a target carry over.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain import Categorical, Domain


@partial(jax.jit, static_argnames=("num", "domain", "flips"))
def draw_shifts(key: Array, num: int, domain: Domain, rates: Array | None, flips: int | None = None) -> Array:
    """Shifts of `num` maps, `(num, num_sites)`: sites flip with their rates, or a number of them does."""
    of_sites, of_levels = jax.random.split(key)
    uniform = jax.random.uniform(of_sites, (num, domain.num_sites))
    if rates is not None:
        is_flipped = uniform < rates
    else:
        assert flips is not None
        is_flipped = jnp.argsort(jnp.argsort(uniform, axis=1), axis=1) < flips
    others = np.asarray(domain.num_levels, np.int32)
    shifts = jax.random.randint(of_levels, uniform.shape, 1, jnp.broadcast_to(others, uniform.shape))
    return jnp.where(is_flipped, shifts, 0).astype(jnp.int32)


def flip_position(domain: Domain, shifts: Array, position: Array) -> Array:
    """Return the position after one map."""
    if domain.is_two_level:
        return domain.flip(position, shifts != 0)
    if isinstance(domain, Categorical):
        return jnp.take_along_axis(position, _sources(domain, shifts), axis=1)
    levels = domain.to_levels(position).astype(jnp.int32)
    moved = domain.from_levels(flip_level(domain, shifts, np.arange(domain.num_sites), levels))
    is_flipped = (shifts != 0).reshape(shifts.shape + (1,) * (position.ndim - 1))
    return jnp.where(is_flipped, moved, position)


def flip_level(domain: Domain, shifts: Array, sites: Array | np.ndarray, levels: Array) -> Array:
    """Where a map takes levels of some sites; levels that a site does not have stay."""
    counts = jnp.asarray(np.asarray(domain.num_levels, np.int32))[sites]
    return jnp.where(levels < counts, (levels + shifts[sites]) % counts, levels)


def pull_table(domain: Domain, shifts: Array, sites: Array | np.ndarray, table: Array) -> Array:
    """Turn a table (site, level after the map) into one of (site, level before it)."""
    levels = jnp.broadcast_to(jnp.arange(domain.max_levels), table.shape)
    after = jax.vmap(lambda site, row: flip_level(domain, shifts, site, row))(sites, levels)
    return jnp.take_along_axis(table, after, axis=1)


def pull_gradient(domain: Domain, shifts: Array, gradient: Array) -> Array:
    """Gradient with respect to the position before a map, from the one after it.

    The map is affine where a site has two levels or is one-hot. A flipped site of more real levels gives
    none.
    """
    is_flipped = (shifts != 0).reshape(shifts.shape + (1,) * (gradient.ndim - 1))
    if domain.is_two_level:
        return jnp.where(is_flipped, -gradient, gradient)
    if isinstance(domain, Categorical):
        return pull_table(domain, shifts, np.arange(domain.num_sites), gradient)
    return jnp.where(is_flipped, 0, gradient)


def _sources(domain: Domain, shifts: Array) -> Array:
    """For every level after a map the one it came from."""
    sites, levels = np.indices((domain.num_sites, domain.max_levels))
    return flip_level(domain, -shifts, sites[:, 0], jnp.asarray(levels.T, jnp.int32)).T
