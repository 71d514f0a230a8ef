"""`tune`: try values of one hyper-parameter of a recipe and choose by a stated rule."""

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.flatness.log_tables import log_table, normalize_table
from steppe.diagnostics.states import is_exact_wanted
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.run.adaptation import TARGET_ACCEPTANCE, Adapt
from steppe.run.progress import count_bar
from steppe.samplers.langevin import dmala
from steppe.target import Target
from steppe.tune.grids import check_values, choose_parameter, replace_parameter
from steppe.tune.trial import Trials
from steppe.tune.tuned import Measured, Trial, Tuned
from steppe.validation import count, positive, random_key

Goal = Literal["acceptance", "ess", "loss"]

# Shown beside the adapted step size, so that a reader sees how steep the curve is.
AROUND = (0.5, 2**-0.5, 1.0, 2**0.5, 2.0)
# Acceptance this far from what was wanted is said to be out of reach, beside three standard errors.
TOLERANCE = 0.05
NUM_REFINED = 5
# Chains that hardly move show about one effective draw each, whatever the setting. Below this many per chain
# the number says nothing, and accepted flips per step are compared instead.
LEAST_EFFECTIVE = 10

Report = Callable[[int], None]


class Chosen(NamedTuple):
    """A recipe and where it came from."""

    recipe: Recipe
    trials: list[Trial]
    best: Trial
    reason: str
    extra_evaluations: float = 0.0


