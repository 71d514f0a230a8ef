"""Judgement of the states found: what each is worth after fresh disturbances, and which are shown.

States are screened on some disturbances and judged on others: what was chosen on some draws looks better on
them than it is. All states meet the same disturbances, so that differences between them have small errors.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import pad_rows, quick_jit
from steppe.diagnostics.flatness import SingleSiteDifferences, single_site_differences
from steppe.diagnostics.flatness.log_tables import log_table, noisy_mean
from steppe.errors import RunError
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.local_search import Found, price_of_differences
from steppe.modes.merge import find_pareto_front, measure_distances
from steppe.robust.disturbances import Disturbance, Flips
from steppe.robust.outcomes import Robustness, evaluate_after
from steppe.robust.risk import Risk
from steppe.target import Target

# Disturbances per state: in screening, and at the end as many as can be paid for.
NUM_SCREENED, MIN_FRESH, MAX_FRESH = 32, 16, 1000
# States that are judged for each one that is shown; the highest of all are judged whatever they keep.
PER_ROW, NUM_HIGHEST = 3, 8
MAX_SCREENED = 512
NUM_UNIFORM = 256
NUM_RESAMPLED = 200
# Up to this many states means after flips are summed exactly.
MAX_SUMMED = 2**14


class Judged(NamedTuple):
    """States with what they are worth before and after the disturbance.

    Attributes
    ----------
    found
        The states.
    after
        What they are worth after the disturbance.
    differences
        Statistics of their single changes.
    """

    found: Found
    after: Robustness
    differences: SingleSiteDifferences


def count_min_cost(counter: EvaluationCounter, disturbance: Disturbance) -> int:
    """Evaluations of the smallest judgement: two states, screened and judged."""
    per_state = counter.price(tables=1, values=1) if disturbance.is_exact else 2 * MIN_FRESH
    return NUM_UNIFORM + 2 * (per_state + price_of_differences(counter))


def judge(
    target: Target,
    found: Found,
    disturbance: Disturbance,
    risk: Risk,
    key: Array,
    counter: EvaluationCounter,
    num_rows: int,
) -> Judged:
    """Screen all states, then judge those that may be shown on fresh disturbances.

    Parameters
    ----------
    target, found, disturbance, risk
        What is judged, and after what.
    key
        Of the disturbances.
    counter
        Of evaluations.
    num_rows
        How many states will be shown.
    """
    screening, judging = jax.random.split(key)
    # Where values are exact, draws serve no more than a look at single outcomes.
    is_closed = disturbance.find_closed_form(target, risk) is not None
    most_screened, most_fresh = (2, MIN_FRESH) if is_closed else (NUM_SCREENED, MAX_FRESH)
    by_height = np.argsort(-found.log_density, kind="stable")[:MAX_SCREENED]
    wanted = max(PER_ROW * num_rows, NUM_HIGHEST + PER_ROW)
    if len(by_height) > wanted:
        size = _afford(disturbance, counter, len(by_height), most_screened, counter.num_left // 3)
        screened = evaluate_after(target, found.states[by_height], disturbance, risk, screening, max(size, 2))
        _record(disturbance, counter, len(by_height), size)
        by_value = by_height[np.argsort(-screened.value, kind="stable")]
        highest = by_height[:NUM_HIGHEST]
        rest = by_value[~np.isin(by_value, highest)]
        by_height = np.concatenate([highest, rest[: wanted - len(highest)]])
    chosen = Found(*(array[by_height] for array in found))
    kept_back = len(by_height) * price_of_differences(counter) + NUM_UNIFORM
    # Half of what is left is for the judgement, the rest for the curves.
    size = _afford(disturbance, counter, len(by_height), most_fresh, (counter.num_left - kept_back) // 2)
    after = evaluate_after(target, chosen.states, disturbance, risk, judging, max(size, 2))
    _record(disturbance, counter, len(by_height), size)
    after = _sum_exactly(target, chosen.states, disturbance, risk, after, counter, kept_back)
    padded = single_site_differences(target, pad_rows(chosen.states), exact=False)
    differences = padded._replace(
        mean_absolute=padded.mean_absolute[: len(by_height)], max_drop=padded.max_drop[: len(by_height)]
    )
    counter.record(values=len(by_height), tables=len(by_height))
    return Judged(chosen, after, differences)


def _sum_exactly(
    target: Target,
    states: np.ndarray,
    disturbance: Disturbance,
    risk: Risk,
    after: Robustness,
    counter: EvaluationCounter,
    kept_back: int,
) -> Robustness:
    """Replace estimated means after flips by sums over all states, where those are few."""
    domain = target.domain
    if not isinstance(disturbance, Flips) or disturbance.rates is None or np.ptp(disturbance.rates):
        return after
    if risk.kind != "mean" or disturbance.repair is not None or target.has_constraint:
        return after
    if domain.num_states > min(MAX_SUMMED, counter.num_left - kept_back) or not after.standard_error.any():
        return after
    counter.record(values=domain.num_states)
    table = noisy_mean(log_table(target), domain, float(disturbance.rates[0])).ravel()
    index = np.asarray(domain.index(jnp.asarray(pad_rows(states), jnp.result_type(float))))[: len(states)]
    return after._replace(value=table[index], standard_error=np.zeros(len(states)))


def _afford(
    disturbance: Disturbance, counter: EvaluationCounter, num_states: int, most: int, budget: int
) -> int:
    """How many disturbances per state can be paid for."""
    if disturbance.is_exact:
        return 1
    return int(np.clip(budget // num_states - 1, 2, most))


def _record(disturbance: Disturbance, counter: EvaluationCounter, num_states: int, size: int) -> None:
    if disturbance.is_exact:
        counter.record(values=num_states, tables=num_states)
    else:
        counter.record(values=num_states * (1 + size))


# ---- which are shown ---------------------------------------------------------------------------------------


def find_max_loss(
    target: Target, judged: Judged, max_loss: float | None, within: float | None, key: Array,
    counter: EvaluationCounter,
) -> float:  # fmt: skip
    """How many nats below the best a state may lie: as given, as a fraction, or any number.

    A fraction is one of the best score, whichever way that is better, where the target has one.
    """
    if max_loss is not None:
        return max_loss
    if within is None:
        return np.inf
    scores = score_states(target, judged.found.states)
    best = scores[find_best(judged)]
    if np.isfinite(scores).all() and best != 0:
        losses = judged.found.log_density.max() - judged.found.log_density
        return float(losses[np.abs(scores - best) <= within * abs(best)].max())
    drawn = target.domain.draw(key, (NUM_UNIFORM,))
    values = np.asarray(jax.jit(jax.vmap(target.log_density))(drawn), float)
    counter.record(values=NUM_UNIFORM)
    values = values[np.isfinite(values)]
    if not values.size:
        raise RunError(
            f"`find_flat_modes(within=...)` compares with random states, and none of {NUM_UNIFORM} is valid. "
            "Use `max_loss=`, in nats."
        )
    return within * float(judged.found.log_density.max() - values.mean())


def score_states(target: Target, states: np.ndarray) -> np.ndarray:
    """States in the units of the target, where it has them, else NaN."""
    if not hasattr(target, "score"):
        return np.full(len(states), np.nan)
    return np.asarray(_score(target, pad_rows(states)), float)[: len(states)]


@quick_jit
def _score(target: Target, states: Array) -> Array:
    return jax.vmap(getattr(target, "score"))(states)  # noqa: B009


def choose_rows(
    target: Target, judged: Judged, max_loss: float, num_modes: int, separation: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places of the states that are shown, the most robust first, and which states are on the front.

    The highest state and the most robust one within the loss are always there. Of the others those on the
    front come first; each differs from all that were chosen before in at least `separation` sites.
    """
    values, heights = judged.after.value, judged.found.log_density
    is_near = heights >= heights.max() - max_loss - 1e-9 * abs(heights.max())
    is_front = np.zeros(len(values), bool)
    is_front[is_near] = find_pareto_front(heights[is_near], values[is_near])
    best, robust = find_best(judged), find_most_robust(judged, max_loss)
    chosen = [robust] if best == robust else [robust, best]
    for place in np.lexsort((-heights, -values, ~is_front)):
        if len(chosen) >= max(num_modes, 1):
            break
        if place in chosen or not is_near[place] or not np.isfinite(values[place]):
            continue
        others = judged.found.states[np.asarray(chosen)]
        apart = measure_distances(target, judged.found.states[place], others)
        if apart.min() >= separation:
            chosen.append(int(place))
    order = sorted(chosen, key=lambda place: (-values[place], -heights[place]))
    order.remove(robust)
    return np.asarray([robust, *order]), is_front


