"""What a run is worth: effective draws of the quantity that mixes worst, with an error from its chains."""

from typing import NamedTuple

import numpy as np

from steppe.diagnostics.quantity import average_replicas
from steppe.diagnostics.sites import MIN_DRAWS
from steppe.trace import Trace

LOG_DENSITY, DISTANCE = "log-density", "distance from the best state"


class Efficiency(NamedTuple):
    """Effective draws of all chains together.

    Attributes
    ----------
    num_effective
        Effective draws (bulk) of the quantity that has fewest; 0 if it never changed.
    standard_error
        Of that number, by leaving out one chain at a time; NaN for a single chain.
    quantity
        Which quantity that is: the log-density, or the number of sites that differ from the best state met.
    """

    num_effective: float
    standard_error: float
    quantity: str


def efficiency(trace: Trace) -> Efficiency:
    """Effective draws of a run that kept its draws.

    The log-density alone would praise a chain that never leaves a mode; the distance from the best state met
    by any chain tells modes apart. Chains that disagree lower the number as slow ones do.
    """
    quantities = {LOG_DENSITY: average_replicas(trace.statistic("log_density")), DISTANCE: _distances(trace)}
    found = {name: _effective(series.astype(float)) for name, series in quantities.items()}
    worst = min(found, key=lambda name: found[name])
    series = quantities[worst].astype(float)
    return Efficiency(found[worst], _jackknife_error(series), worst)


def _distances(trace: Trace) -> np.ndarray:
    """Sites that differ from the best state met, mean over replicas, (chain, draw)."""
    levels, log_density = trace.levels(), trace.statistic("log_density")
    best = levels.reshape(-1, levels.shape[-1])[int(np.argmax(log_density))]
    return average_replicas((levels != best).sum(axis=-1).astype(float))


def _effective(series: np.ndarray) -> float:
    from arviz_stats.base.array import array_stats

    if series.shape[1] < MIN_DRAWS or np.ptp(series) == 0:
        return 0.0
    # No more than there are draws: estimates beyond are those of alternating chains, and noisy.
    return float(min(np.asarray(array_stats.ess(series)), series.size))


def _jackknife_error(series: np.ndarray) -> float:
    num_chains = len(series)
    if num_chains < 2:
        return float("nan")
    # Each value is scaled to the whole: what is left out is a chain, not a fraction of the quality.
    scale = num_chains / (num_chains - 1)
    values = [scale * _effective(np.delete(series, chain, axis=0)) for chain in range(num_chains)]
    return float(np.sqrt((num_chains - 1) * np.var(values)))
