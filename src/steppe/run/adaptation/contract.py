"""The contract of an adaptation."""

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from steppe.kernel.types import SamplerState, StepInfo

if TYPE_CHECKING:
    from steppe.kernel.sampler import Sampler

A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - what is observed


@runtime_checkable
class Adaptation(Protocol[A, O]):
    """A transformation of samplers that learns from their steps."""

    def init(self, sampler: "Sampler") -> A:
        """Begin at the hyper-parameters of the sampler."""
        ...

    def observe(self, sampler: "Sampler", state: SamplerState, info: StepInfo) -> O:
        """Return what is learned from: numbers whose mean over chains means the same."""
        ...

    def update(self, adapted: A, observed: O) -> A:
        """Take one observation into account."""
        ...

    def apply(self, sampler: "Sampler", adapted: A) -> "Sampler":
        """Return the sampler with adapted hyper-parameters."""
        ...

    def freeze(self, adapted: A) -> A:
        """Return what is used once nothing is adapted any more."""
        ...
