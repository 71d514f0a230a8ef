"""Warm-up: a step size or a coupling variance moves until the chain does what is wanted.

Each chain adapts alone unless it is asked to pool, so that what it does never depends on how many others
there are. After warm-up the averaged hyper-parameters are frozen.
"""

import dataclasses
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import RunError
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.adaptation.dual_averaging import DualAveraging
from steppe.run.adaptation.robbins_monro import RobbinsMonro

# The acceptance rate adapted to. 0.574 is optimal for Langevin proposals in high dimension; on ring
# Ising models the best measured step sizes of discrete Langevin accepted between 0.47 and 0.71.
TARGET_ACCEPTANCE = 0.574

# The acceptance rate of Hamiltonian Monte Carlo adapted to; between 0.6 and 0.9 the cost hardly differs.
REAL_ACCEPTANCE = 0.8
# Of its step size, in units of the scales of the coordinates.
REAL_STEP_RANGE = (1e-4, 1e1)

# In units of the shortest squared move. Beyond, the penalty on a move is nothing, or forbids all of them;
# a target of a few sites may accept more than is wanted at any step size.
STEP_RANGE = (1e-2, 1e2)
COUPLING_RANGE = (1e-3, 1e3)
# Observations are taken relative to what is wanted and cut here, so that a bad start is not remembered.
MAX_OBSERVED = 4.0


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
        each of its replicas. The coupling variance is adapted to it; a center step size keeps its ratio to
        it. On bits, a replica that differs from a lattice center at `k` sites is at distance `√k`.
    real_acceptance
        Wanted acceptance rate in (0, 1) of the moves of real coordinates in a mixed model; their step size is
        adapted to it. `None` keeps the step size.
    pooled
        Adapt all chains together to the mean over chains, instead of each alone. The sum is made in whole
        numbers, so it does not depend on the number of devices or processes; the draws then depend on the
        number of chains.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> adapt = steppe.Adapt(acceptance=0.8)
    >>> run = steppe.sample(target, steppe.dmala(), key=jax.random.key(0), num_draws=200, adapt=adapt)
    >>> bool(abs(run.data.sample_stats["acceptance_rate"].mean() - 0.8) < 0.1)
    True
    """

    acceptance: float | None = TARGET_ACCEPTANCE
    flip_rate: float | None = None
    center_distance: float | None = None
    pooled: bool = False
    real_acceptance: float | None = REAL_ACCEPTANCE

    def __post_init__(self) -> None:
        ranges = {"acceptance": 1.0, "flip_rate": 1.0, "center_distance": math.inf, "real_acceptance": 1.0}
        for name, maximum in ranges.items():
            value = getattr(self, name)
            if value is not None and not _is_between(value, maximum):
                bound = "positive and finite" if maximum == math.inf else "between 0 and 1"
                raise RunError(f"`Adapt({name}=...)` must be {bound}, or None; got {value!r}.")
            object.__setattr__(self, name, None if value is None else float(value))
        if not isinstance(self.pooled, bool):
            raise RunError(f"`Adapt(pooled=...)` must be True or False; got {self.pooled!r}.")

    @property
    def tunes_step_size(self) -> bool:
        """Whether the step size is adapted."""
        return self.acceptance is not None or self.flip_rate is not None

    @property
    def tunes_anything(self) -> bool:
        """Whether anything is adapted."""
        return self.tunes_step_size or self.center_distance is not None or self.real_acceptance is not None


def _is_between(value: object, maximum: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        return False
    return bool(0 < value < maximum)


def resolve_adaptation(adapt: object, sampler: Sampler) -> "WarmupAdaptation | None":
    """Return what warm-up adapts for a recipe, or `None` for nothing; refuse what the recipe cannot do."""
    if not isinstance(adapt, bool | Adapt):
        raise RunError(f"`sample(adapt=...)` must be True, False or a `steppe.Adapt`; got {adapt!r}.")
    if adapt is False:
        return None
    wanted = Adapt() if adapt is True else adapt
    recipe = sampler.recipe
    name, has_step = recipe.name, "step_size" in sampler.parameters
    if wanted.flip_rate is not None and (recipe.is_adjusted or not has_step):
        raise RunError(
            f"`Adapt(flip_rate=...)` sets the step size of unadjusted samplers; `{name}` "
            f"{'is adjusted: give `acceptance`' if has_step else 'has no step size'}."
        )
    if wanted.center_distance is not None and "coupling_variance" not in sampler.parameters:
        raise RunError(f"`Adapt(center_distance=...)` needs a sampler with a center; `{name}` has none.")
    if not (recipe.is_adjusted and has_step):
        if wanted.acceptance not in (None, TARGET_ACCEPTANCE):
            raise RunError(
                f"`Adapt(acceptance=...)` sets the step size of adjusted samplers; `{name}` "
                f"{'accepts everything: give `flip_rate`' if has_step else 'has no step size'}."
            )
        wanted = dataclasses.replace(wanted, acceptance=None)
    if "real_step_size" not in sampler.parameters:
        if wanted.real_acceptance not in (None, REAL_ACCEPTANCE):
            raise RunError(
                f"`Adapt(real_acceptance=...)` is for `mixed(...)`; `{name}` has no real coordinates."
            )
        wanted = dataclasses.replace(wanted, real_acceptance=None)
    if not wanted.tunes_anything:
        return None
    domain = sampler.target.domain
    return WarmupAdaptation(wanted, domain.squared_unit, domain.num_sites * (sampler.replicas or 1))


class Searches(NamedTuple):
    """Searches for the hyper-parameters of one chain; `None` for one that is not adapted."""

    step: DualAveraging | RobbinsMonro | None
    coupling: RobbinsMonro | None
    real_step: DualAveraging | None = None


class Observed(NamedTuple):
    """What one step did, as the searches see it; `None` where nothing is adapted to it."""

    step: Array | None
    coupling: Array | None
    real_step: Array | None = None


@dataclasses.dataclass(frozen=True)
class WarmupAdaptation:
    """`Adapt` for a sampler: what to reach, and the units in which its hyper-parameters move.

    Attributes
    ----------
    wanted
        What to adapt, and to what.
    squared_unit
        Squared length of the shortest move of a site.
    num_sites
        Sites of a state, replicas included.
    """

    wanted: Adapt
    squared_unit: float
    num_sites: int

    def init(self, sampler: Sampler) -> Searches:
        """Begin at the hyper-parameters of the sampler."""
        step = coupling = real_step = None
        if self.wanted.acceptance is not None:
            step = DualAveraging.start(sampler.parameters["step_size"])
        elif self.wanted.flip_rate is not None:
            step = RobbinsMonro.start(sampler.parameters["step_size"])
        if self.wanted.center_distance is not None:
            coupling = RobbinsMonro.start(sampler.parameters["coupling_variance"])
        if self.wanted.real_acceptance is not None:
            real_step = DualAveraging.start(sampler.parameters["real_step_size"])
        return Searches(step, coupling, real_step)

    def observe(self, sampler: Sampler, state: SamplerState, info: StepInfo) -> Observed:
        """A rate, or a number relative to what is wanted."""
        step = coupling = None
        if self.wanted.acceptance is not None:
            step = info.acceptance_rate
        elif self.wanted.flip_rate is not None:
            step = jnp.minimum(info.num_flips / (self.num_sites * self.wanted.flip_rate), MAX_OBSERVED)
        if self.wanted.center_distance is not None:
            distance = center_distance(sampler, state)
            assert distance is not None
            coupling = jnp.minimum(distance / self.wanted.center_distance, MAX_OBSERVED)
        return Observed(
            step, coupling, None if self.wanted.real_acceptance is None else info.real_acceptance_rate
        )

    def update(self, adapted: Searches, observed: Observed) -> Searches:
        """Take the observation of one step into account."""
        step, coupling, real_step = adapted
        match step:
            case DualAveraging():
                assert self.wanted.acceptance is not None
                assert observed.step is not None
                step = step.update(observed.step, self.wanted.acceptance, self._bounds(STEP_RANGE))
            case RobbinsMonro():
                assert observed.step is not None
                step = step.update(observed.step, self._bounds(STEP_RANGE))
        if coupling is not None:
            assert observed.coupling is not None
            coupling = coupling.update(observed.coupling, self._bounds(COUPLING_RANGE))
        if real_step is not None:
            assert self.wanted.real_acceptance is not None
            assert observed.real_step is not None
            real_step = real_step.update(observed.real_step, self.wanted.real_acceptance, REAL_STEP_RANGE)
        return Searches(step, coupling, real_step)

    def apply(self, sampler: Sampler, adapted: Searches) -> Sampler:
        """Return the sampler on trial; a center step size keeps its ratio to the coupling variance."""
        found: dict[str, Array] = {}
        if adapted.step is not None:
            found["step_size"] = jnp.exp(adapted.step.log_value)
        if adapted.coupling is not None:
            given, variance = sampler.parameters, jnp.exp(adapted.coupling.log_value)
            found["coupling_variance"] = variance
            if "center_step_size" in given:
                ratio = variance / given["coupling_variance"]
                found["center_step_size"] = given["center_step_size"] * ratio
        if adapted.real_step is not None:
            found["real_step_size"] = jnp.exp(adapted.real_step.log_value)
        return sampler.replace(found)

    def freeze(self, adapted: Searches) -> Searches:
        """Use the averages from now on."""
        step, coupling, real_step = adapted
        return Searches(
            None if step is None else step._replace(log_value=step.log_average),
            None if coupling is None else coupling._replace(log_value=coupling.log_average),
            None if real_step is None else real_step._replace(log_value=real_step.log_average),
        )

    def _bounds(self, multiples: tuple[float, float]) -> tuple[float, float]:
        return multiples[0] * self.squared_unit, multiples[1] * self.squared_unit


def center_distance(sampler: Sampler, state: SamplerState) -> Array | None:
    """Euclidean distance of the center from the position, or its mean over the replicas; `None` without."""
    coupling = sampler.recipe.coupling
    if state.center is None:
        return None
    tied = state.position if sampler.replicas is not None else coupling.anchor(state.position)
    axes = tuple(range(-jnp.ndim(state.center), 0))
    return jnp.mean(jnp.sqrt(jnp.sum((state.center - tied) ** 2, axis=axes)))
