"""Follow a wanted acceptance rate at a constant gain, while other hyper-parameters move."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.adaptation.warmup import STEP_RANGE, TARGET_ACCEPTANCE

# Change of log(step size) per step and unit of (observed − wanted) acceptance. The wanted step size moves
# with the schedule, so the gain does not fall; at 0.05 it follows within some fifty steps.
GAIN = 0.05


@dataclasses.dataclass(frozen=True)
class FollowAcceptance:
    """Let `log(step size)` rise by `gain` × (observed − wanted acceptance) in every step.

    Attributes
    ----------
    squared_unit
        Squared length of the shortest move of a site, in which step sizes are bounded.
    gain
        How fast it follows.
    """

    squared_unit: float
    gain: float = GAIN

    def init(self, sampler: Sampler) -> Array:
        """Begin at the step size of the sampler."""
        return jnp.log(sampler.parameters["step_size"])

    def observe(self, sampler: Sampler, state: SamplerState, info: StepInfo) -> Array:
        """The acceptance rate."""
        return info.acceptance_rate

    def update(self, adapted: Array, observed: Array) -> Array:
        """Take one step into account."""
        moved = adapted + self.gain * (observed - TARGET_ACCEPTANCE)
        return jnp.clip(moved, *(np.log(bound * self.squared_unit) for bound in STEP_RANGE))

    def apply(self, sampler: Sampler, adapted: Array) -> Sampler:
        """Return the sampler with the step size of the moment."""
        return sampler.replace({"step_size": jnp.exp(adapted)})

    def freeze(self, adapted: Array) -> Array:
        """Stay where it is."""
        return adapted
