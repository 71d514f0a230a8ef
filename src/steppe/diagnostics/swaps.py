"""Statistics of parallel tempering: swap rates, the barrier, round trips, and what they say of the ladder."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from steppe.trace import Trace

# Fewer round trips in all, and the cold draws have hardly been renewed by hot ones.
MIN_ROUND_TRIPS = 20


class Swaps(NamedTuple):
    """What replicas did on the ladder after warm-up.

    Attributes
    ----------
    rates
        Mean acceptance probability of a swap, for every pair of neighbouring rungs from the hottest.
    trips_by_chain
        How often replicas of every chain went from the hot end to the cold one and back.
    num_rows
        Rows they had for it, all chains together.
    """

    rates: np.ndarray
    trips_by_chain: np.ndarray
    num_rows: int

    @property
    def round_trips(self) -> int:
        """Round trips of all chains."""
        return int(self.trips_by_chain.sum())

    @property
    def num_rungs(self) -> int:
        """Number of temperatures."""
        return len(self.rates) + 1

    @property
    def barrier(self) -> float:
        """`Λ`: the sum of refused fractions, which hardly depends on the ladder it is measured with."""
        return float(np.sum(1 - self.rates))

    @property
    def num_wanted(self) -> int:
        """Rungs that a barrier of this height asks for: about `2 Λ + 1`."""
        return int(np.ceil(2 * self.barrier)) + 1


def measure_swaps(trace: Trace) -> Swaps | None:
    """Return the statistics of a tempered run, or `None` of another one."""
    if not trace.has("swap_rate"):
        return None
    rates, trips = trace.statistic("swap_rate"), trace.statistic("round_trips")
    made = trips[:, -1].astype(int) - trips[:, 0] if trips.size else np.zeros(len(trips), int)
    return Swaps(rates.reshape(-1, rates.shape[-1]).mean(axis=0), made, rates.shape[0] * rates.shape[1])


def judge_swaps(swaps: Swaps) -> Iterator[str]:
    """Yield what is wrong with a ladder, a sentence each."""
    short = swaps.num_rungs < 0.75 * swaps.num_wanted
    if short:
        yield (
            f"The barrier Λ = {swaps.barrier:.1f} needs about {swaps.num_wanted} rungs, and the ladder has "
            f"{swaps.num_rungs}; swaps are accepted {swaps.rates.min():.0%} of the time at the worst pair. "
            f"Use `num_rungs={swaps.num_wanted}`, or leave it out."
        )
    if swaps.round_trips < MIN_ROUND_TRIPS:
        yield (
            f"{swaps.round_trips} round trips in all between the hottest and the coldest rung: hot replicas "
            f"have hardly renewed the draws. {'Mend the ladder.' if short else 'Run longer.'}"
        )
