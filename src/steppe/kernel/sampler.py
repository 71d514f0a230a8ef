"""A recipe bound to a target: the first state of a chain, and one step of it."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.domain.structured import Structured, split_reals
from steppe.errors import StartError
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import Number, replace_parameters
from steppe.kernel.start import check_gradient, check_start, flatten_start, start_array
from steppe.kernel.types import ChainState, SamplerState, StepInfo
from steppe.pytree import is_concrete
from steppe.target.log_density import Target

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe


class Sampler(eqx.Module):
    """A recipe built for a target: `init(position)` and `step(key, state)`.

    It has the two methods of BlackJAX's `SamplingAlgorithm`, unpacks as `init, step = sampler`, and is
    a pytree whose leaves are the hyper-parameters of the recipe and the arrays of the target.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.paper_bernoulli()
    >>> sampler = steppe.dmala().build(target)
    >>> def advance(state, key):
    ...     state, info = sampler.step(key, state)
    ...     return state, state.position
    >>> start = sampler.init(target.domain.draw(jax.random.key(0)))
    >>> _, draws = jax.lax.scan(advance, start, jax.random.split(jax.random.key(1), 100))
    >>> draws.shape
    (100, 4)
    """

    recipe: "Recipe"
    target: Target

    if not TYPE_CHECKING:
        # Equinox makes methods pytrees that hash their arrays, and `jax.jit(sampler.step)` needs to hash one.
        __getattribute__ = object.__getattribute__

    @property
    def density(self) -> JointDensity:
        """The joint density that the blocks see."""
        recipe = self.recipe
        return JointDensity(self.target, recipe.coupling, recipe.penalty, recipe.inverse_temperature)

    @property
    def replicas(self) -> int | None:
        """Number of tied positions, or `None` for one without a leading axis."""
        return self.recipe.replicas

    @property
    def chains_last(self) -> bool:
        """Whether many chains step faster where they stand on the last axis."""
        return any(block.chains_last for block in self.recipe.blocks)

    @property
    def evaluations_per_step(self) -> float:
        """What a step of one chain costs, in evaluations of the model (see `kernel.cost`)."""
        return sum(block.count_evaluations(self.density) for block in self.recipe.blocks)

    @property
    def parameters(self) -> dict[str, Array]:
        """The hyper-parameters by name."""
        return {name: jnp.asarray(value) for name, value in self.recipe.parameters.items()}

    def replace(self, parameters: Mapping[str, Number]) -> "Sampler":
        """Return the sampler with other values of hyper-parameters; names it does not have are ignored."""
        return Sampler(replace_parameters(self.recipe, parameters), self.target)

    def init(
        self, position: Structured, key: Array | None = None, reals: Array | None = None
    ) -> SamplerState:
        """Evaluate a starting position.

        Parameters
        ----------
        position
            One position of the domain, or with replicas one per replica; a single one is then repeated.
            Checked, unless it is being traced.
        key
            Needed only when the center is drawn at the start, or the real coordinates of a mixed model.
        reals
            Those coordinates, if they are not part of the position.
        """
        position, given = split_reals(self.target.domain, position)
        reals = self._start_reals(key, given if reals is None else reals)
        position = flatten_start(self.target.domain, position)
        if is_concrete((position, self.target, reals)):
            positions = self._repeat(start_array(position))
            what = "Chain" if self.replicas is None else "Replica"
            check_start(
                self.target if reals is None else self.target.given(reals),
                positions,
                batched=self.replicas is not None,
                num_chains=self.replicas,
                what=what,
            )
        else:
            positions = self._repeat(position)
        positions = jnp.asarray(positions, jnp.result_type(float))
        chain = self._evaluate(positions, self._start_center(positions, key), reals)
        check_gradient(chain.gradient)
        return self._remember(chain)

    def refresh(self, state: SamplerState) -> SamplerState:
        """Evaluate a state again after the target changed; the center and the place of a scan are kept."""
        return self._remember(self._evaluate(state.position, state.center, state.reals), state.memory)

    def step(self, key: Array, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        """One full sweep over all blocks."""
        keys, density, chain = Keys.of_step(key, self.replicas), self.density, state.chain
        memory, reported, nonfinite, of_reals = [], [], [], []
        for block, own in zip(self.recipe.blocks, state.memory, strict=True):
            chain, remembered, info = block.step(keys, density, chain, own)
            memory.append(remembered)
            # Exactly one block moves the position, and its report is that of the step; a defect of the
            # log-density counts wherever it was met.
            if info is not None:
                reported += [info] * ("position" in block.moves)
                of_reals += [info.real_acceptance_rate] * ("reals" in block.moves)
                nonfinite.append(info.num_nonfinite)
        info = reported[0]._replace(num_nonfinite=sum(nonfinite))
        if of_reals:
            info = info._replace(real_acceptance_rate=of_reals[0])
        return SamplerState(*chain, memory=tuple(memory)), info

    def __iter__(self) -> Iterator[Callable[..., PyTree]]:
        return iter((self.init, self.step))

    def _evaluate(self, positions: Array, center: Array | None, reals: Array | None) -> ChainState:
        target = self.target if reals is None else self.target.given(reals)

        def evaluate(position: Array) -> tuple[Array, Array | None]:
            if self.recipe.uses_gradient:
                return target.value_and_grad(position)
            return target.log_density(position), None

        mapped = evaluate if self.replicas is None else jax.vmap(evaluate)
        roughness = self.recipe.penalty.measure(target, positions)
        return ChainState(positions, center, *mapped(positions), roughness, reals)

    def _remember(self, chain: ChainState, previous: tuple[PyTree, ...] | None = None) -> SamplerState:
        blocks = self.recipe.blocks
        before = previous or (None,) * len(blocks)
        memory = (block.init(self.density, chain, own) for block, own in zip(blocks, before, strict=True))
        return SamplerState(*chain, memory=tuple(memory))

    def _repeat(self, position: ArrayLike) -> ArrayLike:
        shape = np.shape(position)
        if self.replicas is None or len(shape) != len(self.target.domain.shape):
            return position
        return jnp.broadcast_to(position, (self.replicas, *shape))

    def _start_reals(self, key: Array | None, given: Array | None) -> Array | None:
        domain = self.target.domain
        if not domain.num_reals or given is not None:
            return given
        if key is None:
            names = [variable.name for variable in domain.real_variables]
            raise StartError(f"`init(position)` needs values of {names} in it, or a key to draw them.")
        return domain.draw_reals(jax.random.fold_in(key, 1))

    def _start_center(self, position: Array, key: Array | None) -> Array | None:
        coupling = self.recipe.coupling
        if not coupling.has_center:
            return None
        if self.recipe.center_start == "position":
            return position if self.replicas is None else position[0]
        if key is None:
            raise StartError(
                "`init(position, key)` needs a key, because this recipe draws its center at the start "
                "(`center_start='conditional'`)."
            )
        return coupling.center_given(self.target.domain, position).sample(Keys.of_step(key))
