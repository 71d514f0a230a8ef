"""Verdicts on claims, each with the interval that decides it."""

from steppe.results import Estimate, Verdict


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
    low = difference.value if difference.low is None else difference.low
    high = difference.value if difference.high is None else difference.high
    is_absent = high <= 0 or high < margin
    outcome = "does not hold" if is_absent else "holds" if low > 0 else "not distinguishable"
    return Verdict(claim=claim, outcome=outcome, sentence=sentence, estimate=difference)
