"""From numbers of independent repetitions to intervals and verdicts."""

import numpy as np

from steppe.errors import RunError
from steppe.results import Estimate, Verdict

LEVEL = 0.95


def mean_estimate(values: np.ndarray) -> Estimate:
    """Mean of independent values with its 95 % interval (Student's); without one for a single value.

    Parameters
    ----------
    values
        One number per seed.
    """
    values = np.asarray(values, float)
    if not np.isfinite(values).all():
        raise RunError("A mean of numbers that are not finite was asked for; the chains have diverged.")
    if len(values) < 2:
        return Estimate(value=float(values.mean()))
    from scipy import stats

    reach = stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Estimate(
        value=float(values.mean()), low=float(values.mean() - reach), high=float(values.mean() + reach)
    )


def share_estimate(successes: int, trials: int) -> Estimate:
    """Share of successes with its 95 % interval (Wilson's)."""
    from scipy import stats

    found = stats.binomtest(int(successes), int(trials)).proportion_ci(LEVEL, "wilson")
    return Estimate(value=successes / trials, low=float(found.low), high=float(found.high))


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
