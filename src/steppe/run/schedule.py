"""Numbers that change as a run goes on: curves over progress in [0, 1], by the name of the number.

A moving number leaves no distribution invariant. Schedules are for optimisation and for reaching a good
start.
"""

from collections.abc import Callable, Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import RecipeError, RunError
from steppe.kernel.compose import Recipe
from steppe.validation import call_back, number, positive, within

# Progress in [0, 1] → the numbers that differ from those of the recipe.
Schedule = Callable[[Array], Mapping[str, Array]]
# Where a schedule is tried before it is used.
CHECKED = np.linspace(0, 1, 11)


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


class Adaptive(eqx.Module):
    """An inverse temperature that is led so that a statistic of the chains follows a curve.

    Attributes
    ----------
    statistic
        `"num_flips"` (as a fraction of the sites) or `"acceptance_rate"`.
    curve
        What is wanted of it, over progress.
    """

    statistic: str = eqx.field(static=True)
    curve: Geometric

    def lead(self, beta: float, observed: float, progress: float, range_: tuple[float, float]) -> float:
        """Return the next inverse temperature, from the statistic at the last one."""
        wanted = float(self.curve(jnp.asarray(progress)))
        change = np.clip(np.log(max(observed, 1e-9) / wanted), -1, 1)
        return float(np.clip(beta * np.exp(GAIN * change), range_[0] / SPAN, range_[1] * SPAN))


# How fast the inverse temperature of an adaptive schedule follows, and how far it may leave the range chosen
# from the target's differences.
GAIN = 0.2
SPAN = 10.0


@checked(RunError)
def geometric_schedule(start: float, end: float) -> Geometric:
    """Curve from `start` to `end` at a constant factor; both positive.

    Parameters
    ----------
    start
        Value at progress 0.
    end
        Value at progress 1.

    Examples
    --------
    >>> import steppe
    >>> cooling = steppe.geometric_schedule(0.1, 10.0)
    >>> [round(float(cooling(progress)), 3) for progress in (0.0, 0.5, 1.0)]
    [0.1, 1.0, 10.0]
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

    Examples
    --------
    >>> import steppe
    >>> curve = steppe.linear_schedule(0.0, 4.0)
    >>> [float(curve(progress)) for progress in (0.0, 0.5, 1.0)]
    [0.0, 2.0, 4.0]
    """
    return Linear(number("linear(start=...)", start), number("linear(end=...)", end))


@checked(RunError)
def adaptive_schedule(
    *, flips: Sequence[float] | None = None, acceptance: Sequence[float] | None = None
) -> Adaptive:
    """Lead the inverse temperature by what the chains do, instead of along a curve of its own.

    Parameters
    ----------
    flips
        Fraction of the sites that a step changes, at the start and at the end, such as `(0.3, 0.001)`.
    acceptance
        Acceptance rate at the start and at the end, such as `(0.8, 0.02)`, for Metropolis samplers.

    Notes
    -----
    Between start and end the wanted figure falls at a constant factor. After every row of the history the
    inverse temperature is raised where the mean over chains is above what is wanted, and lowered where it is
    below, as regulated Langevin annealing (RLSA) regulates the number of flips.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=1.0)
    >>> schedule = steppe.adaptive_schedule(flips=(0.3, 0.01))
    >>> found = steppe.anneal(
    ...     target, steppe.gibbs(num_updates=16), schedule, key=jax.random.key(0), num_steps=64
    ... )
    >>> float(found.best_log_density.max())
    32.0
    """
    given = {"num_flips": flips, "acceptance_rate": acceptance}
    named = [(name, ends) for name, ends in given.items() if ends is not None]
    if len(named) != 1:
        raise RunError("`adaptive_schedule(...)` needs `flips` or `acceptance`, one of them.")
    name, ends = named[0]
    call = f"adaptive_schedule({'flips' if flips is not None else 'acceptance'}=...)"
    if len(ends) != 2:
        raise RunError(f"`{call}` must be two numbers, at the start and at the end; got {list(ends)!r}.")
    first, last = (within(call, end, "(0, 1]", error=RunError, remedy="") for end in ends)
    return Adaptive(name, Geometric(first, last))


def parameter_schedule(**curves: Callable[[Array], Array]) -> Curves:
    """Give hyper-parameters of a recipe a curve each, for example `inverse_temperature=geometric(0.5, 20.0)`.

    Parameters
    ----------
    curves
        By name of the number: a function of progress in [0, 1], such as `geometric_schedule` and
        `linear_schedule` make.

    Examples
    --------
    >>> import jax, steppe
    >>> cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.1, 10.0))
    >>> target = steppe.targets.max_cut([[0, 1], [1, 2], [2, 0]])
    >>> found = steppe.anneal(target, steppe.gibbs(), cooling, key=jax.random.key(0), num_steps=64)
    >>> float(found.best_log_density.max())  # two of the three edges of a triangle can be cut
    2.0
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
    for progress in CHECKED:
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


def evaluate_schedule(schedule: Schedule) -> dict[str, list[float]]:
    """Return the numbers of a schedule along the way, which it is known by in a directory."""
    rows = [schedule(jnp.asarray(progress, jnp.result_type(float))) for progress in CHECKED]
    return {name: [float(row[name]) for row in rows] for name in rows[0]}
