"""Pieces → a recipe; a recipe and a target → a sampler."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.audit import audit_gradient
from steppe.domain import MAX_ENUMERATED
from steppe.errors import CompositionError, RecipeError
from steppe.kernel.conditional import BlockConditional, ball_size
from steppe.kernel.coupling import Coupling, NoCoupling
from steppe.kernel.landscape import Landscape
from steppe.kernel.numbers import all_numbers, with_numbers
from steppe.kernel.proposal.center import check_center_is_stable
from steppe.kernel.replicas import Replicas
from steppe.kernel.sampler import Sampler
from steppe.kernel.tilt import NoTilt, RoughnessTilt, Tilt
from steppe.pytree import Relative, is_concrete, piece, static
from steppe.target import Target
from steppe.validation import number

if TYPE_CHECKING:
    from steppe.diagnostics.laws import Law

# Numbers with a range, whatever recipe they belong to.
RANGES = {
    "step_size": ("positive", None),
    "center_step_size": ("positive", None),
    "coupling_variance": ("positive", None),
    "inverse_temperature": ("positive", None),
    "strength": ("not negative", float("inf")),
    "center_weight": ("not negative", float("inf")),
    "persistence": ("not negative", 1.0),
}


CENTER_STARTS = ("position", "conditional")


@piece
class Recipe:
    """A sampler before it meets a target: named pieces and their numbers.

    Numbers are traced leaves: `recipe.replace(step_size=0.3)` never recompiles.
    """

    coupling: Coupling
    blocks: tuple[Any, ...]
    name: str = static()
    center_start: str = static(default="position")
    tilt: Tilt = NoTilt()
    inverse_temperature: Array | float = 1.0

    def build(self, target: Target, *, audit: bool = True) -> Sampler:
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
        self._check_against(target)
        numbers = self._resolved(target)
        numbers.check_ranges()
        numbers._check_stability()
        if audit and not self.is_exact and is_concrete(target):
            with jax.ensure_compile_time_eval():  # a recipe may be built inside a traced function
                audit_gradient(target, jax.random.key(0))
        landscape = Landscape(target, numbers.coupling, numbers.tilt, numbers.inverse_temperature)
        return Sampler(landscape, numbers.blocks, self.center_start, self.coupling.replicas)

    @property
    def is_exact(self) -> bool:
        """Whether every block leaves the joint law invariant, so that nothing is biased."""
        return all(block.is_exact for block in self.blocks)

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of the recipe by the names under which they were given."""
        return all_numbers(self)

    def replace(self, **numbers: Any) -> "Recipe":
        """Return the same recipe with other numbers."""
        unknown = set(numbers) - set(self.numbers)
        if unknown:
            raise RecipeError(
                f"`{self.name}` has no number {sorted(unknown)}; it has {sorted(self.numbers)}."
            )
        checked = {name: number(f"{self.name}({name}=...)", value) for name, value in numbers.items()}
        return with_numbers(self, checked)

    def log_law(self, target: Target) -> "Law":
        """Return what this recipe samples on a target, as a law that can be evaluated.

        Parameters
        ----------
        target
            What is sampled.

        Returns
        -------
        Law
            `law(position)` or `law(position, center)` is the exact log-law up to a constant;
            `law.positions()` enumerates it on small domains, also where it is biased; `law.center(points)`
            is the law of the center; `law.statement` says it in words.
        """
        from steppe.diagnostics.laws import log_law

        return log_law(self, target)

    def _resolved(self, target: Target) -> "Recipe":
        """Return the recipe with numbers in the units of a domain, all of the default float type."""
        unit = target.domain.squared_unit

        def resolve(number: Any) -> Array:
            value = number.resolve(unit) if isinstance(number, Relative) else number
            with np.errstate(over="ignore"):  # out of range is said by `check_ranges`, with the name
                return jnp.asarray(value, jnp.result_type(float))

        return jax.tree.map(resolve, self, is_leaf=lambda node: isinstance(node, Relative))

    def check_ranges(self) -> None:
        """Check the numbers as the sampler will see them, in its own precision."""
        for name, value in self.numbers.items():
            least, below = RANGES.get(name, (None, None))
            if least is None or isinstance(value, Relative) or not is_concrete(value):
                continue
            is_inside = value > 0 if least == "positive" else 0 <= value < below
            if not (is_inside and jnp.isfinite(value)):
                what = "positive" if least == "positive" else f"in [0, {below:g})"
                raise RecipeError(
                    f"`{self.name}({name}=...)` must be {what} and finite in {jnp.result_type(float)}; got "
                    f"{value}."
                )

    def _check_stability(self) -> None:
        numbers = self.numbers
        steps = numbers.get("center_step_size"), numbers.get("coupling_variance")
        if self.is_exact or any(n is None or isinstance(n, Relative) for n in steps):
            return  # corrected, refreshed, or not known before a domain is
        check_center_is_stable(self.name, *steps)

    def _check_against(self, target: Target) -> None:
        num_sites = target.domain.num_sites
        permutes = any(getattr(getattr(b, "proposal", None), "permutes", False) for b in self.blocks)
        if permutes == target.domain.is_site_product:
            raise RecipeError(
                f"`{self.name}` moves {'orders' if permutes else 'single sites'}, and {target.domain!r} "
                f"has none. Use {'a recipe such as `dmala()`' if permutes else '`informed_permutation()`'}."
            )
        for block in self.blocks:
            wanted = getattr(block, "block_size", None) or getattr(
                getattr(block, "proposal", None), "num_flips", 1
            )
            if wanted > num_sites:
                raise RecipeError(
                    f"`{self.name}` changes {wanted} sites at once, but {target.domain!r} has only "
                    f"{num_sites}. Use at most {num_sites}."
                )
            if isinstance(block, BlockConditional):
                _check_ball(self.name, block, target)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.numbers.items())
        return f"{self.name}({numbers})"


