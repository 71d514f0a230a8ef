"""One recipe with one budget: seeds side by side as chains of one program, and what they show."""

import dataclasses

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.diagnostics.efficiency import Efficiency, efficiency
from steppe.diagnostics.flatness import single_site_differences
from steppe.diagnostics.quantity import rhat
from steppe.diagnostics.sites import MIN_DRAWS
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.run.sample import sample
from steppe.target import Target
from steppe.trace import Trace

WARMUP_SHARE = 0.2
# More draws than these are thinned out: they cost memory and change no statistic.
MAX_DRAWS = 4000
# Draws per seed whose one-site changes are looked at.
NUM_MEASURED = 16


@dataclasses.dataclass(frozen=True)
class Spending:
    """What one seed of a recipe does with the budget.

    Attributes
    ----------
    evaluations_per_step
        Cost of a step.
    num_warmup
        Steps before the first draw.
    num_draws, thinning
        Draws, and steps per draw.
    """

    evaluations_per_step: float
    num_warmup: int
    num_draws: int
    thinning: int

    @property
    def kept_evaluations(self) -> float:
        """Evaluations of one seed in kept steps."""
        return self.evaluations_per_step * self.num_draws * self.thinning

    @property
    def num_evaluations(self) -> float:
        """Evaluations of one seed in all."""
        return self.kept_evaluations + self.evaluations_per_step * self.num_warmup


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Statistics of one recipe; arrays have one entry per seed.

    Attributes
    ----------
    recipe, spending
        What ran, and how long.
    effective
        Effective draws of all seeds together.
    seconds
        Time of the timed part of the run, compilation left out, and the fraction of all kept draws in it.
    rhat
        Of the log-density over seeds.
    acceptance_rate, flips_per_step, log_density, roughness
        Means of every seed; the roughness is the mean of `|ΔU|` over one-site changes.
    occupancies
        Shares of draws per state, (seed, state), where states are few enough to count.
    """

    recipe: Recipe
    spending: Spending
    effective: Efficiency
    seconds: float
    rhat: float
    acceptance_rate: np.ndarray
    flips_per_step: np.ndarray
    log_density: np.ndarray
    roughness: np.ndarray
    occupancies: np.ndarray | None


def spend(label: str, recipe: Recipe, target: Target, budget: int) -> Spending:
    """Split a budget per seed into warm-up and draws, or say that it is too small."""
    cost = recipe.build(target, audit=False).evaluations_per_step
    num_warmup = int(WARMUP_SHARE * budget / cost)
    num_steps = int(budget / cost) - num_warmup
    if num_steps < MIN_DRAWS:
        minimum = int(np.ceil(MIN_DRAWS * cost / (1 - WARMUP_SHARE)))
        raise RunError(
            f"`compare(budget={budget})` buys {max(num_steps, 0)} steps of {label!r} after warm-up, at "
            f"{cost:g} evaluations each; {MIN_DRAWS} are needed to say anything. Use at least {minimum}."
        )
    thinning = -(-num_steps // MAX_DRAWS)
    return Spending(cost, num_warmup, num_steps // thinning, thinning)


def measure(
    recipe: Recipe,
    target: Target,
    key: Array,
    spending: Spending,
    num_seeds: int,
    initial: ArrayLike | None,
    counts: bool,
) -> Measurement:
    """Run all seeds and take their statistics.

    Parameters
    ----------
    recipe
        What to run, with its hyper-parameters chosen.
    target
        On what.
    key
        Random key of all seeds.
    spending
        How long.
    num_seeds
        How many.
    initial
        Starting positions, one per seed, or `None`.
    counts
        Whether to count states.
    """
    # The first part compiles; the rest runs the same program and is timed.
    num_first = max(1, spending.num_draws // 10)
    first = sample(
        target,
        recipe,
        key=key,
        num_chains=num_seeds,
        num_warmup=spending.num_warmup,
        num_draws=num_first,
        thinning=spending.thinning,
        initial=initial,
        adapt=False,
        progress=False,
    )
    whole = first.extend(spending.num_draws - num_first, progress=False)
    timed_share = 1 - num_first / spending.num_draws
    trace = whole.trace
    return Measurement(
        recipe=recipe,
        spending=spending,
        effective=efficiency(trace),
        seconds=(whole.seconds - first.seconds) / timed_share,
        rhat=rhat(_average_by_draw(trace.statistic("log_density"))),
        acceptance_rate=_average_by_seed(trace.statistic("acceptance_rate")),
        flips_per_step=_average_by_seed(trace.statistic("num_flips")) / spending.thinning,
        log_density=_average_by_seed(trace.statistic("log_density")),
        roughness=_measure_roughness(target, trace),
        occupancies=_count_states(target, trace) if counts else None,
    )


def _average_by_seed(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1).mean(axis=1, dtype=float)


def _average_by_draw(values: np.ndarray) -> np.ndarray:
    return values.reshape(*values.shape[:2], -1).mean(axis=2, dtype=float)


def _measure_roughness(target: Target, trace: Trace) -> np.ndarray:
    """Mean of `|ΔU|` at draws spread evenly over each seed, replicas of an ensemble included."""
    levels = trace.levels()
    rows = np.unique(np.linspace(0, levels.shape[1] - 1, NUM_MEASURED).astype(int))
    chosen = levels[:, rows].reshape(-1, levels.shape[-1])
    differences = single_site_differences(target, target.domain.from_levels(chosen), exact=False)
    return np.nanmean(differences.mean_absolute.reshape(len(levels), -1), axis=1)


def _count_states(target: Target, trace: Trace) -> np.ndarray:
    levels, domain = trace.levels(), target.domain
    states = np.asarray(domain.index(domain.from_levels(levels.reshape(-1, levels.shape[-1]))))
    rows = states.reshape(len(levels), -1)
    return np.stack([np.bincount(row, minlength=domain.num_states) for row in rows]) / rows.shape[1]
