"""Verdicts on claims, each with the interval that decides it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steppe.intervals import LEVEL, estimate_fraction, estimate_mean, find_student_factor, split_level
from steppe.results import Estimate, Outcome, Verdict
from steppe_edlp.experiment import ClaimSpec, Selector
from steppe_edlp.request import Row
from steppe_edlp.wording import find_fact, is_said, say

GOOD_POWER = 0.8


class Question(NamedTuple):
    """A claim about certain rows, which are among its facts."""

    spec: ClaimSpec
    facts: Mapping[str, Any]


def judge_claims(
    specs: Sequence[ClaimSpec],
    rows: Mapping[str, Sequence[Row]],
    facts: Mapping[str, Any],
    conditions: set[str],
) -> tuple[list[Verdict], list[str]]:
    """Judge all claims of an experiment so that their intervals hold together in 95 % of cases.

    A verdict that is wrong has an interval that misses the truth, so the chance that any verdict of the
    experiment is wrong is at most 5 %, however many claims it judges. What is exact needs no part of them.

    Parameters
    ----------
    specs
        The claims.
    rows
        Rows by table.
    facts, conditions
        What texts are made of.

    Returns
    -------
    verdicts, notes
        What came out, and what to know about the intervals.
    """
    questions = [one for spec in specs if is_said(spec.when, conditions) for one in _ask(spec, rows, facts)]
    level = split_level(sum(not one.spec.is_exact for one in questions))
    verdicts = [_answer(question, level, conditions) for question in questions]
    uncertain = [
        verdict
        for question, verdict in zip(questions, verdicts, strict=True)
        if not question.spec.is_exact and verdict.estimate is not None and verdict.estimate.low is not None
    ]
    return verdicts, describe_joint_level(len(uncertain))


def describe_joint_level(number: int) -> list[str]:
    """What to know about the intervals of so many verdicts that were judged together."""
    if number < 2:
        return []
    together = (
        f"{number} verdicts rest on random numbers. Each of their intervals is wide enough for "
        f"{100 * split_level(number):.4g} %, so that all of them hold together in {100 * LEVEL:g} % of cases "
        "(Bonferroni): the chance that any of these verdicts is wrong is at most 1 in 20. Intervals in "
        "tables and figures stand alone, at 95 %."
    )
    return [together]


def classify(low: float, high: float, margin: float, *, same: bool = False) -> Outcome:
    """The verdict that follows from an interval (see `steppe.results.Verdict`).

    Parameters
    ----------
    low, high
        Interval of a difference that is positive if the claim is right; of an exact number, twice itself.
    margin
        The smallest difference that counts.
    same
        Whether the claim is that there is no difference: shown within the margin, opposite beyond it.
    """
    is_within = -margin <= low and high <= margin
    if same:
        return "shown" if is_within else "opposite" if low > margin or high < -margin else "undecided"
    if is_within:
        return "negligible"
    if low > 0:
        return "shown" if low > margin else "there, maybe negligible"
    return "opposite" if high < 0 else "undecided"


def find_power(margin: float, spread: float, num_seeds: int, level: float) -> tuple[float, int]:
    """Chance that an interval of a mean excludes zero where the truth is the margin, and seeds for 80 %.

    Parameters
    ----------
    margin
        The true difference to be told from none.
    spread
        Standard deviation between seeds.
    num_seeds
        Of the design.
    level
        Of its interval.
    """
    from scipy import stats

    shift, critical = margin / max(spread, 1e-300), find_student_factor(num_seeds, level)
    power = float(stats.nct.sf(critical, num_seeds - 1, min(shift * num_seeds**0.5, 35.0)))
    needed = (stats.norm.ppf((1 + level) / 2) + stats.norm.ppf(GOOD_POWER)) / shift
    return power, max(2, math.ceil(needed**2))


def _ask(spec: ClaimSpec, rows: Mapping[str, Sequence[Row]], facts: Mapping[str, Any]) -> Iterator[Question]:
    """Ask about every set of rows that exist."""
    known = rows.get(spec.table, [])
    for value in dict.fromkeys(row.get(spec.each) for row in known) if spec.table else [None]:
        own = [row for row in known if row.get(spec.each) == value]
        for selectors in spec.about:
            chosen = [_select(own, selector) for selector in selectors]
            if all(row is not None for row in chosen):
                named = dict(zip(("first", "second", "third"), chosen, strict=False))
                yield Question(spec, {**facts, **named, "margin": spec.margin})


def _select(rows: Sequence[Row], selector: Selector) -> Row | None:
    wanted = selector if isinstance(selector, dict) else {"sampler": selector}
    return next((row for row in rows if all(row.get(key) == cell for key, cell in wanted.items())), None)


def _answer(question: Question, level: float, conditions: set[str]) -> Verdict:
    spec = question.spec
    shown, seeds = _estimate(question, level)
    facts = {**question.facts, "estimate": shown, "level": level}
    rows = {name: facts[name] for name in ("first", "second", "third") if name in facts}
    conditions = conditions | {f"{name}.{key}" for name, row in rows.items() for key in row}
    claim, sentence = say(spec.claim, facts, conditions), say(spec.sentence, facts, conditions)
    verdict = Verdict(claim=claim, outcome="undecided", sentence=sentence, estimate=shown, place=spec.place)
    if spec.holds:
        return verdict.model_copy(update={"outcome": "shown" if find_fact(spec.holds, facts) else "opposite"})
    limit = find_fact(spec.limit, facts) if isinstance(spec.limit, str) else spec.limit
    difference = _move(shown, -limit, -1 if spec.less else 1)
    update: dict[str, Any] = {"estimate": difference, "margin": spec.margin}
    if difference.low is None and not spec.is_exact:
        update["sentence"] = f"{sentence} A single run has no interval, so nothing is decided."
        return verdict.model_copy(update=update)
    low, high = _ends(difference)
    outcome = classify(low, high, spec.margin, same=spec.same)
    words = [sentence, _say_margin(spec)]
    lacking = [str(row["sampler"]) for row in rows.values() if spec.needs and row.get(spec.needs) == "no"]
    if lacking:
        verb = "is" if len(lacking) == 1 else "are"
        words.append(f"Nothing is decided, because {' and '.join(lacking)} {verb} not {spec.needs}.")
        return verdict.model_copy(update=update | {"sentence": " ".join(words)})
    if outcome == "undecided" and seeds is not None and spec.margin:
        power, needed = find_power(spec.margin, seeds.std(ddof=1), len(seeds), level)
        update |= {"power": power, "seeds_needed": needed}
        words.append(
            f"Power {100 * power:.0f} %: so often do {len(seeds)} seeds tell {spec.margin:g} from nothing; "
            f"{100 * GOOD_POWER:.0f} % takes about {needed} seeds."
        )
        if high <= spec.margin:
            words.append("An advantage that counts is excluded.")
    return verdict.model_copy(update=update | {"outcome": outcome, "sentence": " ".join(words)})


def _say_margin(spec: ClaimSpec) -> str:
    if spec.same:
        return f"Within {spec.margin:g} counts as the same."
    return f"Less than {spec.margin:g} would not count." if spec.margin else ""


def _estimate(question: Question, level: float) -> tuple[Estimate, np.ndarray | None]:
    """The estimate that decides, and the values of the seeds where it is their mean."""
    spec, facts = question.spec, question.facts
    if spec.estimate:
        given = find_fact(spec.estimate, facts)
        given = given(level) if callable(given) else given
        return (given, None) if isinstance(given, Estimate) else _estimate_mean(given, level)
    terms: list[Any] = [find_fact(t, facts) if isinstance(t, str) else t for t in spec.difference]
    first, second, *factor = terms
    if spec.by == "wins":
        wins = np.asarray(first < second, float)
        return estimate_fraction(int(wins.sum()), len(wins), level), wins
    if isinstance(first, Estimate):
        return _subtract(first, second), None
    return _estimate_mean(first - (factor[0] if factor else 1) * second, level)


def _estimate_mean(values: Any, level: float) -> tuple[Estimate, np.ndarray | None]:
    if not isinstance(values, np.ndarray):
        return Estimate(value=float(values)), None
    return estimate_mean(values, level), values if len(values) > 1 else None


def _subtract(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two estimates with intervals of their own, which add in squares."""
    reaches = [0.0 if one.high is None else one.high - one.value for one in (first, second)]
    value, reach = first.value - second.value, float(np.linalg.norm(reaches))
    return Estimate(value=value, low=value - reach, high=value + reach)


def _move(estimate: Estimate, by: float, sign: int) -> Estimate:
    """`sign · (estimate + by)` with its interval."""
    ends = [None if end is None else sign * (end + by) for end in (estimate.low, estimate.high)][::sign]
    return Estimate(value=sign * (estimate.value + by), low=ends[0], high=ends[1])


def _ends(difference: Estimate) -> tuple[float, float]:
    """The interval; of an exact number, itself."""
    low, high = difference.low, difference.high
    return difference.value if low is None else low, difference.value if high is None else high
