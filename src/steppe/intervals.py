"""Intervals of figures that were measured over seeds, all at one level."""

import numpy as np

from steppe.errors import RunError
from steppe.results import Estimate

LEVEL = 0.95


def student_factor(num_values: int) -> float:
    """Standard errors that an interval reaches to each side of a mean of so many independent values."""
    from scipy import stats

    return float(stats.t.ppf((1 + LEVEL) / 2, num_values - 1))


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
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(value=mean)
    reach = student_factor(len(values)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return Estimate(value=mean, low=mean - reach, high=mean + reach)


def share_estimate(successes: int, trials: int) -> Estimate:
    """Share of successes with its 95 % interval (Wilson's)."""
    from scipy import stats

    found = stats.binomtest(int(successes), int(trials)).proportion_ci(LEVEL, "wilson")
    return Estimate(value=successes / trials, low=float(found.low), high=float(found.high))
