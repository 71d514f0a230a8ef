"""Verdicts on claims, each with the interval that decides it."""

from collections.abc import Callable, Sequence

from steppe.intervals import LEVEL, joint_level
from steppe.results import Estimate, Verdict

# Answers a claim when told the level of its interval.
Question = Callable[[float], Verdict]


def judged(claim: str, difference: Estimate, sentence: str, margin: float = 0.0) -> Verdict:
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


def judged_equal(claim: str, difference: Estimate, sentence: str, margin: float) -> Verdict:
    """Judge a claim that two numbers are the same by the interval of their difference.

    Parameters
    ----------
    claim, difference, sentence
        As in `judged`.
    margin
        The largest difference that counts as none. The claim holds if the whole interval lies within it to
        both sides, does not hold if the whole interval lies outside, and is not distinguishable otherwise.
    """
    low, high = _ends(difference)
    is_within, is_outside = -margin <= low and high <= margin, low > margin or high < -margin
    outcome = "holds" if is_within else "does not hold" if is_outside else "not distinguishable"
    return Verdict(claim=claim, outcome=outcome, sentence=sentence, estimate=difference)


def judged_together(questions: Sequence[Question]) -> list[Verdict]:
    """Answer all questions of an experiment so that their intervals hold together in 95 % of cases.

    A verdict that is wrong has an interval that misses the truth, so the chance that any verdict of the
    experiment is wrong is at most 5 %, however many claims it judges.

    Parameters
    ----------
    questions
        Every claim that is judged from random numbers; what is exact needs no share of the 5 %.
    """
    level = joint_level(len(questions))
    return [_undecided_without_interval(question(level)) for question in questions]


def _undecided_without_interval(verdict: Verdict) -> Verdict:
    """A number from a single seed looks exact, having no interval, and decides nothing."""
    if verdict.estimate is not None and verdict.estimate.low is not None:
        return verdict
    sentence = f"{verdict.sentence} A single run has no interval, so nothing is decided."
    return verdict.model_copy(update={"outcome": "not distinguishable", "sentence": sentence})


def joint_note(verdicts: Sequence[Verdict]) -> list[str]:
    """What to know about the intervals of verdicts that were judged together; nothing if none has one."""
    number = sum(verdict.estimate is not None and verdict.estimate.low is not None for verdict in verdicts)
    if number < 2:
        return []
    together = (
        f"{number} verdicts rest on random numbers. Each of their intervals is wide enough for "
        f"{100 * joint_level(number):.4g} %, so that all of them hold together in {100 * LEVEL:g} % of cases "
        "(Bonferroni): the chance that any of these verdicts is wrong is at most 1 in 20. Intervals in "
        "tables and figures stand alone, at 95 %."
    )
    return [together]


def _ends(difference: Estimate) -> tuple[float, float]:
    """The interval; of an exact number, itself."""
    low, high = difference.low, difference.high
    return difference.value if low is None else low, difference.value if high is None else high
