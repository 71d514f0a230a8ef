"""Advice after a comparison: who wins, by how much, whether that is more than noise, and what to write."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from steppe.intervals import LEVEL, find_student_factor, split_level
from steppe.kernel.compose import Recipe
from steppe.samplers.source_line import write_sample

if TYPE_CHECKING:
    from steppe.compare.measurement import Measurement

PER_EVALUATIONS = 1000
MAX_RHAT = 1.05


class Ratio(NamedTuple):
    """How many times as many effective draws one sampler has as another, with an interval."""

    value: float
    low: float
    high: float

    @property
    def is_beyond_noise(self) -> bool:
        """Whether the interval excludes that they have as many."""
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        return f"{self.value:.3g} times as many [{self.low:.3g}, {self.high:.3g}]"


def advise(measured: Mapping[str, "Measurement"], num_seeds: int) -> tuple[str, ...]:
    """Return sentences that say who wins, and in the last one the line of code to go on with.

    Parameters
    ----------
    measured
        What was measured, by label.
    num_seeds
        Seeds of each sampler. Intervals of all pairs of samplers hold together, so that samplers that are
        equally good are told apart in at most 5 % of comparisons.
    """
    rivals = {label: m for label, m in measured.items() if name_distribution(m.recipe) == "π"}
    left_out = [label for label in measured if label not in rivals]
    pool = rivals or dict(measured)
    ranked = sorted(pool, key=lambda label: -_count_per_evaluation(pool[label]))
    best = ranked[0]
    sentences = [_name_winner(pool, ranked, num_seeds)]
    if pool[best].rhat > MAX_RHAT or math.isnan(pool[best].rhat):
        sentences.append(
            f"Seeds of {best} disagree (R-hat {pool[best].rhat:.2f}): a larger budget may change the order."
        )
    sentences += _explain_seconds(pool, best, num_seeds)
    if left_out and rivals:
        sentences.append(
            f"Left out because they sample something else than π: {', '.join(left_out)}; see their notes."
        )
    return *sentences, f"Go on with: {write_sample(pool[best].recipe, f'compared.recipes[{best!r}]')}"


def name_distribution(recipe: Recipe) -> str:
    """What a recipe samples, in a word."""
    if not recipe.is_adjusted:
        return "biased"
    if not recipe.penalty.is_null:
        return "tilted"
    return "π" if recipe.coupling.replicas is None else "ensemble"


def _name_winner(pool: Mapping[str, "Measurement"], ranked: list[str], num_seeds: int) -> str:
    best, most = ranked[0], PER_EVALUATIONS * _count_per_evaluation(pool[ranked[0]]) / num_seeds
    if not most:
        return "No winner: no sampler has an effective draw. Give a larger budget, or try tempering."
    has_most = f"{most:.3g} effective draws per {PER_EVALUATIONS} evaluations"
    if len(ranked) == 1:
        return f"{best} has {has_most}; no other sampler of the same distribution is here to compare with."
    second = ranked[1]
    if not pool[second].effective.num_effective:
        return f"{best} wins: {has_most}; the others have none."
    ratio = _compare(pool[best], pool[second], len(pool), num_seeds, is_by_second=False)
    if ratio.is_beyond_noise:
        return f"{best} wins: {has_most}, {ratio} as {second}, the next: more than noise."
    return f"No clear winner: {best} has {has_most}, {ratio} as {second}: not more than noise."


def _explain_seconds(pool: Mapping[str, "Measurement"], best: str, num_seeds: int) -> list[str]:
    """Say why another sampler is ahead per second, if one is by more than noise."""
    first = max(pool, key=lambda label: pool[label].effective.num_effective / pool[label].seconds)
    if first == best or not pool[best].effective.num_effective:
        return []
    ratio = _compare(pool[first], pool[best], len(pool), num_seeds, is_by_second=True)
    if not ratio.is_beyond_noise:
        return []
    costs = {
        label: 1e6 * pool[label].seconds / (num_seeds * pool[label].spending.kept_evaluations)
        for label in (first, best)
    }
    return [
        (
            f"Per second {first} is ahead here, {ratio} as {best}: what counts as an evaluation takes "
            f"{costs[first]:.2g} µs with {first} and {costs[best]:.2g} µs with {best}. With a dearer "
            "log-density the order per evaluation decides."
        )
    ]


def _count_per_evaluation(m: "Measurement") -> float:
    """Effective draws of all seeds per evaluation of one."""
    return m.effective.num_effective / m.spending.kept_evaluations


def _compare(
    one: "Measurement", other: "Measurement", num_samplers: int, num_seeds: int, *, is_by_second: bool
) -> Ratio:
    """Ratio of effective draws of two samplers that ran with different keys, by the delta method."""
    spent = [m.seconds if is_by_second else m.spending.kept_evaluations for m in (one, other)]
    effective = [m.effective.num_effective for m in (one, other)]
    if not effective[1]:
        return Ratio(math.inf, math.inf, math.inf)
    value = (effective[0] / spent[0]) / (effective[1] / spent[1])
    errors = [m.effective.standard_error / m.effective.num_effective for m in (one, other)]
    level = split_level(math.comb(num_samplers, 2), LEVEL)
    reach = find_student_factor(num_seeds, level) * math.hypot(*errors)
    return Ratio(value, value * math.exp(-reach), value * math.exp(reach))