@checked(RunError)
def tune(
    recipe: Recipe,
    target: Target,
    *,
    key: Array,
    goal: Goal = "acceptance",
    parameter: str | None = None,
    values: Sequence[float | str] | None = None,
    acceptance: float = TARGET_ACCEPTANCE,
    loss: float | None = None,
    num_chains: int = 8,
    num_warmup: int = 500,
    num_draws: int = 1000,
    initial: ArrayLike | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Choose a hyper-parameter of a recipe for a target, by a stated rule, from short runs.

    Parameters
    ----------
    recipe
        What to tune.
    target
        For what.
    key
        Random key; the same key gives the same answer. Sample with another one.
    goal
        `"acceptance"`: the step size at which `acceptance` of all proposals are accepted, by dual averaging
        over all chains. `"ess"`: the value with most effective draws per evaluation of the model. `"loss"`:
        the value at which a recipe that favours flat modes gives up `loss` nats of `E[U]` against `π`.
    parameter
        Which hyper-parameter to move: by default `"step_size"`, and for `"loss"` `"strength"` (λ) or
        `"replicas"` (y). With `"ess"` also `"coupling_variance"` (η) or another one that does not change the
        distribution of the position, and `"balancing"`, the balancing function of `dmala`, `gwg` and `pas`;
        the step size is then adapted in warm-up for each value.
    values
        Values to try, by default a grid in the units of the domain.
    acceptance
        Wanted acceptance rate.
    loss
        Wanted `E_π[U] − E[U]`, in nats.
    num_chains, num_warmup, num_draws
        Length of one trial. All trials share one compiled program, except those of `"replicas"`.
    initial
        Starting positions, one per chain; uniform random ones by default.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Returns
    -------
    Tuned
        The tuned recipe (`.recipe`), everything tried with errors (`.trials`), why this one (`.reason`), a
        table and a picture.

    Notes
    -----
    Effective draws are those of the worse of the log-density and the distance from the best state met. Where
    no trial has ten of them per chain, the one with most accepted flips per step is chosen instead. The best
    of several noisy trials looks better than it is: judge the tuned recipe on another key.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.ising_lattice((4, 4), coupling=0.2)
    >>> tuned = steppe.tune(steppe.dmala(), target, key=jax.random.key(0), acceptance=0.7, num_draws=500)
    >>> bool(abs(tuned.best.acceptance_rate.value - 0.7) < 0.1)
    True
    >>> tuned.recipe.name  # `tuned.recipe` is what to give to `sample`
    'dmala'
    """
    wanted = goal
    recipe.build(target)  # refuses what does not fit
    moved = choose_parameter(recipe, wanted, parameter)
    trials = Trials(
        target,
        random_key("tune", key),
        _check_two("num_chains", num_chains),
        count("tune(num_warmup=...)", num_warmup),
        count("tune(num_draws=...)", num_draws),
        initial,
    )
    if values is not None and wanted == "acceptance":
        raise RunError("`tune(goal='acceptance')` searches by itself; leave `values` out.")
    if loss is not None and wanted != "loss":
        raise RunError("`tune(loss=...)` goes with `goal='loss'`; leave it out.")
    if wanted == "acceptance":
        total, search = len(AROUND) + 1, _search_acceptance(acceptance)
    else:
        grid = check_values(recipe, target, moved, values)
        total = len(grid) + NUM_REFINED * (wanted == "loss")
        search = _search_efficiency(moved, grid) if wanted == "ess" else _search_loss(moved, grid, loss)
    with count_bar("tuning", total, progress) as report:
        chosen = search(recipe, trials, report)
    ordered = chosen.trials if moved == "balancing" else sorted(chosen.trials, key=_read_number)
    spent = sum(trial.num_evaluations for trial in ordered) + chosen.extra_evaluations
    return Tuned(
        chosen.recipe, wanted, moved, tuple(ordered), ordered.index(chosen.best), chosen.reason, spent
    )


Search = Callable[[Recipe, Trials, Report], Chosen]


def _search_acceptance(wanted: float) -> Search:
    together = Adapt(acceptance=wanted, pooled=True)

    def search(recipe: Recipe, trials: Trials, report: Report) -> Chosen:
        found = trials.attempt(recipe, 0.0, adapt=together)
        assert found.step_size is not None
        report(1)
        tried = []
        for factor in AROUND:
            value = found.step_size * factor
            tried.append(trials.attempt(replace_parameter(recipe, "step_size", value), value))
            report(1 + len(tried))
        best = tried[AROUND.index(1.0)]
        rate = best.acceptance_rate
        reason = f"{rate.value:.3f} ± {rate.error:.3f} of proposals are accepted; {wanted:g} was wanted."
        if abs(rate.value - wanted) > max(TOLERANCE, 3 * np.nan_to_num(rate.error)):
            reason += " No step size within the range of adaptation comes closer."
        recipe = replace_parameter(recipe, "step_size", found.step_size)
        return Chosen(recipe, tried, best, reason, found.num_evaluations)

    return search


def _search_efficiency(moved: str, grid: Sequence[float | str]) -> Search:
    def search(recipe: Recipe, trials: Trials, report: Report) -> Chosen:
        adapts = moved != "step_size" and recipe.is_adjusted and "step_size" in recipe.parameters
        adapt = Adapt(pooled=True) if adapts else False
        tried = []
        for value in grid:
            tried.append(trials.attempt(replace_parameter(recipe, moved, value), value, adapt=adapt))
            report(len(tried))
        best = max(tried, key=lambda trial: trial.ess_per_evaluation.value)
        reason = _explain_efficiency(moved, tried, best)
        if best.num_effective < LEAST_EFFECTIVE * trials.num_chains:
            reason = (
                f"Runs too short to count effective draws ({best.num_effective:.0f} at best): most flips."
            )
            best = max(tried, key=lambda trial: trial.flips_per_step.value)
        recipe = replace_parameter(recipe, moved, best.value)
        if adapts and best.step_size is not None:
            recipe = replace_parameter(recipe, "step_size", best.step_size)
        return Chosen(recipe, tried, best, reason)

    return search


def _explain_efficiency(moved: str, tried: list[Trial], best: Trial) -> str:
    maximum = best.ess_per_evaluation
    reason = f"Most effective draws per evaluation: {maximum.value:.3g} ± {maximum.error:.2g}"
    others = sorted((trial for trial in tried if trial is not best), key=_negate_efficiency)
    if others:
        second = others[0].ess_per_evaluation
        ratio = f"{maximum.value / second.value:.3g} times" if second.value > 0 else "against no"
        reason += f", {ratio} those of {_show(others[0].value)}, the next"
    alike = [trial.value for trial in others if _is_alike(trial.ess_per_evaluation, maximum)]
    if alike:
        reason += f"; not more than noise, {', '.join(map(_show, alike))} may be as good."
    else:
        reason += "; more than noise." if others else "."
    if moved != "balancing" and best in (tried[0], tried[-1]) and len(tried) > 1:
        reason += f" It is at the edge of what was tried: give other `values` of {moved}."
    return reason


def _is_alike(one: Measured, other: Measured) -> bool:
    """Whether two standard errors bridge the difference, or it has none to compare with."""
    return not abs(one.value - other.value) >= 2 * np.hypot(one.error, other.error)


def _negate_efficiency(trial: Trial) -> float:
    return -trial.ess_per_evaluation.value


def _show(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _read_number(trial: Trial) -> float:
    assert not isinstance(trial.value, str)
    return trial.value


def _search_loss(moved: str, grid: Sequence[float | str], loss: float | None) -> Search:
    if loss is None:
        raise RunError("`tune(goal='loss')` needs `loss`, the nats of E[U] that may be given up.")
    wanted = float(positive("tune(loss=...)", loss))

    def search(recipe: Recipe, trials: Trials, report: Report) -> Chosen:
        reference, spent = _expect_log_density(trials)
        adapt = Adapt(pooled=True)

        def attempt(value: float | str) -> Trial:
            return trials.attempt(
                replace_parameter(recipe, moved, value), value, adapt=adapt, reference=reference
            )

        tried: list[Trial] = []
        for value in grid:
            tried.append(attempt(value))
            report(len(tried))
        crossing = _find_crossing(tried, wanted)
        if crossing is not None and moved != "replicas":
            low, high = map(_read_number, crossing)
            for value in np.geomspace(low, high, NUM_REFINED + 2)[1:-1]:
                tried.append(attempt(float(value)))
                report(len(tried))
        best = min(tried, key=lambda trial: abs(_read_loss(trial).value - wanted))
        tuned = replace_parameter(recipe, moved, best.value)
        if best.step_size is not None:
            tuned = replace_parameter(tuned, "step_size", best.step_size)
        return Chosen(tuned, tried, best, _explain_loss(best, reference, wanted, crossing is not None), spent)

    return search


def _expect_log_density(trials: Trials) -> tuple[Measured, float]:
    """`E_π[U]` with its error, enumerated where that is cheap, and the evaluations it cost."""
    if is_exact_wanted(trials.target, None):
        table = log_table(trials.target)
        distribution, values = np.ravel(normalize_table(table)), np.ravel(table)
        possible = distribution > 0
        return Measured(float(distribution[possible] @ values[possible]), 0.0), float(table.size)
    plain = trials.attempt(dmala(), 0.0, adapt=True)
    return plain.log_density, plain.num_evaluations


def _read_loss(trial: Trial) -> Measured:
    assert trial.loss is not None
    return trial.loss


def _find_crossing(tried: list[Trial], wanted: float) -> tuple[Trial, Trial] | None:
    """Neighbours between which the loss passes what was wanted, those of smallest values first."""
    for low, high in itertools.pairwise(tried):
        if _read_loss(low).value <= wanted < _read_loss(high).value:
            return low, high
    return None


def _explain_loss(best: Trial, reference: Measured, wanted: float, is_reached: bool) -> str:
    got = _read_loss(best)
    reason = (
        f"E[U] is {got.value:.3g} ± {got.error:.2g} below E_π[U] = {reference.value:.4g}; a loss of "
        f"{wanted:g} was wanted, and no other value tried comes closer."
    )
    return reason if is_reached else reason + " No two neighbours among the values enclose it."


def _check_two(name: str, value: int) -> int:
    chains = count(f"tune({name}=...)", value)
    if chains < 2:
        raise RunError(f"`tune({name}={value})` leaves no error to state; use at least 2.")
    return chains