def recipe(
    name: str,
    *blocks: Any,
    coupling: Coupling | None = None,
    center_start: str = "position",
    tilt: Tilt | None = None,
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
    tilt
        What bends the log-density itself; nothing by default.
    """
    coupling = NoCoupling() if coupling is None else coupling
    if center_start not in CENTER_STARTS:
        raise CompositionError(f"`{name}` starts its center at one of {CENTER_STARTS}; got {center_start!r}.")
    for block in blocks:
        if not hasattr(block, "moves") or not hasattr(block, "step"):
            raise CompositionError(
                f"`{name}` is composed of blocks such as `ProposeAndDecide`; got {block!r}."
            )
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
    if coupling.has_center and not any(block.needs_gradient for block in blocks):
        raise CompositionError(
            f"`{name}` combines exact conditionals with a center; conditionals of a coupled target are "
            "not available. Use a Langevin block."
        )
    if (coupling.replicas is not None) != any(isinstance(block, Replicas) for block in blocks):
        raise CompositionError(
            f"`{name}` must pair a coupling with replicas and a `Replicas` block; it has {coupling.replicas} "
            f"replicas and the blocks {[type(block).__name__ for block in blocks]}."
        )
    if isinstance(tilt, RoughnessTilt) and not any(block.needs_gradient for block in blocks):
        raise CompositionError(
            f"`{name}` tilts exact conditionals, which do not see a tilt. Use a Langevin block."
        )
    made = Recipe(coupling, tuple(blocks), name, center_start, NoTilt() if tilt is None else tilt)
    made._check_stability()
    return made


def _check_ball(name: str, block: BlockConditional, target: Target) -> None:
    radius = block.block_size if block.radius is None else block.radius
    size = ball_size(block.block_size, target.domain.max_levels, radius)
    if size > MAX_ENUMERATED:
        raise RecipeError(
            f"`{name}` would weigh {size:.3g} joint levels of {block.block_size} sites with up to "
            f"{target.domain.max_levels} levels; at most {MAX_ENUMERATED} are weighed. Use a smaller block "
            "or radius."
        )
