"""Statistics of observables that were followed while chains ran, from what was kept at fixed memory.

Notation: a chain has seen `n` values with sample variance `s²`; `b` is the size of a batch and `v` the sample
variance of the means of full batches, of which there are at most 64. The autocorrelation time is
`τ = b v t / s²`, where `t` is that of the batch means, close to 1 where batches are long: `n / τ` independent
values would know the mean as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steppe.diagnostics.quantity import Quantity, effective_draws

if TYPE_CHECKING:
    from xarray import Dataset

    from steppe.run.storage.record import ObservableRecord

MIN_BATCHES = 8
PREFIX = "readings."


class Streamed(NamedTuple):
    """One observable; the first axis of arrays is the chain, or the pair of chains.

    Attributes
    ----------
    name
        What it is called.
    every
        Draws between looks.
    num_seen, num_nonfinite
        Finite values, and others, which count nowhere else.
    mean, variance
        Of the values; the variance is unbiased, and NaN after a single one.
    autocorrelation_time
        `τ` in looks, 1 for independent values; NaN where too few were seen.
    batch_size, batch_means
        Means over consecutive stretches of so many values, a coarse trace; NaN where a stretch is not full.
    bin_edges, counts
        Histogram: edges of its bins, the same for all chains, and values in each, (chain, bin).
    """

    name: str
    every: int
    num_seen: np.ndarray
    num_nonfinite: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    autocorrelation_time: np.ndarray
    batch_size: np.ndarray
    batch_means: np.ndarray
    bin_edges: np.ndarray
    counts: np.ndarray

    @property
    def pooled_time(self) -> float:
        """Autocorrelation time in draws, of all chains together."""
        return float(self.every * self.num_seen.sum() / self.summarize().ess)

    def summarize(self) -> Quantity:
        """Return statistics over all chains, as of kept draws; R-hat is that of the values, not of ranks."""
        if not self.num_seen.all():
            return Quantity(self.name, *[np.nan] * 5)
        weights = self.num_seen / self.num_seen.sum()
        mean = float(weights @ self.mean)
        within = float(weights @ np.nan_to_num(self.variance))
        sd = float(np.sqrt(within + weights @ (self.mean - mean) ** 2))
        if sd == 0:
            return Quantity(self.name, mean, 0.0, 0.0, np.nan, np.nan)
        if np.isnan(self.autocorrelation_time).any():
            return Quantity(self.name, mean, sd, np.nan, np.nan, np.nan)
        from arviz_stats.base.array import array_stats

        num_full = int(np.sum(~np.isnan(self.batch_means), axis=1).min())
        mcse = float(np.asarray(array_stats.mcse(self.batch_means[:, :num_full])))
        ess = min(sd**2 / mcse**2, float(self.num_seen.sum())) if mcse > 0 else np.nan
        return Quantity(self.name, mean, sd, mcse, ess, self._compare_halves())

    def _compare_halves(self) -> float:
        """R-hat of the halves of all chains, infinite if none varies although they differ."""
        if len(self.num_seen) < 2:
            return np.nan
        full = np.sum(~np.isnan(self.batch_means), axis=1)
        halves = np.array(
            [
                (means[: size // 2].mean(), means[size // 2 : 2 * (size // 2)].mean())
                for means, size in zip(self.batch_means, full, strict=True)
            ]
        )
        length = self.num_seen / 2
        apart = np.sum((halves - self.mean[:, None]) ** 2, axis=1) / 2
        within = float(np.mean(np.maximum(self.variance - apart, 0)))
        between = float(np.var(halves, ddof=1))
        if within == 0:
            return np.inf
        shrink = 1 - 1 / float(length.mean())
        return float(np.sqrt(shrink + between / within))

    def to_dataset(self) -> "Dataset":
        """Return everything as an xarray `Dataset`."""
        from xarray import Dataset

        by_chain = ("num_seen", "num_nonfinite", "mean", "variance", "autocorrelation_time", "batch_size")
        variables = {name: (("chain",), getattr(self, name)) for name in by_chain}
        coordinates = {"chain": np.arange(len(self.mean)), "bin": self.bin_edges[:-1]}
        widths = np.diff(self.bin_edges)
        return Dataset(
            {
                **variables,
                "batch_mean": (("chain", "batch"), self.batch_means),
                "count": (("chain", "bin"), self.counts),
                "bin_width": (("bin",), widths),
            },
            coords=coordinates,
            attrs={"every": self.every},
        )


class StreamedRun(NamedTuple):
    """All that was followed of a run.

    Attributes
    ----------
    log_density
        The log-density, which is followed beside any observable.
    observables
        The others by name.
    acceptance_rates, flips
        Mean acceptance rate and flips per kept step, by chain.
    """

    log_density: Streamed
    observables: dict[str, Streamed]
    acceptance_rates: np.ndarray
    flips: np.ndarray

    @property
    def all(self) -> list[Streamed]:
        """The log-density, then the others."""
        return [self.log_density, *self.observables.values()]


def read_streamed(
    parts: Sequence[Mapping[str, np.ndarray]], records: "Sequence[ObservableRecord]", num_chains: int
) -> StreamedRun:
    """Read what was followed from saved chains.

    Parameters
    ----------
    parts
        Arrays of the chains of every shard by name, (block, lane, …).
    records
        What was followed.
    num_chains
        Number of chains in all; lanes beyond the last are idle.
    """

    def read(name: str) -> np.ndarray:
        return np.concatenate([part[PREFIX + name][part["chain"] < num_chains] for part in parts])

    rows = np.maximum(read("num_rows"), 1)
    log_density = _read_one(lambda name: read(f"streams.0.{name}"), "log_density", 1, 1)
    others = {
        record.name: _read_one(
            lambda name, index=index: read(f"streams.{index}.{name}"),
            record.name,
            record.every,
            2 if record.of_pairs else 1,
        )
        for index, record in enumerate(records, 1)
    }
    return StreamedRun(log_density, others, read("acceptance_rate") / rows, read("num_flips") / rows)


def _read_one(read_all: Callable[[str], np.ndarray], name: str, every: int, stride: int) -> Streamed:
    def read(leaf: str) -> np.ndarray:
        return read_all(leaf)[::stride]  # both chains of a pair have the same values

    num_seen, size = read("num_seen"), read("batch_size")
    origin = read("origin").astype(float)
    freedom = np.where(num_seen > 1, num_seen - 1.0, np.nan)
    variance = read("sum_of_squares").astype(float) / freedom
    batches = read("batches").astype(float)
    is_full = np.arange(batches.shape[1]) < (num_seen // size)[:, None]
    means = np.where(is_full, origin[:, None] + batches / size[:, None], np.nan)
    edges, counts = _join_bins(read("exponent"), read("first_bin"), read("counts"), num_seen > 0)
    return Streamed(
        name=name,
        every=every,
        num_seen=num_seen,
        num_nonfinite=read("num_nonfinite"),
        mean=np.where(num_seen > 0, origin + read("mean"), np.nan),
        variance=variance,
        autocorrelation_time=_time(batches / size[:, None], is_full, size, variance),
        batch_size=size,
        batch_means=means,
        bin_edges=edges,
        counts=counts,
    )


def _time(means: np.ndarray, is_full: np.ndarray, size: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """`τ = b v t / s²` of every chain; 1 where nothing varies, NaN where batches are too few."""
    found = np.full(len(means), np.nan)
    for chain, num_full in enumerate(is_full.sum(axis=1)):
        series = means[chain, :num_full]
        if num_full >= MIN_BATCHES and not variance[chain] > 0:
            found[chain] = 1.0
        elif num_full >= MIN_BATCHES:
            times = num_full / effective_draws(series)
            found[chain] = size[chain] * series.var(ddof=1) * times / variance[chain]
    return found


def _join_bins(
    exponents: np.ndarray, first_bins: np.ndarray, counts: np.ndarray, is_used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges that serve all chains, and counts of every chain between them."""
    if not counts.shape[1] or not is_used.any():
        return np.zeros(1), np.zeros((len(counts), 0), counts.dtype)
    widest = int(exponents[is_used].max())
    places = first_bins[:, None].astype(np.int64) + np.arange(counts.shape[1])
    places >>= np.clip(widest - exponents, 0, 62)[:, None]
    is_there = (counts > 0) & is_used[:, None]
    low, high = places[is_there].min(), places[is_there].max()
    joined = np.zeros((len(counts), high - low + 1), counts.dtype)
    chain = np.broadcast_to(np.arange(len(counts))[:, None], counts.shape)
    np.add.at(joined, (chain[is_there], places[is_there] - low), counts[is_there])
    return np.ldexp(np.arange(low, high + 2, dtype=float), widest), joined
