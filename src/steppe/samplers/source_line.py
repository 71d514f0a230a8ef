"""Source code of a recipe: the call that makes it, to be copied from a report."""

import inspect

import jax
import numpy as np

from steppe.kernel.compose import Recipe
from steppe.kernel.parameters import is_relative
from steppe.samplers.registry import REGISTRY


def write_call(recipe: Recipe) -> str | None:
    """Return the call of `steppe` that makes a recipe, with numbers to three digits.

    Parameters
    ----------
    recipe
        What to write. Options that are part of the program, such as `gibbs(num_updates=16)`, cannot be read
        off a recipe: where one is not the default there is no call, and `None` is returned.
    """
    entry = REGISTRY.get(recipe.name)
    if entry is None:
        return None
    plain = entry.make()
    if _find_structure(plain) != _find_structure(recipe):
        return None
    accepted = inspect.signature(entry.make).parameters
    others = {
        name: value
        for name, value in recipe.parameters.items()
        if not is_relative(value) and not _is_same(value, plain.parameters[name])
    }
    if not others.keys() <= accepted.keys():
        return None
    given = ", ".join(f"{name}={float(np.asarray(others[name])):.3g}" for name in accepted if name in others)
    return f"steppe.{recipe.name}({given})"


def write_sample(recipe: Recipe, instead: str) -> str:
    """Return the line that samples with a recipe as it is.

    Parameters
    ----------
    recipe
        What to sample with. Its step size is kept, where it has one of its own.
    instead
        What to write where no call makes the recipe.
    """
    has_step_size = not is_relative(recipe.parameters.get("step_size", recipe.parameters))
    keeps = ", adapt=False" if "step_size" in recipe.parameters and has_step_size else ""
    return f"run = steppe.sample(target, {write_call(recipe) or instead}, key=key{keeps})"


def _find_structure(recipe: Recipe) -> object:
    """The program of a recipe: everything but its numbers."""
    return jax.tree.structure(recipe, is_leaf=is_relative)


def _is_same(value: object, other: object) -> bool:
    return not is_relative(other) and bool(np.asarray(value) == np.asarray(other))
