"""A landscape with a known answer: many narrow wells that hold the highest values, and one plateau.

Seen from afar every pattern is the same: `U` falls by `slope` per site that differs from the nearest one. A
well keeps rising to its pattern; the plateau stops rising at `radius` sites from its own and is flat inside.
So each is as easy to find, and wells hold the best states; changes inside the plateau cost nothing. Raised by
`loss`, the plateau is also worth more than a well after a few random changes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.target import Target
from steppe.targets.checks import count, positive
from steppe.validation import not_negative


class Wells(Target):
    """`U = log Σ_k exp{lift of k − slope · max(distance to pattern k, floor of k)}` over bits.

    Attributes
    ----------
    domain
        The bits.
    patterns
        Wells × sites.
    floors
        Distance from each pattern at which `U` stops rising.
    slope
        `U` lost per site away from a pattern.
    lifts
        Added to `U` of each.
    """

    patterns: Array
    floors: Array
    slope: Array
    lifts: Array

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        return self._value(self._distances(position))

    def differences(self, position: Array) -> Array:
        """Exact differences of all flips."""
        distances = self._distances(position)
        shifts = 1 - 2 * jnp.abs(self.patterns - position)  # a flip leads away from patterns it agrees with
        after = self.lifts[:, None] - self.slope * jnp.maximum(
            distances[:, None] + shifts, self.floors[:, None]
        )
        change = jax.nn.logsumexp(after, axis=0) - self._value(distances)
        return jnp.where(position[:, None] == jnp.arange(2), 0.0, change[:, None])

    def _value(self, distances: Array) -> Array:
        return jax.nn.logsumexp(self.lifts - self.slope * jnp.maximum(distances, self.floors))

    def _distances(self, position: Array) -> Array:
        """Number of sites that differ, written linearly in the position."""
        return self.patterns.sum(axis=1) + (1 - 2 * self.patterns) @ position


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

    Examples
    --------
    >>> from steppe.targets import planted_plateau
    >>> planted = planted_plateau(num_sites=50, num_wells=5)
    >>> planted.wells.shape, planted.plateau.shape
    ((5, 50), (50,))
    >>> well, plateau = (float(planted.target.log_density(at)) for at in (planted.wells[0], planted.plateau))
    >>> round(well - plateau, 2)
    9.0
    """

    target: Wells
    wells: np.ndarray
    plateau: np.ndarray
    radius: int


@checked(TargetError)
def planted_plateau(
    seed: int = 0,
    *,
    num_sites: int = 200,
    num_wells: int = 50,
    slope: float = 3.0,
    radius: int = 3,
    loss: float | None = None,
) -> PlantedPlateau:
    """Random patterns of bits: `num_wells` narrow wells and one plateau that is lower.

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
    loss
        How many nats the plateau is lower than a well; by default `slope · radius`, where both look the same
        from afar, and a well is worth no less after any number of flips. With less, the plateau is worth
        `slope · radius − loss` more than a well after `radius` flips or more.

    Examples
    --------
    >>> from steppe.targets import planted_plateau
    >>> planted = planted_plateau(num_sites=30, num_wells=4, loss=2.0)
    >>> well, plateau = (float(planted.target.log_density(at)) for at in (planted.wells[0], planted.plateau))
    >>> round(well - plateau, 3)
    2.0
    """
    rng = np.random.default_rng(count("planted_plateau(seed=...)", seed, 0))
    size = count("planted_plateau(num_sites=...)", num_sites, 1)
    wells = count("planted_plateau(num_wells=...)", num_wells, 1)
    patterns = rng.integers(0, 2, (wells + 1, size)).astype(np.float32)
    reach = count("planted_plateau(radius=...)", radius, 1)
    floors = np.zeros(wells + 1, np.float32)
    floors[-1] = reach
    lifts = np.zeros(wells + 1, np.float32)
    if loss is not None:
        lifts[-1] = float(slope) * reach - not_negative("planted_plateau(loss=...)", loss, error=TargetError)
    target = Wells(
        Binary(size),
        patterns=jnp.asarray(patterns),
        floors=jnp.asarray(floors),
        slope=jnp.asarray(positive("planted_plateau(slope=...)", slope), jnp.float32),
        lifts=jnp.asarray(lifts),
    )
    return PlantedPlateau(target, patterns[:-1], patterns[-1], reach)
