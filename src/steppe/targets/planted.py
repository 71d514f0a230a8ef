"""A landscape with a known answer: many narrow wells that hold the highest values, and one plateau.

Seen from afar every pattern is the same: `U` falls by `slope` per site that differs from the nearest one. A
well keeps rising to its pattern; the plateau stops rising at `radius` sites from its own and is flat inside.
So each is as easy to find, wells hold the best states, and only the plateau survives a few random changes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from steppe.domain import Binary
from steppe.target import Target
from steppe.targets.checks import count, positive


class PlantedPlateau(NamedTuple):
    """The landscape and where things are.

    Attributes
    ----------
    target
        What to sample.
    wells
        Patterns of the narrow wells, `(num_wells, num_sites)`.
    plateau
        Pattern in the middle of the plateau.
    radius
        Sites from it to its edge.
    """

    target: Target
    wells: np.ndarray
    plateau: np.ndarray
    radius: int


def planted_plateau(
    seed: int = 0, *, num_sites: int = 200, num_wells: int = 50, slope: float = 3.0, radius: int = 3
) -> PlantedPlateau:
    """Random patterns of bits: `num_wells` narrow wells and one plateau, `slope · radius` nats lower.

    Parameters
    ----------
    seed
        Of the patterns.
    num_sites
        Number of bits.
    num_wells
        How many wells.
    slope
        `U` lost per site away from a pattern.
    radius
        Of the plateau, in sites.
    """
    rng = np.random.default_rng(count("planted_plateau(seed=...)", seed, 0))
    size = count("planted_plateau(num_sites=...)", num_sites, 1)
    wells = count("planted_plateau(num_wells=...)", num_wells, 1)
    patterns = rng.integers(0, 2, (wells + 1, size)).astype(np.float32)
    reach = count("planted_plateau(radius=...)", radius, 1)
    floors = np.zeros(wells + 1, np.float32)
    floors[-1] = reach
    parts = jnp.asarray(patterns), jnp.asarray(floors), jnp.asarray(positive("slope", slope), jnp.float32)
    target = Target(Partial(_log_density, *parts), Binary(size), differences=Partial(_differences, *parts))
    return PlantedPlateau(target, patterns[:-1], patterns[-1], reach)


def _log_density(patterns: Array, floors: Array, slope: Array, position: Array) -> Array:
    return jax.nn.logsumexp(-slope * jnp.maximum(_distances(patterns, position), floors))


def _differences(patterns: Array, floors: Array, slope: Array, position: Array) -> Array:
    distances = _distances(patterns, position)
    shifts = 1 - 2 * jnp.abs(patterns - position)  # a flip leads away from patterns it agrees with
    after = -slope * jnp.maximum(distances[:, None] + shifts, floors[:, None])
    gain = jax.nn.logsumexp(after, axis=0) - _log_density(patterns, floors, slope, position)
    return jnp.where(position[:, None] == jnp.arange(2), 0.0, gain[:, None])


def _distances(patterns: Array, position: Array) -> Array:
    """Number of sites that differ, written linearly in the position."""
    return patterns.sum(axis=1) + (1 - 2 * patterns) @ position
