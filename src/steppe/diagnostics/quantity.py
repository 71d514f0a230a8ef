"""Statistics of one real quantity: mean, spread, Monte Carlo error, effective draws, R-hat (by ArviZ)."""

from typing import NamedTuple

import numpy as np

from steppe.diagnostics.sites import MIN_DRAWS


class Quantity(NamedTuple):
    """Statistics of one real quantity over all kept draws; NaN where undefined or a draw is not finite.

    Attributes
    ----------
    name
        `"log_density"`, or the name of an observable.
    mean, sd
        Of all draws of all chains.
    mcse
        Monte Carlo standard error of the mean.
    ess
        Effective sample size (bulk) of all chains together.
    rhat
        Rank-normalised split R-hat; infinite if every half-chain is constant but not all alike.
    """

    name: str
    mean: float
    sd: float
    mcse: float
    ess: float
    rhat: float

    @property
    def is_constant(self) -> bool:
        """Whether every draw has the same value."""
        return self.sd == 0


def measure(name: str, values: np.ndarray) -> Quantity:
    """Summarise a quantity, (chain, draw, [replica]).

    Replicas of an ensemble depend on each other, so they are averaged before R-hat, effective draws and Monte
    Carlo error are taken. Mean and standard deviation are those of a replica.
    """
    values = np.asarray(values, float)
    if not np.isfinite(values).all():
        return Quantity(name, *[np.nan] * 5)
    series = average_replicas(values)
    mean, sd = float(values.mean()), _deviation(values)
    if np.ptp(series) == 0:
        return Quantity(name, mean, sd, 0.0, np.nan, np.nan)
    if series.shape[1] < MIN_DRAWS:
        return Quantity(name, mean, sd, np.nan, np.nan, np.nan)
    from arviz_stats.base.array import array_stats

    return Quantity(
        name,
        mean,
        sd,
        mcse=_scalar(array_stats.mcse(series)),
        ess=_scalar(array_stats.ess(series)),
        rhat=rhat(series),
    )


def effective_draws(series: np.ndarray) -> float:
    """Effective draws of one chain for its own mean; all of them if it is constant."""
    from arviz_stats.base.array import array_stats

    if np.ptp(series) == 0:
        return float(len(series))
    return _scalar(array_stats.ess(series[None], method="mean"))


def average_replicas(values: np.ndarray) -> np.ndarray:
    """Average a quantity over the replicas of an ensemble: (chain, draw, [replica]) → (chain, draw)."""
    return values.mean(axis=2) if values.ndim == 3 else values


def rhat(series: np.ndarray) -> float:
    """Larger split R-hat of ranks and of folded ranks, of which the latter may not vary at all.

    Infinite if no half-chain varies, although they differ; NaN for a single chain.
    """
    from arviz_stats.base.array import array_stats

    if len(series) < 2:
        return np.nan
    half = series.shape[1] // 2
    if not (np.ptp(series[:, :half], axis=1).any() or np.ptp(series[:, -half:], axis=1).any()):
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        of_ranks = _scalar(array_stats.rhat(series, method="z_scale"))
        of_folded = _scalar(array_stats.rhat(series, method="folded"))
    return float(np.fmax(of_ranks, of_folded))


def _deviation(values: np.ndarray) -> float:
    # The variance of equal numbers may come out as rounding error.
    return float(values.std(ddof=1)) if np.ptp(values) > 0 else 0.0


def _scalar(value: object) -> float:
    return float(np.asarray(value))
