"""Components → a recipe; a recipe and a target → a sampler."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.audit import audit_gradient
from steppe.errors import CompositionError, RecipeError, StartError
from steppe.kernel.coupling import NoCoupling
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import (
    POSITIVE,
    Number,
    Relative,
    is_relative,
    list_parameters,
    parameter,
    read_parameters,
    replace_parameters,
)
from steppe.kernel.penalty import NoPenalty, Penalty
from steppe.kernel.proposals.center import check_center_is_stable
from steppe.kernel.start import check_gradient, check_start, flatten_start, start_array
from steppe.kernel.types import Block, ChainState, Coupling, SamplerState, StepInfo
from steppe.pytree import is_concrete
from steppe.target import Target
from steppe.validation import number

if TYPE_CHECKING:
    from steppe.diagnostics.stationary import StationaryDistribution

CenterStart = Literal["position", "conditional"]
CENTER_STARTS = ("position", "conditional")


class Recipe(eqx.Module):
    """A sampler before it meets a target: components and their hyper-parameters.

    Hyper-parameters are traced leaves: `recipe.replace(step_size=0.3)` never recompiles.
    """

    component_id = "recipe"

    coupling: Coupling
    blocks: tuple[Block, ...]
    name: str = eqx.field(static=True)
    center_start: CenterStart = eqx.field(static=True)
    penalty: Penalty
    inverse_temperature: Number = parameter(POSITIVE)

    def build(self, target: Target, *, audit: bool = True) -> "Sampler":
        """Bind the recipe to a target.

        Parameters
        ----------
        target
            What to sample.
        audit
            Check once that the gradient says something about one-site differences, if the recipe
            depends on it for correctness (that is, if it is unadjusted).
        """
        if not isinstance(target, Target):
            raise RecipeError(
                f"`{self.name}(...).build(target)` needs a `steppe.Target`; got "
                f"{type(target).__name__}. Wrap a log-density as `steppe.Target(log_density, domain)`."
            )
        for block in self.blocks:
            block.check(self.name, target)
        resolved = self._resolve(target)
        resolved.check_ranges()
        resolved.check_stability()
        if audit and not self.is_adjusted and is_concrete(target):
            with jax.ensure_compile_time_eval():  # a recipe may be built inside a traced function
                audit_gradient(target, jax.random.key(0))
        return Sampler(resolved, target)

    @property
    def is_adjusted(self) -> bool:
        """Whether every block leaves the joint density invariant, so that nothing is biased."""
        return all(block.is_adjusted for block in self.blocks)

    @property
    def uses_gradient(self) -> bool:
        """Whether any block needs the gradient."""
        return any(block.uses_gradient for block in self.blocks)

    @property
    def replicas(self) -> int | None:
        """Number of tied positions, or `None` for one without a leading axis."""
        return self.coupling.replicas

    @property
    def parameters(self) -> dict[str, Number | Relative]:
        """The hyper-parameters by the names under which they were given."""
        return read_parameters(self)

    def replace(self, **parameters: ArrayLike) -> "Recipe":
        """Return the same recipe with other values of some hyper-parameters."""
        unknown = set(parameters) - set(self.parameters)
        if unknown:
            raise RecipeError(
                f"`{self.name}` has no hyper-parameter {sorted(unknown)}; it has {sorted(self.parameters)}."
            )
        checked = {name: number(f"{self.name}({name}=...)", value) for name, value in parameters.items()}
        return replace_parameters(self, checked)

    def with_replicas(self, replicas: int) -> "Recipe":
        """Return the same recipe with another number of replicas, which is part of the program."""
        return dataclasses.replace(self, coupling=self.coupling.with_replicas(replicas))

    def stationary(self, target: Target) -> "StationaryDistribution":
        """Return what this recipe samples on a target, as a distribution that can be evaluated.

        Parameters
        ----------
        target
            What is sampled.

        Returns
        -------
        StationaryDistribution
            `log_prob(position)` or `log_prob(position, center)` is the exact log-probability up to a
            constant;
            `probabilities()` enumerates it on small domains, also where it is biased;
            `center_log_prob(points)` is the distribution of the center; `description` says it in words.
        """
        from steppe.diagnostics.stationary import find_stationary

        return find_stationary(self, target)

    def check_ranges(self) -> None:
        """Refuse hyper-parameters out of their range, in the precision of the sampler."""
        for name, value, declared in list_parameters(self):
            if is_relative(value) or not is_concrete(value):
                continue
            if not (declared.contains(float(value)) and jnp.isfinite(value)):
                raise RecipeError(
                    f"`{self.name}({name}=...)` must be {declared} and finite in {jnp.result_type(float)}; "
                    f"got {value}."
                )

    def check_stability(self) -> None:
        """Refuse an unadjusted center step that diverges."""
        parameters = self.parameters
        step, variance = parameters.get("center_step_size"), parameters.get("coupling_variance")
        if not self.is_adjusted and step is not None and variance is not None:
            check_center_is_stable(self.name, step, variance)

    def _resolve(self, target: Target) -> "Recipe":
        """Return the recipe with numbers in the units of a domain, all of the default float type."""
        unit = target.domain.squared_unit

        def resolve(number: Number | Relative) -> Array:
            value = number.resolve(unit) if is_relative(number) else number
            with np.errstate(over="ignore"):  # out of range is said by `check_ranges`, with the name
                return jnp.asarray(value, jnp.result_type(float))

        return jax.tree.map(resolve, self, is_leaf=is_relative)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.name}({parameters})"


class Sampler(eqx.Module):
    """A recipe built for a target: `init(position)` and `step(key, state)`.

    It has the two methods of BlackJAX's `SamplingAlgorithm`, unpacks as `init, step = sampler`, and is
    a pytree whose leaves are the hyper-parameters of the recipe and the arrays of the target.
    """

    recipe: Recipe
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

    def init(self, position: ArrayLike, key: Array | None = None) -> SamplerState:
        """Evaluate a starting position.

        Parameters
        ----------
        position
            One position of the domain, or with replicas one per replica; a single one is then repeated.
            Checked, unless it is being traced.
        key
            Needed only when the center is drawn at the start.
        """
        position = flatten_start(self.target.domain, position)
        if is_concrete((position, self.target)):
            positions = self._repeat(start_array(position))
            what = "Chain" if self.replicas is None else "Replica"
            check_start(
                self.target,
                positions,
                batched=self.replicas is not None,
                num_chains=self.replicas,
                what=what,
            )
        else:
            positions = self._repeat(position)
        positions = jnp.asarray(positions, jnp.result_type(float))
        chain = self._evaluate(positions, self._start_center(positions, key))
        check_gradient(chain.gradient)
        return self._remember(chain)

    def refresh(self, state: SamplerState) -> SamplerState:
        """Evaluate a state again after the target changed; the center and the place of a scan are kept."""
        return self._remember(self._evaluate(state.position, state.center), state.memory)

    def step(self, key: Array, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        """One full sweep over all blocks."""
        keys, density, chain = Keys.of_step(key, self.replicas), self.density, state.chain
        memory, reported, nonfinite = [], [], []
        for block, own in zip(self.recipe.blocks, state.memory, strict=True):
            chain, remembered, info = block.step(keys, density, chain, own)
            memory.append(remembered)
            # Exactly one block moves the position, and its report is that of the step; a defect of the
            # log-density counts wherever it was met.
            if info is not None:
                reported += [info] * ("position" in block.moves)
                nonfinite.append(info.num_nonfinite)
        info = reported[0]._replace(num_nonfinite=sum(nonfinite))
        return SamplerState(*chain, memory=tuple(memory)), info

    def __iter__(self) -> Iterator[Callable[..., PyTree]]:
        return iter((self.init, self.step))

    def _evaluate(self, positions: Array, center: Array | None) -> ChainState:
        def evaluate(position: Array) -> tuple[Array, Array | None]:
            if self.recipe.uses_gradient:
                return self.target.value_and_grad(position)
            return self.target.log_density(position), None

        mapped = evaluate if self.replicas is None else jax.vmap(evaluate)
        roughness = self.recipe.penalty.measure(self.target, positions)
        return ChainState(positions, center, *mapped(positions), roughness)

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


def recipe(
    name: str,
    *blocks: Block,
    coupling: Coupling | None = None,
    center_start: CenterStart = "position",
    penalty: Penalty | None = None,
) -> Recipe:
    """Compose blocks into a recipe, refusing combinations that are not a sampler.

    Parameters
    ----------
    name
        What errors and tables call it.
    blocks
        What moves, in the order of the sweep.
    coupling
        What ties a center to the position; none by default.
    center_start
        `"position"` or `"conditional"`: where the center starts.
    penalty
        What is subtracted from the log-density itself; nothing by default.
    """
    coupling = NoCoupling() if coupling is None else coupling
    penalty = NoPenalty() if penalty is None else penalty
    if center_start not in CENTER_STARTS:
        raise CompositionError(f"`{name}` starts its center at one of {CENTER_STARTS}; got {center_start!r}.")
    for block in blocks:
        if not isinstance(block, eqx.Module):
            raise CompositionError(f"`{name}` is composed of blocks such as `ProposalBlock`; got {block!r}.")
    moved = [variable for block in blocks for variable in block.moves]
    if moved.count("position") != 1 or moved.count("center") > 1:
        raise CompositionError(
            f"`{name}` must move the position in exactly one block and the center in at most one; "
            f"its blocks move {moved}."
        )
    if ("center" in moved) != coupling.has_center:
        raise CompositionError(
            f"`{name}` moves {moved} under {type(coupling).__name__}: a center needs a coupling, and a "
            "coupling needs a block that moves its center."
        )
    if coupling.has_center and not any(block.uses_gradient for block in blocks):
        raise CompositionError(
            f"`{name}` combines Gibbs conditionals with a center; conditionals of a coupled target are "
            "not available. Use a Langevin block."
        )
    if (coupling.replicas is not None) != any(block.moves_replicas for block in blocks):
        raise CompositionError(
            f"`{name}` must pair a coupling with replicas and a `ReplicasBlock`; it has {coupling.replicas} "
            f"replicas and the blocks {[type(block).__name__ for block in blocks]}."
        )
    if not penalty.is_null and not any(block.uses_gradient for block in blocks):
        raise CompositionError(
            f"`{name}` penalises Gibbs conditionals, which do not see a penalty. Use a Langevin block."
        )
    made = Recipe(coupling, tuple(blocks), name, center_start, penalty, 1.0)
    made.check_stability()
    return made
