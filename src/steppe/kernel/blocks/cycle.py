"""A cycle of step sizes within one step: large ones first, small ones after."""

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


class CycleBlock(AroundBlock[ProposalBlock[Array]]):
    """Apply a block once for every step size of a cycle, each with its own decision.

    Every application leaves the density invariant, whatever its step size, so the cycle does; it is not
    reversible. The step sizes fall from the step size of the block by half a cosine to `smallest` of it.

    Attributes
    ----------
    block
        What is applied.
    length
        Number of step sizes in the cycle.
    smallest
        The last of them, relative to the first.
    """

    component_id = "cycle-block"

    length: int = eqx.field(static=True)
    smallest: float = eqx.field(static=True)

    moves_replicas = False

    @property
    def uses_gradient(self) -> bool:
        """Whether the block does."""
        return self.block.uses_gradient

    def factors(self) -> np.ndarray:
        """Step sizes of the cycle relative to that of the block, from 1 down."""
        places = np.arange(self.length) / max(self.length - 1, 1)
        return self.smallest + (1 - self.smallest) * 0.5 * (1 + np.cos(np.pi * places))

    def scale(self, factor: Array | float) -> ProposalBlock[Array]:
        """Return the block at one place of the cycle."""
        step_size = jnp.asarray(read_parameters(self.block)["step_size"])
        return replace_parameters(self.block, {"step_size": step_size * factor})

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """One cycle; reports the mean acceptance and the sites that differ after it."""

        def apply(current: ChainState, now: tuple[Array, Array]) -> tuple[ChainState, StepInfo]:
            index, factor = now
            here = jax.tree.map(lambda key: jax.random.fold_in(key, index), keys)
            moved, _, info = self.scale(factor).step(here, density, current, own)
            return moved, info

        factors = jnp.asarray(self.factors(), state.log_density.dtype)
        new, info = jax.lax.scan(apply, state, (jnp.arange(self.length), factors))
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
        parts = [self.scale(factor).transition_matrix(density, center) for factor in self.factors()]
        return np.linalg.multi_dot([*parts, np.eye(len(parts[0]))])
