"""Which hyper-parameter a goal moves, and which values of it are tried."""

import dataclasses
from collections.abc import Sequence
from typing import get_args

import numpy as np

from steppe.errors import RunError
from steppe.kernel.blocks.metropolis import AroundBlock, ProposalBlock
from steppe.kernel.compose import Recipe
from steppe.kernel.proposals.site_proposal import Balancing, WeighedChanges
from steppe.kernel.types import Block
from steppe.target import Target
from steppe.validation import number

# In units of the shortest squared move.
STEP_SIZES = np.geomspace(0.05, 12.8, 9)
COUPLING_VARIANCES = np.geomspace(0.125, 8.0, 7)
PERSISTENCES = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 0.95])
# What a tilted chain pays for every nat that one site can lose: the strength is this times the sites.
PRICES = np.geomspace(1 / 64, 2.0, 8)
REPLICAS = (1, 2, 3, 4, 6, 8)

# Numbers that bend the distribution on purpose, in the order in which they are preferred.
FLAT_NUMBERS = ("strength", "replicas", "coupling_variance")


def choose_parameter(recipe: Recipe, goal: str, named: str | None) -> str:
    """Which hyper-parameter a goal moves; refuses what the recipe has not or cannot serve the goal."""
    owned = _list_parameters(recipe)
    if goal == "loss":
        options = [name for name in FLAT_NUMBERS if name in owned and changes_the_distribution(recipe, name)]
        if not options:
            raise RunError(
                f"`{recipe.name}` has no hyper-parameter that trades E[U] for flatness. Use "
                "`roughness_tilted()` or `robust_ensemble()`."
            )
    else:
        options = ["step_size"] if "step_size" in owned else []
    moved = named if named is not None else (options or [None])[0]
    if moved is None:
        raise RunError(
            f"`{recipe.name}` has no step size. Name the one to tune (`parameter=...`) among {sorted(owned)}."
        )
    if moved not in owned:
        raise RunError(f"`tune(parameter={moved!r})`: `{recipe.name}` has {', '.join(sorted(owned))}.")
    if goal == "loss" and moved not in options:
        raise RunError(f"`tune(goal='loss')` moves {' or '.join(options)} of `{recipe.name}`; got {moved!r}.")
    if goal == "acceptance" and moved != "step_size":
        raise RunError(f"`tune(goal='acceptance')` moves the step size; got {moved!r}. Use `goal='ess'`.")
    if goal != "loss":
        _check_adjusted(recipe, goal)
    if goal == "ess" and changes_the_distribution(recipe, moved):
        raise RunError(
            f"{moved} of `{recipe.name}` changes what is sampled, so effective draws do not compare. Use "
            "`goal='loss'`, or name one that leaves the distribution alone."
        )
    return moved


def changes_the_distribution(recipe: Recipe, moved: str) -> bool:
    """Whether a hyper-parameter of an adjusted recipe changes the distribution of its position."""
    if moved == "coupling_variance":
        return recipe.coupling.replicas is not None
    return moved in ("strength", "replicas", "center_weight", "inverse_temperature")


def check_values(
    recipe: Recipe, target: Target, moved: str, values: Sequence[float | str] | None
) -> Sequence[float | str]:
    """Values to try, numbers rising: those given, or a grid that fits the domain."""
    if moved == "balancing":
        return _check_balancings(values)
    if values is None:
        return _list_default_values(target, moved)
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str) or len(values) < 2:
        raise RunError(f"`tune(values=...)` must be at least two numbers; got {values!r}.")
    checked = sorted(number("tune(values=...)", value) for value in values)
    for value in checked:
        if moved == "replicas" and value != int(value):
            raise RunError(f"`tune(values=...)` of replicas must be integers; got {value!r}.")
        replace_parameter(recipe, moved, value).build(target, audit=False)
    return checked


def _check_balancings(values: Sequence[float | str] | None) -> tuple[str, ...]:
    known = get_args(Balancing)
    if values is None:
        return known
    given = tuple(str(value) for value in values)
    if isinstance(values, str) or len(given) < 2 or not set(given) <= set(known):
        raise RunError(
            f"`tune(values=...)` of `balancing` must be at least two of {', '.join(known)}; got {values!r}."
        )
    return given


def _list_default_values(target: Target, moved: str) -> list[float]:
    unit = target.domain.squared_unit
    grids = {
        "step_size": unit * STEP_SIZES,
        "center_step_size": 0.1 * unit * COUPLING_VARIANCES,
        "coupling_variance": unit * COUPLING_VARIANCES,
        "persistence": PERSISTENCES,
        "strength": target.domain.num_sites * PRICES,
        "replicas": REPLICAS,
    }
    if moved not in grids:
        raise RunError(f"`tune(parameter={moved!r})` has no default grid; give `values`.")
    return [float(value) for value in grids[moved]]


def replace_parameter(recipe: Recipe, moved: str, value: float | str) -> Recipe:
    """Return the recipe with a hyper-parameter set; two that shape programs count as such."""
    if isinstance(value, str):
        blocks = tuple(_replace_balancing(block, value) for block in recipe.blocks)
        return dataclasses.replace(recipe, blocks=blocks)
    if moved != "replicas":
        return recipe.replace(**{moved: value})
    return recipe.with_replicas(int(value))


def _replace_balancing(block: Block, balancing: str) -> Block:
    """Return the block with another balancing function; the same block where it has none."""
    if isinstance(block, AroundBlock):
        return dataclasses.replace(block, block=_replace_balancing(block.block, balancing))
    if not isinstance(block, ProposalBlock) or not isinstance(block.proposal, WeighedChanges):
        return block
    return dataclasses.replace(block, proposal=dataclasses.replace(block.proposal, balancing=balancing))


def _list_parameters(recipe: Recipe) -> set[str]:
    ensemble = {"replicas"} if recipe.coupling.replicas is not None else set()
    balanced = {"balancing"} if any(map(_has_balancing, recipe.blocks)) else set()
    return set(recipe.parameters) | ensemble | balanced


def _has_balancing(block: Block) -> bool:
    if isinstance(block, AroundBlock):
        return _has_balancing(block.block)
    return isinstance(block, ProposalBlock) and isinstance(block.proposal, WeighedChanges)


def _check_adjusted(recipe: Recipe, goal: str) -> None:
    if recipe.is_adjusted:
        return
    what = "accepts every proposal" if goal == "acceptance" else "gains effective draws by being biased"
    raise RunError(
        f"`{recipe.name}` is unadjusted: it {what}, so there is nothing to tune for. Tune its adjusted twin, "
        "`dmala` for `dula` and so on, and give its hyper-parameters to the unadjusted one."
    )
