"""Follow a wanted acceptance rate at a constant gain, while other hyper-parameters move."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.adaptation.warmup import STEP_RANGE, TARGET_ACCEPTANCE

# Change of log(step size) per step and unit of (observed − wanted) acceptance. The wanted step size moves
# with the schedule, so the gain does not fall; at 0.05 it follows within some fifty steps.
GAIN = 0.05
# Where hardly anything is accepted, nothing is learned but that steps are far too large: from a random start
# of a committee on correlated inputs, ten times. Then they shrink by a factor of six in ten steps.
HARDLY, RESCUE_GAIN = 0.05, 0.3
# Weight of a step in the mean that tells, and where that mean begins.
RECENT, FIRST_RATE = 0.2, 0.25


class Followed(NamedTuple):
    """Logarithm of the step size, and the mean acceptance rate of recent steps."""

    log_step: Array
    recent: Array


@dataclasses.dataclass(frozen=True)
class FollowAcceptance:
    """Let `log(step size)` rise by `gain` × (observed − wanted acceptance) in every step.

    Attributes
    ----------
    squared_unit
        Squared length of the shortest move of a site, in which step sizes are bounded.
    gain
        How fast it follows; faster where recent steps were hardly ever accepted.
    """

    squared_unit: float
    gain: float = GAIN

    def init(self, sampler: Sampler) -> Followed:
        """Begin at the step size of the sampler."""
        log_step = jnp.log(sampler.parameters["step_size"])
        return Followed(log_step, jnp.full_like(log_step, FIRST_RATE))

    def observe(self, sampler: Sampler, state: SamplerState, info: StepInfo) -> Array:
        """The acceptance rate."""
        return info.acceptance_rate

    def update(self, adapted: Followed, observed: Array) -> Followed:
        """Take one step into account."""
        recent = adapted.recent + RECENT * (observed - adapted.recent)
        gain = jnp.where(recent < HARDLY, RESCUE_GAIN, self.gain)
        moved = adapted.log_step + gain * (observed - TARGET_ACCEPTANCE)
        bounds = (np.log(bound * self.squared_unit) for bound in STEP_RANGE)
        return Followed(jnp.clip(moved, *bounds), recent)

    def apply(self, sampler: Sampler, adapted: Followed) -> Sampler:
        """Return the sampler with the step size of the moment."""
        return sampler.replace({"step_size": jnp.exp(adapted.log_step)})

    def freeze(self, adapted: Followed) -> Followed:
        """Stay where it is."""
        return adapted
