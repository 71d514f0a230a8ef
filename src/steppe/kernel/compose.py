"""Components → a recipe; a recipe and a target → a sampler."""

import dataclasses
from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import evaluate_at_once
from steppe.errors import CompositionError, RecipeError
from steppe.kernel.coupling import NoCoupling
from steppe.kernel.density import NoPenalty, Penalty
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
from steppe.kernel.proposals.center import check_center_is_stable
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import Block, Coupling
from steppe.pytree import is_concrete
from steppe.target.audit import check_guide, check_multilinear
from steppe.target.log_density import Target, hold_reals
from steppe.validation import number

if TYPE_CHECKING:
    from steppe.diagnostics.stationary import StationaryDistribution

CenterStart = Literal["position", "conditional"]
CENTER_STARTS = ("position", "conditional")


class Recipe(eqx.Module):
    """A sampler before it meets a target: components and their hyper-parameters.

    Hyper-parameters are traced leaves: `recipe.replace(step_size=0.3)` never recompiles.

    Examples
    --------
    >>> import jax, steppe
    >>> recipe = steppe.dmala(step_size=0.5)
    >>> recipe.name, recipe.is_adjusted
    ('dmala', True)
    >>> float(recipe.replace(step_size=0.7).parameters["step_size"]) > 0.6
    True
    >>> sampler = recipe.build(steppe.targets.paper_bernoulli())
    >>> sampler.init(jax.numpy.zeros(4)).position.shape
    (4,)
    """

    component_id = "recipe"

    coupling: Coupling
    blocks: tuple[Block, ...]
    name: str = eqx.field(static=True)
    center_start: CenterStart = eqx.field(static=True)
    penalty: Penalty
    inverse_temperature: Number = parameter(POSITIVE)

    def build(self, target: Target, *, audit: bool = True) -> Sampler:
        """Bind the recipe to a target.

        Parameters
        ----------
        target
            What to sample.
        audit
            Measure once whether the gradient says something about one-site differences, if the recipe is
            guided by it: an unadjusted one is refused if not, an adjusted one warned of.
        """
        if not isinstance(target, Target):
            raise RecipeError(
                f"`{self.name}(...).build(target)` needs a `steppe.Target`; got "
                f"{type(target).__name__}. Wrap a log-density as `steppe.Target(log_density, domain)`."
            )
        if target.domain.num_reals and not any("reals" in block.moves for block in self.blocks):
            names = [variable.name for variable in target.domain.real_variables]
            raise RecipeError(
                f"`{self.name}` moves discrete sites, and nothing moves the real parts {names}. Use "
                f"`steppe.mixed({self.name}())`, or hold them fixed: `target.given({{...}})`."
            )
        for block in self.blocks:
            block.check(self.name, target)
        resolved = self._resolve(target)
        resolved.check_ranges()
        resolved.check_stability()
        prepared = dataclasses.replace(
            resolved, blocks=tuple(block.prepare(target) for block in resolved.blocks)
        )
        if audit and is_concrete(target):
            with evaluate_at_once():  # a recipe may be built inside a traced function
                looked_at = hold_reals(target)
                if target.is_multilinear:
                    check_multilinear(looked_at)
                if prepared.uses_gradient:
                    check_guide(looked_at, self.name, is_adjusted=self.is_adjusted)
        return Sampler(prepared, target)

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
