"""Numbers that change as a run goes on: curves over progress in [0, 1], by the name of the number.

A moving number leaves no distribution invariant. Schedules are for optimisation and for reaching a good
start.
"""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import RecipeError, RunError
from steppe.kernel.compose import Recipe
from steppe.validation import call_back, number, positive

# Progress in [0, 1] → the numbers that differ from those of the recipe.
Schedule = Callable[[Array], Mapping[str, Array]]


class Geometric(eqx.Module):
    """`start` at the beginning, `end` at the end, and a constant factor per step between."""

    start: Array | float
    end: Array | float

    def __call__(self, progress: Array) -> Array:
        """Value at a progress in [0, 1]."""
        return self.start * (self.end / self.start) ** progress


class Linear(eqx.Module):
    """A straight line from `start` to `end`."""

    start: Array | float
    end: Array | float

    def __call__(self, progress: Array) -> Array:
        """Value at a progress in [0, 1]."""
        return self.start + (self.end - self.start) * progress


class Curves(eqx.Module):
    """Several numbers at once, each with its own curve."""

    curves: dict[str, Callable[[Array], Array]]

    def __call__(self, progress: Array) -> dict[str, Array]:
        """Values at a progress in [0, 1], by name."""
        return {name: jnp.asarray(curve(progress)) for name, curve in self.curves.items()}


@checked(RunError)
def geometric_schedule(start: float, end: float) -> Geometric:
    """Curve from `start` to `end` at a constant factor; both positive.

    Parameters
    ----------
    start
        Value at progress 0.
    end
        Value at progress 1.
    """
    return Geometric(positive("geometric(start=...)", start), positive("geometric(end=...)", end))


@checked(RunError)
def linear_schedule(start: float, end: float) -> Linear:
    """Curve from `start` to `end` along a straight line.

    Parameters
    ----------
    start
        Value at progress 0.
    end
        Value at progress 1.
    """
    return Linear(number("linear(start=...)", start), number("linear(end=...)", end))


def parameter_schedule(**curves: Callable[[Array], Array]) -> Curves:
    """Give hyper-parameters of a recipe a curve each, for example `inverse_temperature=geometric(0.5, 20.0)`.

    Parameters
    ----------
    curves
        By name of the number: a function of progress in [0, 1], such as `geometric_schedule` and
        `linear_schedule` make.
    """
    for name, curve in curves.items():
        if not callable(curve):
            raise RecipeError(
                f"`parameter_schedule({name}=...)` must be a function of progress, such as "
                f"`geometric_schedule(0.5, 20.0)`; got "
                f"{curve!r}."
            )
    return Curves(dict(curves))


def check_schedule(recipe: Recipe, scheduled: object) -> tuple[str, ...]:
    """Try a schedule along the way and return the names of the numbers it moves."""
    if not callable(scheduled):
        raise RecipeError(
            "A schedule is a function from progress to numbers, such as "
            f"`steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 20.0))`; got "
            f"{scheduled!r}."
        )
    names: tuple[str, ...] = ()
    for progress in np.linspace(0, 1, 11):
        numbers = call_back("schedule", scheduled, jnp.asarray(progress, jnp.result_type(float)))
        if not isinstance(numbers, Mapping):
            raise RecipeError(
                "A schedule returns a dictionary of numbers by name; got "
                f"{type(numbers).__name__} at progress {progress:g}."
            )
        concrete = {name: np.asarray(value) for name, value in numbers.items()}
        recipe.replace(**concrete).check_ranges()
        names = tuple(concrete)
    return names