def find_best(judged: Judged) -> int:
    """Place of the highest state; of equal ones the most robust."""
    return int(np.lexsort((-judged.after.value, -judged.found.log_density))[0])


def find_most_robust(judged: Judged, max_loss: float) -> int:
    """Place of the state that is worth most after the disturbance, among those within the loss.

    The highest state is preferred to one that is not better by more than rounding.
    """
    heights, values = judged.found.log_density, judged.after.value
    is_near = heights >= heights.max() - max_loss - 1e-9 * abs(heights.max())
    best = find_best(judged)
    first = int(np.lexsort((-heights, -np.where(is_near, values, -np.inf)))[0])
    rounding = 1e-5 * max(1.0, abs(values[best]))
    return first if values[first] > values[best] + rounding else best


def is_function_of_height(judged: Judged) -> bool:
    """Whether the value after the disturbance rises along a line with the log-density."""
    heights, values = judged.found.log_density, judged.after.value
    is_known = np.isfinite(values)
    heights, values = heights[is_known], values[is_known]
    spread = np.ptp(heights) if len(heights) else 0.0
    if len(np.unique(np.round(heights / max(spread, 1e-12), 6))) < 3:
        return False
    slope, level = np.polyfit(heights, values, 1)
    allowed = 1e-4 * np.ptp(values)
    return bool(slope > 0 and (np.abs(values - level - slope * heights) <= allowed).all())


