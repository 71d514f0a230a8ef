"""A cycle of step sizes within one step: bold moves first, careful ones after."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.block import AroundBlock, ProposeAndDecide
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.numbers import with_numbers
from steppe.kernel.state import Info, State
from steppe.pytree import piece, static


@piece
class Cycle(AroundBlock):
    """Apply a block once for every step size of a cycle, each with its own decision.

    Every application leaves the law invariant, whatever its step size, so the cycle does; it is not
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

    block: ProposeAndDecide
    length: int = static()
    smallest: float = static()

    needs_gradient = True

    @property
    def proposal(self) -> object:
        """The proposal that is applied again and again."""
        return self.block.proposal

    def factors(self) -> np.ndarray:
        """Step sizes of the cycle relative to that of the block, from 1 down."""
        places = np.arange(self.length) / max(self.length - 1, 1)
        return self.smallest + (1 - self.smallest) * 0.5 * (1 + np.cos(np.pi * places))

    def at(self, factor: Array) -> ProposeAndDecide:
        """The block at one place of the cycle."""
        step_size = self.block.proposal.step_size * factor
        return dataclasses.replace(
            self.block, proposal=with_numbers(self.block.proposal, {"step_size": step_size})
        )

    def evaluations(self, landscape: Landscape) -> float:
        """Evaluations of one step: those of every place of the cycle."""
        return self.length * self.block.evaluations(landscape)

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        """One cycle; reports the mean acceptance and the sites that differ after it."""

        def apply(current: State, now: tuple[Array, Array]) -> tuple[State, Info]:
            index, factor = now
            own = jax.tree.map(lambda key: jax.random.fold_in(key, index), keys)
            return self.at(factor).step(landscape, own, current)

        factors = jnp.asarray(self.factors(), state.log_density.dtype)
        new, info = jax.lax.scan(apply, state, (jnp.arange(self.length), factors))
        return new, Info(
            acceptance_rate=jnp.mean(info.acceptance_rate),
            is_accepted=jnp.any(info.is_accepted),
            num_flips=jnp.sum(landscape.domain.differs(new.position, state.position)),
            num_nonfinite=jnp.sum(info.num_nonfinite),
        )
