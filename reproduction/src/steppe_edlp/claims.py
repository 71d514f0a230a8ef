"""Verdicts on claims, each with the interval that decides it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steppe.intervals import LEVEL, estimate_fraction, estimate_mean, split_level
from steppe.results import Estimate, Verdict
from steppe_edlp.experiment import ClaimSpec, Selector
from steppe_edlp.request import Row
from steppe_edlp.wording import find_fact, is_said, say


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


def judge(claim: str, difference: Estimate, sentence: str, margin: float = 0.0) -> Verdict:
    """Judge a claim by the interval of a difference that is positive if the claim is right.

    Parameters
    ----------
    claim
        What was claimed.
    difference
        The difference and its interval.
    sentence
        What came out, with numbers.
    margin
        The smallest difference that would count. The claim does not hold if the whole interval lies below it
        (below zero without one), holds if the interval lies above zero, and is not distinguishable from its
        opposite otherwise.
    """
    low, high = _ends(difference)
    is_absent = high <= 0 or high < margin
    outcome = "does not hold" if is_absent else "holds" if low > 0 else "not distinguishable"
    return Verdict(claim=claim, outcome=outcome, sentence=sentence, estimate=difference)


def judge_equal(claim: str, difference: Estimate, sentence: str, margin: float) -> Verdict:
    """Judge a claim that two numbers are the same by the interval of their difference.

    Parameters
    ----------
    claim, difference, sentence
        As in `judge`.
    margin
        The largest difference that counts as none. The claim holds if the whole interval lies within it to
        both sides, does not hold if the whole interval lies outside, and is not distinguishable otherwise.
    """
    low, high = _ends(difference)
    is_within, is_outside = -margin <= low and high <= margin, low > margin or high < -margin
    outcome = "holds" if is_within else "does not hold" if is_outside else "not distinguishable"
    return Verdict(claim=claim, outcome=outcome, sentence=sentence, estimate=difference)


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
    shown = _estimate(question, level)
    facts = {**question.facts, "estimate": shown, "level": level}
    rows = {name: facts[name] for name in ("first", "second", "third") if name in facts}
    conditions = conditions | {f"{name}.{key}" for name, row in rows.items() for key in row}
    claim, sentence = say(spec.claim, facts, conditions), say(spec.sentence, facts, conditions)
    if spec.holds:
        outcome = "holds" if find_fact(spec.holds, facts) else "does not hold"
        return Verdict(claim=claim, outcome=outcome, sentence=sentence, estimate=shown)
    limit = find_fact(spec.limit, facts) if isinstance(spec.limit, str) else spec.limit
    difference = _move(shown, -limit, -1 if spec.less else 1)
    verdict = (judge_equal if spec.same else judge)(claim, difference, sentence, spec.margin)
    return verdict if spec.is_exact else _leave_open_without_interval(verdict)


def _estimate(question: Question, level: float) -> Estimate:
    spec, facts = question.spec, question.facts
    if spec.estimate:
        given = find_fact(spec.estimate, facts)
        given = given(level) if callable(given) else given
        return given if isinstance(given, Estimate) else _estimate_mean(given, level)
    terms: list[Any] = [find_fact(t, facts) if isinstance(t, str) else t for t in spec.difference]
    first, second, *factor = terms
    if spec.by == "wins":
        return estimate_fraction(int(np.sum(first < second)), len(first), level)
    if isinstance(first, Estimate):
        return _subtract(first, second)
    return _estimate_mean(first - (factor[0] if factor else 1) * second, level)


def _estimate_mean(values: Any, level: float) -> Estimate:
    return estimate_mean(values, level) if isinstance(values, np.ndarray) else Estimate(value=float(values))


def _subtract(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two estimates with intervals of their own, which add in squares."""
    reaches = [0.0 if one.high is None else one.high - one.value for one in (first, second)]
    value, reach = first.value - second.value, float(np.linalg.norm(reaches))
    return Estimate(value=value, low=value - reach, high=value + reach)


def _move(estimate: Estimate, by: float, sign: int) -> Estimate:
    """`sign · (estimate + by)` with its interval."""
    ends = [None if end is None else sign * (end + by) for end in (estimate.low, estimate.high)][::sign]
    return Estimate(value=sign * (estimate.value + by), low=ends[0], high=ends[1])


def _leave_open_without_interval(verdict: Verdict) -> Verdict:
    """A number from a single seed looks exact, having no interval, and decides nothing."""
    if verdict.estimate is not None and verdict.estimate.low is not None:
        return verdict
    sentence = f"{verdict.sentence} A single run has no interval, so nothing is decided."
    return verdict.model_copy(update={"outcome": "not distinguishable", "sentence": sentence})


def _ends(difference: Estimate) -> tuple[float, float]:
    """The interval; of an exact number, itself."""
    low, high = difference.low, difference.high
    return difference.value if low is None else low, difference.value if high is None else high
