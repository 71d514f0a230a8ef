"""The adapted numbers of one chain: how they are read from a step and put into a sampler."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.kernel.numbers import with_numbers
from steppe.kernel.sampler import Sampler
from steppe.kernel.state import State
from steppe.run.adapt import COUPLING_RANGE, MOST_OBSERVED, RANGE, Adapt, Approach, DualAveraging, Observed


class Tuning(NamedTuple):
    """Searches for the numbers of one chain; `None` for a number that is not adapted."""

    step: DualAveraging | Approach | None
    coupling: Approach | None

    @classmethod
    def start(cls, sampler: Sampler, adapt: Adapt) -> "Tuning":
        """Begin at the numbers of the sampler."""
        numbers = sampler.numbers
        step = coupling = None
        if adapt.acceptance is not None:
            step = DualAveraging.start(numbers["step_size"])
        elif adapt.flip_rate is not None:
            step = Approach.start(numbers["step_size"])
        if adapt.center_distance is not None:
            coupling = Approach.start(numbers["coupling_variance"])
        return cls(step, coupling)

    def update(self, sampler: Sampler, adapt: Adapt, observed: Observed) -> "Tuning":
        """Take the observation of one step into account."""
        unit = sampler.target.domain.squared_unit
        step, coupling = self
        if isinstance(step, DualAveraging):
            assert adapt.acceptance is not None
            step = step.update(observed.step, adapt.acceptance, _bounds(RANGE, unit))
        elif step is not None:
            step = step.update(observed.step, _bounds(RANGE, unit))
        if coupling is not None:
            coupling = coupling.update(observed.coupling, _bounds(COUPLING_RANGE, unit))
        return Tuning(step, coupling)

    def numbers(self, is_warmup: Array) -> dict[str, Array]:
        """The adapted numbers by name: those on trial in warm-up, the averaged ones after it."""
        searches = {"step_size": self.step, "coupling_variance": self.coupling}
        return {
            name: jnp.exp(jnp.where(is_warmup, search.log_value, search.log_average))
            for name, search in searches.items()
            if search is not None
        }


def tuned(sampler: Sampler, numbers: dict[str, Array]) -> Sampler:
    """Return a sampler with adapted numbers; a center step size keeps its ratio to the coupling variance."""
    if not numbers:
        return sampler
    given = sampler.numbers
    if "coupling_variance" in numbers and "center_step_size" in given:
        ratio = numbers["coupling_variance"] / given["coupling_variance"]
        numbers = {**numbers, "center_step_size": given["center_step_size"] * ratio}
    return with_numbers(sampler, numbers)


def observe(
    adapt: Adapt, sampler: Sampler, acceptance_rate: Array, num_flips: Any, distance: Any
) -> Observed:
    """What the searches see of one step: a rate, or a number relative to what is wanted."""
    step = coupling = None
    if adapt.acceptance is not None:
        step = acceptance_rate
    elif adapt.flip_rate is not None:
        num_sites = sampler.target.domain.num_sites * (sampler.replicas or 1)
        step = jnp.minimum(num_flips / (num_sites * adapt.flip_rate), MOST_OBSERVED)
    if adapt.center_distance is not None:
        coupling = jnp.minimum(distance / adapt.center_distance, MOST_OBSERVED)
    return Observed(step, coupling)


def pooled(observed: Observed, counts: Array, num_chains: int, axis: str | None) -> Observed:
    """Mean over the chains that count, on every device, the same in any order of addition.

    Observations are rounded to multiples of a power of two so small that their sum just fits 31 bits: sums
    of whole numbers do not depend on how chains are spread over blocks, devices and processes.
    """
    scale = 2.0 ** (28 - num_chains.bit_length())

    def mean(values: Array) -> Array:
        whole = jnp.where(counts, jnp.round(values * scale), 0).astype(jnp.int32)
        total = jnp.sum(whole)
        total = total if axis is None else jax.lax.psum(total, axis)
        return total.astype(values.dtype) / (scale * num_chains)

    return jax.tree.map(mean, observed)


def center_distance(sampler: Sampler, state: State) -> Any:
    """Euclidean distance of the center from the position, or its mean over the copies; `None` without."""
    coupling = sampler.landscape.coupling
    if not coupling.has_center:
        return None
    tied = state.position if sampler.replicas is not None else coupling.anchor(state.position)
    axes = tuple(range(-jnp.ndim(state.center), 0))
    return jnp.mean(jnp.sqrt(jnp.sum((state.center - tied) ** 2, axis=axes)))


def _bounds(multiples: tuple[float, float], unit: float) -> tuple[float, float]:
    return multiples[0] * unit, multiples[1] * unit
