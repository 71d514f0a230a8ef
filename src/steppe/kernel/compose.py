"""Pieces → a recipe; a recipe and a target → a sampler `(init, step)`."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from steppe.audit import audit_gradient
from steppe.errors import CompositionError, RecipeError, StartError
from steppe.kernel.coupling import Coupling, NoCoupling
from steppe.kernel.landscape import Landscape
from steppe.kernel.noise import Keys
from steppe.kernel.proposal.center import CenterRefresh, check_center_is_stable
from steppe.kernel.start import check_start
from steppe.kernel.state import Info, State
from steppe.pytree import Relative, is_concrete, piece, static
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

    @property
    def target(self) -> Target:
        """What is sampled."""
        return self.landscape.target

    def init(self, position: Array, key: Array | None = None) -> State:
        """Evaluate a starting position.

        Parameters
        ----------
        position
            One position of the domain. Checked, unless it is being traced.
        key
            Needed only when the center is drawn at the start.
        """
        if is_concrete((position, self.target)):
            check_start(self.target, position)
        position = jnp.asarray(position, jnp.result_type(float))
        state = State(position, self._start_center(position, key), *self._evaluate(position))
        return state._replace(cache=self._start_cache(position), scan=self._start_scan())

    def step(self, key: Array, state: State) -> tuple[State, Info]:
        """One full sweep over all blocks."""
        keys = Keys.of_step(key)
        info = None
        for block in self.blocks:
            state, block_info = block.step(self.landscape, keys, state)
            info = block_info or info
        assert info is not None  # `Recipe` admits exactly one block that moves the position
        return state, info

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.init, self.step))

    def _evaluate(self, position: Array) -> tuple[Array, Array | None]:
        if any(block.needs_gradient for block in self.blocks):
            return self.target.value_and_grad(position)
        return self.target.log_density(position), None

    def _start_center(self, position: Array, key: Array | None) -> Array | None:
        if not self.landscape.coupling.has_center:
            return None
        if self.center_start == "position":
            return position
        if key is None:
            raise StartError(
                "`init(position, key)` needs a key, because this recipe draws its center at the start "
                "(`center_start='conditional'`)."
            )
        state = State(position, position, jnp.zeros(()))
        draw = CenterRefresh(0.0).distribution(self.landscape, state)
        return draw.sample(Keys.of_step(key))

    def _start_cache(self, position: Array) -> Any:
        incremental = self.target.incremental
        if incremental is None or any(block.needs_gradient for block in self.blocks):
            return None
        return incremental.init(position)

    def _start_scan(self) -> Array | None:
        is_systematic = any(getattr(block, "scan", "") == "systematic" for block in self.blocks)
        return jnp.zeros((), jnp.int32) if is_systematic else None


@piece
class Recipe:
    """A sampler before it meets a target: named pieces and their numbers.

    Numbers are traced leaves: `recipe.replace(step_size=0.3)` never recompiles.
    """

    coupling: Coupling
    blocks: tuple[Any, ...]
    name: str = static()
    center_start: str = static(default="position")

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
        numbers._check_stability()
        if audit and not self.is_exact and is_concrete(target):
            audit_gradient(target, jax.random.key(0))
        landscape = Landscape(target, numbers.coupling)
        return Sampler(landscape, numbers.blocks, self.center_start)

    @property
    def is_exact(self) -> bool:
        """Whether every block leaves the joint law invariant, so that nothing is biased."""
        return all(block.is_exact for block in self.blocks)

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of the recipe by the names under which they were given."""
        return {name: value for piece_ in _pieces(self) for name, value in _numbers(piece_)}

    def replace(self, **numbers: Any) -> "Recipe":
        """Return the same recipe with other numbers."""
        unknown = set(numbers) - set(self.numbers)
        if unknown:
            raise RecipeError(
                f"`{self.name}` has no number {sorted(unknown)}; it has {sorted(self.numbers)}."
            )
        return _replaced(self, numbers)

    def _resolved(self, target: Target) -> "Recipe":
        """Return the recipe with numbers in the units of a domain, all of the default float type."""
        unit = target.domain.squared_unit

        def resolve(number: Any) -> Array:
            value = number.resolve(unit) if isinstance(number, Relative) else number
            return jnp.asarray(value, jnp.result_type(float))

        return jax.tree.map(resolve, self, is_leaf=lambda node: isinstance(node, Relative))

    def _check_stability(self) -> None:
        numbers = self.numbers
        steps = numbers.get("center_step_size"), numbers.get("coupling_variance")
        if self.is_exact or any(n is None or isinstance(n, Relative) for n in steps):
            return  # corrected, refreshed, or not known before a domain is
        check_center_is_stable(self.name, *steps)

    def _check_against(self, target: Target) -> None:
        num_sites = target.domain.num_sites
        for block in self.blocks:
            wanted = getattr(block, "block_size", None) or getattr(
                getattr(block, "proposal", None), "num_flips", 1
            )
            if wanted > num_sites:
                raise RecipeError(
                    f"`{self.name}` changes {wanted} sites at once, but {target.domain!r} has only "
                    f"{num_sites}. Use at most {num_sites}."
                )

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.numbers.items())
        return f"{self.name}({numbers})"


def recipe(
    name: str, *blocks: Any, coupling: Coupling | None = None, center_start: str = "position"
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
    """
    coupling = NoCoupling() if coupling is None else coupling
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
    made = Recipe(coupling, tuple(blocks), name, center_start)
    made._check_stability()
    return made


def _pieces(node: Any) -> Iterator[Any]:
    """Yield every dataclass inside a recipe, depth first."""
    if isinstance(node, tuple):
        for child in node:
            yield from _pieces(child)
    elif _is_piece(node):
        yield node
        for field in dataclasses.fields(node):
            yield from _pieces(getattr(node, field.name))


def _numbers(node: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        is_child = isinstance(value, tuple) or _is_piece(value)
        if not is_child and not field.metadata.get("static"):
            yield field.name, value


def _replaced(node: Any, numbers: dict[str, Any]) -> Any:
    if isinstance(node, tuple):
        return tuple(_replaced(child, numbers) for child in node)
    if not _is_piece(node):
        return node
    own = dict(_numbers(node))
    fields = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    changed = {
        name: numbers.get(name, value) if name in own else _replaced(value, numbers)
        for name, value in fields.items()
    }
    return dataclasses.replace(node, **changed)


def _is_piece(node: Any) -> bool:
    return dataclasses.is_dataclass(node) and not isinstance(node, Relative)
