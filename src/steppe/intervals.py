"""Intervals of statistics that were measured over seeds, at one level unless several must hold together."""

import math
from collections.abc import Sequence

import numpy as np

from steppe.errors import RunError
from steppe.results import Estimate

LEVEL = 0.95
# Half-width of an interval of 95 % in standard errors of a mean of many draws.
NORMAL_95 = 1.96


def split_level(number: int, level: float = LEVEL) -> float:
    """Level of each of so many intervals at which all of them hold together at another one (Bonferroni).

    Parameters
    ----------
    number
        How many intervals there are; they may depend on each other in any way.
    level
        Fraction of cases in which all of them hold.
    """
    return 1 - (1 - level) / max(number, 1)


def find_student_factor(num_values: int, level: float = LEVEL) -> float:
    """Standard errors that an interval reaches to each side of a mean of so many independent values.

    Parameters
    ----------
    num_values
        How many values.
    level
        Fraction of intervals that cover the true mean.
    """
    from scipy import stats

    return float(stats.t.ppf((1 + level) / 2, num_values - 1))


def estimate_from_error(value: float, error: float) -> Estimate | None:
    """A number with its 95 % interval from its standard error; without one where that is unknown or zero.

    Parameters
    ----------
    value
        What was measured; nothing can be said where it is not finite.
    error
        Its standard error; zero if it is exact.
    """
    if not math.isfinite(value):
        return None
    if not math.isfinite(error) or error == 0:
        return Estimate(value=value)
    return Estimate(value=value, low=value - NORMAL_95 * error, high=value + NORMAL_95 * error)


def estimate_mean(values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Mean of independent values with its interval (Student's); without one for a single value.

    Parameters
    ----------
    values
        One number per seed.
    level
        Fraction of intervals that cover the true mean.
    """
    values = np.asarray(values, float)
    if not np.isfinite(values).all():
        raise RunError("A mean of numbers that are not finite was asked for; the chains have diverged.")
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(value=mean)
    reach = find_student_factor(len(values), level) * float(values.std(ddof=1)) / len(values) ** 0.5
    return Estimate(value=mean, low=mean - reach, high=mean + reach)


def estimate_smallest(groups: Sequence[np.ndarray], level: float = LEVEL) -> Estimate:
    """The smallest of several means; the interval allows for its having been picked as the smallest.

    Where the intervals of all means hold together, the smallest true mean lies between the smallest lower and
    the smallest upper end.

    Parameters
    ----------
    groups
        Numbers per seed, one group for each mean.
    level
        Fraction of intervals that cover the smallest true mean, at least.
    """
    found = [estimate_mean(values, split_level(len(groups), level)) for values in groups]
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    value = min(one.value for one in found)
    return Estimate(value=value, low=min(lows, default=None), high=min(highs, default=None))


def estimate_fraction(successes: int, trials: int, level: float = LEVEL) -> Estimate:
    """Fraction of successes with its interval (Wilson's).

    Parameters
    ----------
    successes, trials
        Counts.
    level
        Fraction of intervals that cover the true share.
    """
    from scipy import stats

    found = stats.binomtest(int(successes), int(trials)).proportion_ci(level, "wilson")
    return Estimate(value=successes / trials, low=float(found.low), high=float(found.high))
