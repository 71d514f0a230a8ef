"""Adaptation in warm-up: a step size or a coupling variance moves until the chain does what is wanted.

Each chain adapts alone unless it is asked to pool, so that what it does never depends on how many others
there are. After warm-up the averaged numbers are frozen.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler

# The acceptance rate adapted to. 0.574 is optimal for Langevin proposals in high dimension; on ring
# Ising models the best measured step sizes of discrete Langevin accepted between 0.47 and 0.71.
TARGET_ACCEPTANCE = 0.574

SHRINKAGE = 0.05
DELAY = 10.0
FORGETTING = 0.75
LEANING = 10.0
# In units of the shortest squared move. Beyond, the penalty on a move is nothing, or forbids all of them;
# a target of a few sites may accept more than is wanted at any step size.
RANGE = (1e-2, 1e2)
COUPLING_RANGE = (1e-3, 1e3)
GAIN_DECAY = 0.6
# Observations are taken relative to what is wanted and cut here, so that a bad start is not remembered.
MOST_OBSERVED = 4.0


@dataclasses.dataclass(frozen=True)
class Adapt:
    """What warm-up adapts, and to what.

    Attributes
    ----------
    acceptance
        Wanted acceptance rate in (0, 1) of adjusted samplers; their step size is adapted to it. The default
        0.574 is optimal for Langevin proposals in high dimension. `None` keeps the step size.
    flip_rate
        For unadjusted samplers, which accept everything: wanted number of changes per site and step, in
        (0, 1). Their step size is adapted to it, and the bias that comes with it is accepted.
    center_distance
        For samplers with a center: wanted mean Euclidean distance between the center and the position, or
        each of its copies. The coupling variance is adapted to it; a center step size keeps its ratio to it.
        On bits, a copy that differs from a lattice center at `k` sites is at distance `√k`.
    pooled
        Adapt all chains together to the mean over chains, instead of each alone. The sum is made in whole
        numbers, so it does not depend on the number of devices or processes; the draws then depend on the
        number of chains.
    """

    acceptance: float | None = TARGET_ACCEPTANCE
    flip_rate: float | None = None
    center_distance: float | None = None
    pooled: bool = False

    def __post_init__(self) -> None:
        for name, most in (("acceptance", 1.0), ("flip_rate", 1.0), ("center_distance", math.inf)):
            value = getattr(self, name)
            if value is not None and not _is_between(value, most):
                bound = "positive and finite" if most == math.inf else "between 0 and 1"
                raise RunError(f"`Adapt({name}=...)` must be {bound}, or None; got {value!r}.")
            object.__setattr__(self, name, None if value is None else float(value))
        if not isinstance(self.pooled, bool):
            raise RunError(f"`Adapt(pooled=...)` must be True or False; got {self.pooled!r}.")

    @property
    def tunes_step_size(self) -> bool:
        """Whether the step size is adapted."""
        return self.acceptance is not None or self.flip_rate is not None


def _is_between(value: Any, most: float) -> bool:
    is_number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    return is_number and bool(0 < value < most)


def what_to_adapt(adapt: Any, recipe: Recipe, sampler: Sampler) -> Adapt | None:
    """Return what warm-up adapts for a recipe, or `None` for nothing; refuse what the recipe cannot do."""
    if not isinstance(adapt, bool | Adapt):
        raise RunError(f"`sample(adapt=...)` must be True, False or a `steppe.Adapt`; got {adapt!r}.")
    if adapt is False:
        return None
    wanted = Adapt() if adapt is True else adapt
    name, has_step = recipe.name, "step_size" in sampler.numbers
    if wanted.flip_rate is not None and (recipe.is_exact or not has_step):
        raise RunError(
            f"`Adapt(flip_rate=...)` sets the step size of unadjusted samplers; `{name}` "
            f"{'is adjusted: give `acceptance`' if has_step else 'has no step size'}."
        )
    if wanted.center_distance is not None and "coupling_variance" not in sampler.numbers:
        raise RunError(f"`Adapt(center_distance=...)` needs a sampler with a center; `{name}` has none.")
    if not (recipe.is_exact and has_step):
        if wanted.acceptance not in (None, TARGET_ACCEPTANCE):
            raise RunError(
                f"`Adapt(acceptance=...)` sets the step size of adjusted samplers; `{name}` "
                f"{'accepts everything: give `flip_rate`' if has_step else 'has no step size'}."
            )
        wanted = dataclasses.replace(wanted, acceptance=None)
    return wanted if wanted.tunes_step_size or wanted.center_distance is not None else None


class DualAveraging(NamedTuple):
    """Nesterov's dual averaging of `log(step size)` (Hoffman and Gelman 2014, section 3.2).

    Attributes
    ----------
    log_value
        What the next warm-up step uses.
    log_average
        What is used once warm-up is over.
    error
        Running average of (wanted − observed) acceptance.
    anchor
        The point `log_value` shrinks towards.
    num_updates
        Number of updates so far.
    """

    log_value: Array
    log_average: Array
    error: Array
    anchor: Array
    num_updates: Array

    @classmethod
    def start(cls, step_size: Array) -> "DualAveraging":
        """Begin at a given step size, leaning towards larger ones."""
        log_step = jnp.log(step_size)
        zero = jnp.zeros_like(log_step)
        return cls(log_step, log_step, zero, log_step + jnp.log(LEANING), zero)

    def update(self, observed: Array, wanted: float, bounds: tuple[float, float]) -> "DualAveraging":
        """Take one observation into account.

        Parameters
        ----------
        observed
            Acceptance rate of the step just made with `exp(log_value)`.
        wanted
            The wanted acceptance rate.
        bounds
            Least and largest step size.
        """
        num_updates = self.num_updates + 1
        weight = 1 / (num_updates + DELAY)
        error = (1 - weight) * self.error + weight * (wanted - observed)
        log_step = self.anchor - jnp.sqrt(num_updates) / SHRINKAGE * error
        log_step = jnp.clip(log_step, *map(math.log, bounds))
        average = _averaged(self.log_average, log_step, num_updates)
        return DualAveraging(log_step, average, error, self.anchor, num_updates)


class Approach(NamedTuple):
    """Robbins and Monro's search for the value of a number at which something that rises with it is right.

    Attributes
    ----------
    log_value
        What the next warm-up step uses.
    log_average
        What is used once warm-up is over.
    num_updates
        Number of updates so far.
    """

    log_value: Array
    log_average: Array
    num_updates: Array

    @classmethod
    def start(cls, value: Array) -> "Approach":
        """Begin at a given value."""
        log_value = jnp.log(value)
        return cls(log_value, log_value, jnp.zeros_like(log_value))

    def update(self, observed: Array, bounds: tuple[float, float]) -> "Approach":
        """Take one observation, divided by the wanted value, into account."""
        num_updates = self.num_updates + 1
        gain = (num_updates + DELAY) ** -GAIN_DECAY
        log_value = jnp.clip(self.log_value + gain * (1 - observed), *map(math.log, bounds))
        return Approach(log_value, _averaged(self.log_average, log_value, num_updates), num_updates)


def _averaged(average: Array, newest: Array, num_updates: Array) -> Array:
    weight = num_updates**-FORGETTING
    return weight * newest + (1 - weight) * average


class Observed(NamedTuple):
    """What one step did, as the searches see it; `None` where nothing is adapted to it."""

    step: Any
    coupling: Any