def compare_with_best(
    judged: Judged, risk: Risk, is_exact: bool, key: Array
) -> tuple[np.ndarray, np.ndarray]:
    """What every state is worth more than the highest after the disturbance, and the error of that.

    Disturbances are the same for all, so outcomes are subtracted pair by pair; for other risks than the mean
    they are resampled together.
    """
    values, best = judged.after.value, find_best(judged)
    gains = values - values[best]
    if is_exact or (judged.after.standard_error == 0).all():
        return gains, np.zeros(len(values))
    outcomes = judged.after.outcomes
    if risk.kind == "mean":
        pairs = outcomes - outcomes[best]
        size = np.maximum(np.isfinite(pairs).sum(axis=1), 2)
        spread = np.nanstd(np.where(np.isfinite(pairs), pairs, np.nan), axis=1, ddof=1)
        return gains, np.where(np.arange(len(values)) == best, 0.0, spread / size**0.5)
    if risk.kind == "worst":
        return gains, np.full(len(values), np.nan)
    size = outcomes.shape[1]
    drawn = np.random.default_rng(np.asarray(jax.random.key_data(key))).integers(
        size, size=(NUM_RESAMPLED, size)
    )
    resampled = np.stack([_summarize(risk, outcomes[:, rows]) for rows in drawn])
    return gains, (resampled - resampled[:, [best]]).std(axis=0, ddof=1)


def _summarize(risk: Risk, outcomes: np.ndarray) -> np.ndarray:
    is_counted = ~np.isnan(outcomes)
    values = jnp.asarray(np.where(is_counted, outcomes, 0.0).T)
    return np.asarray(risk.summarize(values, jnp.asarray(is_counted.T, values.dtype)))
