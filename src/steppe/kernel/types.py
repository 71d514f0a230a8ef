"""Contracts of a step: what a chain carries, what a step reports, and the protocols of its components.

A **block** moves some variables of one chain and owns its memory. A **proposal** turns an evaluated state
into a **distribution** of values and a value into the next state; a block that proposes needs nothing else. A
**coupling** ties a center to the position. Components satisfy these protocols by their shape: a component is
an `equinox.Module` of its own, in a file of its own, and nothing else has to be told about it.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, PyTree

from steppe.domain.base import Domain
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import Number
from steppe.target.log_density import Target

if TYPE_CHECKING:
    from steppe.kernel.density import JointDensity

Variable = Literal["position", "center", "reals"]
POSITION: tuple[Variable, ...] = ("position",)
CENTER: tuple[Variable, ...] = ("center",)
REALS: tuple[Variable, ...] = ("reals",)
POSITION_AND_CENTER: tuple[Variable, ...] = ("position", "center")

Value = TypeVar("Value")
Own = TypeVar("Own")

Scalar = Float[Array, ""]


class ChainState(NamedTuple):
    """Where a chain is, evaluated: the user's value and gradient, and nothing of the coupling.

    Attributes
    ----------
    position
        The discrete variable θ; with replicas, one per row.
    center
        The auxiliary variable θ_a, or `None` without coupling.
    log_density
        The user's `U(position)`; the coupling adds its own term in closed form.
    gradient
        The user's `∇U(position)`, or `None` for samplers that do not use it.
    roughness
        `R(position)` where a penalty needs a table of differences for it, else `None`.
    reals
        The real coordinates of a mixed model, else `None`.
    """

    position: Float[Array, "..."]
    center: Float[Array, "..."] | None
    log_density: Float[Array, "*replicas"]
    gradient: Float[Array, "..."] | None = None
    roughness: Float[Array, "*replicas"] | None = None
    reals: Float[Array, " reals"] | None = None


class SamplerState(NamedTuple):
    """A chain with the memories of the blocks that move it: what `init` returns and `step` takes.

    The first fields are those of `ChainState`.

    Attributes
    ----------
    memory
        What each block remembers from step to step, in the order of the blocks.
    """

    position: Float[Array, "..."]
    center: Float[Array, "..."] | None
    log_density: Float[Array, "*replicas"]
    gradient: Float[Array, "..."] | None = None
    roughness: Float[Array, "*replicas"] | None = None
    reals: Float[Array, " reals"] | None = None
    memory: tuple[PyTree, ...] = ()

    @property
    def chain(self) -> ChainState:
        """The chain without memories."""
        return ChainState(*self[:6])


class RungStatistics(NamedTuple):
    """What one step of a tempered chain did, rung by rung.

    Attributes
    ----------
    log_density
        `U` at every rung, before swaps.
    acceptance_rate
        Acceptance rate of the moves at every rung.
    swap_rate
        Probability with which neighbours would swap, offered or not.
    rung
        At which rung every replica is, after swaps.
    round_trips
        Round trips of all replicas between the ends of the ladder, since the start.
    """

    log_density: Float[Array, " rungs"]
    acceptance_rate: Float[Array, " rungs"]
    swap_rate: Float[Array, " pairs"]
    rung: Int[Array, " rungs"]
    round_trips: Int[Array, ""]


class StepInfo(NamedTuple):
    """What one step did.

    Attributes
    ----------
    acceptance_rate
        Probability with which the proposal was accepted, in [0, 1].
    is_accepted
        Whether it was. Draws from conditionals are always accepted.
    num_flips
        Number of sites whose level changed in the step.
    num_nonfinite
        1 if the proposed state had a NaN or `+inf` log-density or a non-finite gradient (the move is
        then rejected), else 0.
    rungs
        What happened at the rungs of a tempered chain, else `None`.
    real_acceptance_rate
        Acceptance rate of the move of real coordinates in a mixed model, else `None`.
    """

    acceptance_rate: Scalar
    is_accepted: Bool[Array, ""]
    num_flips: Int[Array, ""]
    num_nonfinite: Int[Array, ""]
    rungs: RungStatistics | None = None
    real_acceptance_rate: Scalar | None = None


@runtime_checkable
class Distribution(Protocol[Value]):
    """What a proposal draws from."""

    def sample(self, keys: Keys) -> Value:
        """Draw a value."""
        ...

    def log_prob_terms(self, value: Value) -> list[Array]:
        """Log-probability of a value as arrays of terms; their sum is `log_prob`.

        Terms and not their sum, because a Metropolis ratio subtracts those of the way back before it sums.
        """
        ...


@runtime_checkable
class Proposal(Protocol[Value]):
    """From an evaluated state to a distribution of values, and from a value to the next state."""

    @property
    def moves(self) -> tuple[Variable, ...]:
        """The variables it changes."""
        ...

    @property
    def is_conditional(self) -> bool:
        """Whether a draw leaves the joint density invariant without a Metropolis decision."""
        ...

    @property
    def uses_gradient(self) -> bool:
        """Whether states must carry the gradient."""
        ...

    def prepare(self, target: Target) -> "Proposal[Value]":
        """Return the proposal with what it chooses once for a target; most return themselves."""
        ...

    def at(self, density: "JointDensity", state: ChainState) -> Distribution[Value]:
        """Return the distribution proposed at a state."""
        ...

    def apply(self, density: "JointDensity", state: ChainState, value: Value) -> ChainState:
        """Return the evaluated state a value leads to."""
        ...

    def inverse(self, state: ChainState, value: Value) -> Value:
        """Return the value that leads back to `state` from where `value` leads."""
        ...

    def count_evaluations(self, density: "JointDensity") -> int:
        """Evaluations beyond that of the proposed state."""
        ...

    def support(self, density: "JointDensity", state: ChainState) -> Value:
        """All values, stacked, for enumeration on small domains."""
        ...

    def check(self, name: str, target: Target) -> None:
        """Refuse a target whose states it cannot change."""
        ...


@runtime_checkable
class Block(Protocol[Own]):
    """One part of a step. It moves its variables, given all others, and owns its memory."""

    @property
    def moves(self) -> tuple[Variable, ...]:
        """The variables it changes."""
        ...

    @property
    def is_adjusted(self) -> bool:
        """Whether it leaves the joint density invariant."""
        ...

    @property
    def uses_gradient(self) -> bool:
        """Whether the state must carry the gradient."""
        ...

    @property
    def moves_replicas(self) -> bool:
        """Whether it moves several tied states at once."""
        ...

    @property
    def chains_last(self) -> bool:
        """Whether it steps many chains faster where they stand on the last axis."""
        ...

    @property
    def takes_field(self) -> bool:
        """Whether it leaves a density invariant that has a field beside `β U`."""
        ...

    def prepare(self, target: Target) -> "Block":
        """Return the block with what it computes once for a target; most return themselves."""
        ...

    def init(self, density: "JointDensity", state: ChainState, previous: Own | None = None) -> Own:
        """Return what is remembered at a state; `previous` is the memory before the target changed."""
        ...

    def step(
        self, keys: Keys, density: "JointDensity", state: ChainState, own: Own
    ) -> tuple[ChainState, Own, StepInfo | None]:
        """Move once; `None` where there was nothing to decide or to report."""
        ...

    def count_evaluations(self, density: "JointDensity") -> float:
        """What a step costs, in evaluations of the model."""
        ...

    def check(self, name: str, target: Target) -> None:
        """Refuse a target whose states it cannot move."""
        ...

    def transition_matrix(self, density: "JointDensity", center: Array | None) -> np.ndarray:
        """Probability of every move between the positions of a small domain, given the center."""
        ...


@runtime_checkable
class VisitsSites(Protocol):
    """A block that changes one site at a time, or a few: chains side by side wait for one another."""

    def steps_together(self, target: Target) -> bool:
        """Whether chains side by side lose nothing by it on a target."""
        ...


class Guided:
    """What proposals share that are guided by the gradient of any target."""

    uses_gradient = True

    def prepare(self, target: Target) -> Self:
        """Return the proposal itself."""
        return self


class Unprepared:
    """What blocks share that compute nothing once for a target and step chain by chain."""

    chains_last = False
    takes_field = False

    def prepare(self, target: Target) -> Self:
        """Return the block itself."""
        return self


@runtime_checkable
class Coupling(Protocol):
    """What ties a center to the position, in closed form."""

    @property
    def formula(self) -> str:
        """What it subtracts from the log-density of one position, in symbols."""
        ...

    @property
    def has_center(self) -> bool:
        """Whether there is a center."""
        ...

    @property
    def replicas(self) -> int | None:
        """Number of positions tied to the center, or `None` for one without a leading axis."""
        ...

    @property
    def is_lattice(self) -> bool:
        """Whether the center lives on the levels of the domain."""
        ...

    @property
    def center_weight(self) -> Number | None:
        """`γ`: the center itself counts with `γ U`; `None` for not at all."""
        ...

    @property
    def inverse_variance(self) -> Number:
        """`1/η`."""
        ...

    @property
    def center_variance(self) -> Number:
        """Variance of a center coordinate given all replicas."""
        ...

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient of its log-density with respect to the position."""
        ...

    def log_density_terms(self, position: Array, center: Array | None) -> Array:
        """Its log-density, term by term."""
        ...

    def anchor(self, position: Array) -> Array:
        """What the center is tied to: a function of the position."""
        ...

    def center_given(self, domain: Domain, position: Array) -> Distribution[Array]:
        """Conditional distribution of the center."""
        ...

    def with_replicas(self, replicas: int) -> "Coupling":
        """Return the coupling of another number of replicas."""
        ...

    def move_differences(self, kind: str, position: Array, center: Array | None) -> Array:
        """Change of its log-density by every move of a permutation, a table over (first, last)."""
        ...
