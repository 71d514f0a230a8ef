"""A cycle of step sizes within one step, from bold to careful, each with its own balancing exponent.

Notation: Pynadath, Bhattacharya, Hariharan, Zhang (2024). A move at place `k` of a cycle of `s` has the step
size `α_k = max{α (1 + cos(πk/s)) / 2, α_min}` and weighs a change `Δ` of the log-density by `exp{β_k Δ}`:
a half is balanced for small steps, 1 for large ones.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.blocks.metropolis import AroundBlock, ProposalBlock
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import read_parameters, replace_parameters
from steppe.kernel.types import ChainState, StepInfo

# The exponent that is balanced for small steps.
BALANCED = 0.5


def fall_by_cosine(length: int, smallest: float) -> np.ndarray:
    """Step sizes of a cycle relative to the first: half a cosine, not below `smallest`."""
    return np.maximum(0.5 * (1 + np.cos(np.pi * np.arange(length) / length)), smallest)


def follow_factors(factors: np.ndarray, boldest: float) -> np.ndarray:
    """Exponents that fall with the step sizes from `boldest` to a half at the smallest of several."""
    spread = 1 - factors.min()
    places = (factors - factors.min()) / spread if spread else np.ones_like(factors)
    return BALANCED + (boldest - BALANCED) * places


class CycleBlock(AroundBlock[ProposalBlock[Array]]):
    """Apply a block once for every place of a cycle, each with its own decision.

    Every application leaves the density invariant, whatever its step size and exponent, so the cycle does; it
    is not reversible.

    Attributes
    ----------
    block
        What is applied, with a `step_size` and an `exponent`.
    factors
        Step sizes relative to that of the block, one for every place.
    exponents
        `β_k`.
    fate
        What becomes of the cycle before a run: `"adapted"` to the target, or `"fixed"`.
    """

    component_id = "cycle-block"

    factors: Array
    exponents: Array
    fate: Literal["adapted", "fixed"] = eqx.field(static=True, default="fixed")

    moves_replicas = False

    @property
    def uses_gradient(self) -> bool:
        """Whether the block does."""
        return self.block.uses_gradient

    @property
    def length(self) -> int:
        """Number of places."""
        return len(self.factors)

    def at_place(self, factor: Array | float, exponent: Array | float) -> ProposalBlock[Array]:
        """Return the block at one place of the cycle."""
        step_size = jnp.asarray(read_parameters(self.block)["step_size"])
        return replace_parameters(self.block, {"step_size": step_size * factor, "exponent": exponent})

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """One cycle; reports the mean acceptance and the sites that differ after it."""

        def apply(current: ChainState, now: tuple[Array, Array, Array]) -> tuple[ChainState, StepInfo]:
            index, factor, exponent = now
            here = jax.tree.map(lambda key: jax.random.fold_in(key, index), keys)
            moved, _, info = self.at_place(factor, exponent).step(here, density, current, own)
            return moved, info

        places = jnp.arange(self.length), self.factors, self.exponents
        new, info = jax.lax.scan(apply, state, places)
        return (
            new,
            own,
            StepInfo(
                acceptance_rate=jnp.mean(info.acceptance_rate),
                is_accepted=jnp.any(info.is_accepted),
                num_flips=jnp.sum(density.domain.differs(new.position, state.position)),
                num_nonfinite=jnp.sum(info.num_nonfinite),
            ),
        )

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: those of every place of the cycle."""
        return self.length * self.block.count_evaluations(density)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Product of the matrices of all places of the cycle."""
        parts = [
            self.at_place(*place).transition_matrix(density, center)
            for place in zip(self.factors, self.exponents, strict=True)
        ]
        return np.linalg.multi_dot([*parts, np.eye(len(parts[0]))])
