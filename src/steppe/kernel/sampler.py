"""A recipe bound to a target: where a chain starts and how it steps."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import StartError
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.numbers import all_numbers
from steppe.kernel.proposal.center import CenterRefresh
from steppe.kernel.replicas import LatticeCenter, WeightedCenter
from steppe.kernel.start import check_gradient, check_start, start_array
from steppe.kernel.state import Info, State
from steppe.kernel.tempering import Tempered
from steppe.pytree import is_concrete, piece, static
from steppe.target import Target


@piece
class Sampler:
    """A recipe built for a target: `init(position)` and `step(key, state)`.

    It has the two methods of BlackJAX's `SamplingAlgorithm`, unpacks as `init, step = sampler`, and is
    a pytree whose leaves are the numbers of the recipe and the arrays of the target.
    """

    landscape: Landscape
    blocks: tuple[Any, ...]
    center_start: str = static(default="position")
    replicas: int | None = static(default=None)

    @property
    def target(self) -> Target:
        """What is sampled."""
        return self.landscape.target

    @property
    def evaluations_per_step(self) -> float:
        """What a step of one chain costs, in evaluations of the model (see `kernel.cost`)."""
        return sum(block.evaluations(self.landscape) for block in self.blocks)

    def init(self, position: Array, key: Array | None = None) -> State:
        """Evaluate a starting position.

        Parameters
        ----------
        position
            One position of the domain, or for an ensemble one per replica; a single one is then copied.
            Checked, unless it is being traced.
        key
            Needed only when the center is drawn at the start.
        """
        if is_concrete((position, self.target)):
            copies = self._replicated(start_array(position))
            what = "Chain" if self.replicas is None else "Copy"
            check_start(
                self.target, copies, batched=self.replicas is not None, num_chains=self.replicas, what=what
            )
        else:
            copies = self._replicated(position)
        copies = jnp.asarray(copies, jnp.result_type(float))
        center = self._start_center(copies, key)
        evaluate = self._evaluate if self.replicas is None else jax.vmap(self._evaluate)
        cache = self._start_cache(copies, center)
        state = State(copies, center, *evaluate(copies), cache, self._start_scan())
        check_gradient(state.gradient)
        for block in self.blocks:
            state = block.hide(state) if isinstance(block, Tempered) else state
        return state

    def step(self, key: Array, state: State) -> tuple[State, Info]:
        """One full sweep over all blocks."""
        keys = Keys.of_step(key, self.replicas)
        reports = {}
        for block in self.blocks:
            state, reports[block.moves] = block.step(self.landscape, keys, state)
        # Exactly one block moves the position, and its report is that of the step; a defect of the
        # log-density counts wherever it was met.
        info = next(report for moves, report in reports.items() if "position" in moves)
        met = [report.num_nonfinite for report in reports.values() if report is not None]
        return state, info._replace(num_nonfinite=sum(met))

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of the recipe by name."""
        return all_numbers(self)

    @property
    def has_lattice_center(self) -> bool:
        """Whether the center lives on the domain."""
        moves = [getattr(block, "proposal", None) for block in self.blocks if "center" in block.moves]
        return any(isinstance(m, LatticeCenter) for m in moves) or self.weighted_center is not None

    @property
    def weighted_center(self) -> WeightedCenter | None:
        """The block of a center that carries weight of its own, if there is one."""
        return next((block for block in self.blocks if isinstance(block, WeightedCenter)), None)

    def replace(self, **fields: Any) -> "Sampler":
        """Return a copy with other fields."""
        return dataclasses.replace(self, **fields)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.init, self.step))

    def _evaluate(self, position: Array) -> tuple[Array, Array | None]:
        if any(block.needs_gradient for block in self.blocks):
            return self.target.value_and_grad(position)
        return self.target.log_density(position), None

    def _replicated(self, position: Any) -> Any:
        shape = np.shape(position)
        if self.replicas is None or len(shape) != len(self.target.domain.shape):
            return position
        return jnp.broadcast_to(position, (self.replicas, *shape))

    def _start_center(self, position: Array, key: Array | None) -> Array | None:
        if not self.landscape.coupling.has_center:
            return None
        if self.center_start == "position":
            return position if self.replicas is None else position[0]
        if key is None:
            raise StartError(
                "`init(position, key)` needs a key, because this recipe draws its center at the start "
                "(`center_start='conditional'`)."
            )
        state = State(position, self.landscape.coupling.anchor(position), jnp.zeros(()))
        draw = LatticeCenter() if self.has_lattice_center else CenterRefresh()
        return draw.distribution(self.landscape, state).sample(Keys.of_step(key))

    def _start_cache(self, position: Array, center: Any) -> Any:
        if self.weighted_center is not None:
            return self.weighted_center.start(self.landscape, center)
        if any(block.needs_gradient for block in self.blocks):
            return self.landscape.tilt.remember(self.target, position)
        incremental = self.target.incremental
        return None if incremental is None else incremental.init(position)

    def _start_scan(self) -> Array | None:
        is_systematic = any(getattr(block, "scan", "") == "systematic" for block in self.blocks)
        return jnp.zeros((), jnp.int32) if is_systematic else None
