"""What tuning tried, what came out, and why one was chosen."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from steppe.kernel.compose import Recipe
from steppe.presented import Presented
from steppe.pytree import Relative
from steppe.samplers.source_line import write_sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steppe.results import Results


class Measured(NamedTuple):
    """A statistic and its standard error, both from independent chains."""

    value: float
    error: float


@dataclasses.dataclass(frozen=True)
class Trial:
    """One setting and what it did.

    Attributes
    ----------
    value
        Of the hyper-parameter that was tuned.
    step_size
        With which it ran: given, or adapted in warm-up; `None` for recipes without one.
    acceptance_rate, flips_per_step, log_density
        Means over kept steps.
    ess_per_evaluation
        Effective draws of the worse of log-density and distance from the best state, per evaluation of the
        model in kept steps.
    num_effective
        Effective draws of all chains together.
    loss
        `E_π[U]` minus the mean log-density of this setting, where that was asked for.
    num_evaluations
        Spent on it, warm-up included.
    """

    value: float | str
    step_size: float | None
    acceptance_rate: Measured
    flips_per_step: Measured
    log_density: Measured
    ess_per_evaluation: Measured
    num_effective: float
    loss: Measured | None
    num_evaluations: float


@dataclasses.dataclass(frozen=True)
class Tuned(Presented):
    """A tuned recipe and how it came about.

    Attributes
    ----------
    recipe
        The recipe with the hyper-parameters chosen.
    goal, parameter
        What was wanted, and which hyper-parameter was moved for it.
    trials
        Everything tried, by rising value.
    chosen
        Which trial the recipe is from.
    reason
        Why that one.
    num_evaluations
        What tuning cost, in evaluations of the model.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> tuned = steppe.tune(steppe.dmala(), target, key=jax.random.key(0), num_draws=200, goal="ess")
    >>> tuned.parameter, len(tuned.trials) > 3
    ('step_size', True)
    >>> tuned.best is tuned.trials[tuned.chosen]
    True
    """

    recipe: Recipe
    goal: str
    parameter: str
    trials: tuple[Trial, ...]
    chosen: int
    reason: str
    num_evaluations: float

    @property
    def best(self) -> Trial:
        """The trial that was chosen."""
        return self.trials[self.chosen]

    @property
    def advice(self) -> str:
        """Why this value, and in the last line code to go on with."""
        return f"{self.reason}\nGo on with: {write_sample(self.recipe, 'tuned.recipe')}"

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, ready for JSON; `None` where a statistic is not known."""
        return {
            "recipe": self.recipe.name,
            "parameters": {name: _to_plain(value) for name, value in self.recipe.parameters.items()},
            "goal": self.goal,
            "parameter": self.parameter,
            "chosen": self.chosen,
            "reason": self.reason,
            "num_evaluations": self.num_evaluations,
            "trials": [_trial_to_dict(trial) for trial in self.trials],
        }

    def present(self) -> "Results":
        """Return what was tried, and why one was chosen, as results."""
        from steppe.report.present_tuning import present_tuning

        return present_tuning(self)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw what was tried against the hyper-parameter, and save it if a path is given."""
        from steppe.report.present_tuning import draw_trials

        return draw_trials(self, path)


def _to_plain(value: ArrayLike | Relative) -> float | str | None:
    if isinstance(value, Relative):
        return repr(value)
    number = float(np.asarray(value))
    return number if np.isfinite(number) else None


def _trial_to_dict(trial: Trial) -> dict[str, object]:
    plain = dataclasses.asdict(trial)
    for name, statistic in plain.items():
        if isinstance(statistic, Measured):
            plain[name] = {"value": _to_plain(statistic.value), "error": _to_plain(statistic.error)}
    return plain
