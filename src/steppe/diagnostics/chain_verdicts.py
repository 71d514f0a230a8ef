"""Chains that are not what they should be: constant, periodic, duplicated, or each in a mode of its own.

Verdicts are about whole draws. In an ensemble a draw is the levels of all replicas together. Where levels
were not kept, a draw is known by its log-density and its number of flips.
"""

from typing import NamedTuple

import numpy as np

from steppe.diagnostics.quantity import average_replicas, effective_draws, rhat
from steppe.diagnostics.sites import as_paths, commonest_levels, site_rhat
from steppe.domain import Categorical
from steppe.trace import Trace

MAX_PERIOD = 8
# A chain must have moved this often, and repeated itself this long, before a pattern counts. Draws as simple
# as a fair coin show one by accident with a chance below 2⁻²⁰ per pair of chains (duplicates) and below
# 7 · 2⁻³² per chain (periods).
MIN_MOVES = 20
MIN_REPEATS = 32
# Modes are told apart when neighbouring chain means differ by this many of their joint standard errors and
# every chain knows its own mean from this many effective draws. The chance of an accident is 6e-7 per pair
# for normal errors; with errors estimated from 20 draws, below 1e-4.
MIN_GAP = 5.0
MIN_CHAIN_ESS = 20.0
MAX_RENAMED = 64


PARITIES = ("even", "odd")

Group = tuple[int, ...]


class ChainVerdicts(NamedTuple):
    """What became of every chain.

    Attributes
    ----------
    is_constant
        Whether all draws of a chain are one state.
    period
        After how many draws states, log-densities or the parity of the levels repeat exactly, else 0.
    parity
        On two-level domains: 0 or 1 if a moving chain only ever meets states with an even or odd number of
        sites at their upper level; −1 if it meets both.
    duplicates
        Groups of moving chains with identical draws.
    modes
        Groups of chains, each at home in another place than the rest; empty if all chains share one.
    renamed
        Where chains agree once levels are renamed: which level of a chain stands for level 0, 1, … of the
        first chain, by chain; empty where they agree as they are, or not at all.
    has_names
        Whether levels are names without an order, so that an exchange of them is no other answer.
    exchanged
        Where some chains are constant or in modes of their own, but each is most of the time in one state,
        and that is the state of the first once levels are renamed, with the same log-density: which level
        stands for level 0, 1, … of the first chain, by chain. Only of levels that are names.
    """

    is_constant: np.ndarray
    period: np.ndarray
    parity: np.ndarray
    duplicates: tuple[Group, ...]
    modes: tuple[Group, ...]
    renamed: dict[int, tuple[int, ...]]
    has_names: bool = False
    exchanged: dict[int, tuple[int, ...]] | None = None

    @property
    def is_relabelled(self) -> bool:
        """Whether chains differ by the names of their levels and by nothing else."""
        return bool(self.renamed) and self.has_names

    @property
    def is_split_by_parity(self) -> bool:
        """Whether some chains meet even states only and others odd ones only."""
        return {0, 1} <= set(self.parity.tolist())

    @property
    def labels(self) -> list[str]:
        """One name per chain; `"moving"` if there is nothing to say."""
        labels = ["moving"] * len(self.period)
        for number, group in enumerate(self.modes, 1):
            for chain in group:
                labels[chain] = f"in mode {number}"
        if self.is_split_by_parity:
            for chain, parity in enumerate(self.parity):
                labels[chain] = f"only {PARITIES[parity]} states" if parity >= 0 else labels[chain]
        for first, *others in self.duplicates:
            for chain in others:
                labels[chain] = f"same as {first}"
        for chain, period in enumerate(self.period):
            labels[chain] = f"period {period}" if period else labels[chain]
        return ["constant" if still else label for still, label in zip(self.is_constant, labels, strict=True)]


def judge_chains(trace: Trace, levels: np.ndarray | None, limit: float) -> ChainVerdicts:
    """Give every chain a verdict.

    Parameters
    ----------
    trace
        The run.
    levels
        Levels of its kept draws, (chain, draw, [replica,] site), or `None` if they were not kept.
    limit
        Largest R-hat of chains that share a mode.
    """
    log_density = trace.statistic("log_density")
    states, num_moves = _states(trace, levels)
    parity = _parity(trace, levels)
    series = [states, _names(log_density)] + ([] if parity is None else [parity])
    is_constant = num_moves == 0
    may_repeat = num_moves >= MIN_MOVES
    has_names = isinstance(trace.domain, Categorical)
    renamed = {} if levels is None or is_constant.any() else _rename(trace, levels, limit)
    modes = _modes(average_replicas(log_density), levels, np.flatnonzero(~is_constant), limit)
    may_be_exchanged = has_names and not renamed and (is_constant.any() or bool(modes))
    return ChainVerdicts(
        is_constant=is_constant,
        period=np.where(may_repeat, np.max([_periods(one) for one in series], axis=0), 0),
        parity=_confined(parity, may_repeat),
        duplicates=_duplicates(states, may_repeat),
        modes=modes,
        renamed=renamed,
        has_names=has_names,
        exchanged=None if levels is None or not may_be_exchanged else _exchange(trace, levels),
    )


def _rename(trace: Trace, levels: np.ndarray, limit: float) -> dict[int, tuple[int, ...]]:
    """Find an exchange of levels, the same at all sites, after which all chains agree.

    It is found in the first half of the draws and judged in the second.
    """
    from scipy.optimize import linear_sum_assignment

    domain, half = trace.domain, levels.shape[1] // 2
    paths = as_paths(levels)
    has_names = domain.is_site_product and not domain.is_ragged and domain.max_levels <= MAX_RENAMED
    if not has_names or half < MIN_REPEATS or levels.ndim != 3:
        return {}
    log_density = trace.statistic("log_density")
    if not (site_rhat(paths) > limit).any() or rhat(log_density.astype(float)) > limit:
        return {}
    fractions = np.stack([(paths[:, :half] == k).mean(axis=1) for k in range(domain.max_levels)], axis=-1)
    renamed, orders = paths[:, half:].copy(), {}
    for chain, own in enumerate(fractions):
        costs = ((fractions[0][:, :, None] - own[:, None, :]) ** 2).sum(axis=0)
        order = linear_sum_assignment(costs)[1]
        if (order != np.arange(len(order))).any():
            orders[chain] = tuple(order.tolist())
            renamed[chain] = np.argsort(order)[paths[chain, half:]]
    return {} if (site_rhat(renamed) > limit).any() else orders


def _exchange(trace: Trace, levels: np.ndarray) -> dict[int, tuple[int, ...]]:
    """Find how levels must be renamed for the one state of every chain to be that of the first chain."""
    if levels.ndim != 3 or trace.domain.is_ragged:
        return {}
    log_density, orders, heights = trace.statistic("log_density"), {}, []
    first = commonest_levels(levels[:1])
    for chain, own in enumerate(levels):
        state = commonest_levels(own[None])
        is_there = (own == state).all(axis=1)  # most of the time, or the chain is at home in no one state
        pairs = set(zip(first.tolist(), state.tolist(), strict=True))
        if is_there.mean() <= 0.5 or not len(pairs) == len(set(first.tolist())) == len(set(state.tolist())):
            return {}
        heights.append(float(log_density[chain][is_there][0]))
        if any(here != there for here, there in pairs):
            orders[chain] = _complete(dict(pairs), trace.domain.max_levels)
    # As where gradients are compared with differences: sums of numbers as large, each rounded a few times.
    allowed = 1e4 * float(np.finfo(log_density.dtype).eps) * max(1.0, *np.abs(heights))
    return orders if np.ptp(heights) <= allowed else {}


def _complete(order: dict[int, int], num_levels: int) -> tuple[int, ...]:
    """A renaming of all levels, those that are left in their order."""
    left = iter(sorted(set(range(num_levels)) - set(order.values())))
    return tuple(order[level] if level in order else next(left) for level in range(num_levels))


def _states(trace: Trace, levels: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Name every draw by a number, (chain, draw), and count the moves of every chain."""
    if levels is not None:
        states = _names(levels)
        return states, (states[:, 1:] != states[:, :-1]).sum(axis=1)
    num_flips = trace.statistic("num_flips")
    log_density = trace.statistic("log_density").reshape(*num_flips.shape, -1)
    known = np.concatenate([log_density.astype(float), num_flips[..., None]], axis=-1)
    return _names(known), (num_flips[:, 1:] > 0).sum(axis=1)


def _names(rows: np.ndarray) -> np.ndarray:
    """Number (chain, draw) by equality of whatever stands in the other axes."""
    flat = rows.reshape(rows.shape[0] * rows.shape[1], -1)
    _, names = unique_rows(flat)
    return names.reshape(rows.shape[:2])


def unique_rows(rows: np.ndarray) -> tuple[int, np.ndarray]:
    """Count the distinct rows of a matrix, byte by byte, and number them."""
    if rows.dtype == np.uint8 and rows.max() <= 1:
        rows = np.packbits(rows, axis=-1)
    as_bytes = np.ascontiguousarray(rows).view(np.uint8)
    num_bytes = as_bytes.shape[1]
    if num_bytes <= 8:  # integers sort much faster than rows of bytes
        as_bytes, num_bytes = np.pad(as_bytes, ((0, 0), (0, 8 - num_bytes))), 8
    whole = np.uint64 if num_bytes == 8 else np.dtype((np.void, num_bytes))
    distinct, names = np.unique(as_bytes.view(whole), return_inverse=True)
    return len(distinct), names.reshape(-1)


def _parity(trace: Trace, levels: np.ndarray | None) -> np.ndarray | None:
    if levels is None or not trace.domain.is_two_level:
        return None
    return np.bitwise_xor.reduce(levels.reshape(*levels.shape[:2], -1), axis=-1)


def _confined(parity: np.ndarray | None, may_repeat: np.ndarray) -> np.ndarray:
    if parity is None:
        return np.full(len(may_repeat), -1)
    is_confined = may_repeat & (parity == parity[:, :1]).all(axis=1)
    return np.where(is_confined, parity[:, 0].astype(int), -1)


def _periods(series: np.ndarray) -> np.ndarray:
    """Smallest exact period of every chain, 0 for those that have none or never change."""
    periods = np.zeros(len(series), int)
    changes = (series != series[:, :1]).any(axis=1)
    for period in range(min(MAX_PERIOD, series.shape[1] - MIN_REPEATS), 1, -1):
        repeats = (series[:, period:] == series[:, :-period]).all(axis=1)
        periods = np.where(changes & repeats, period, periods)
    return periods


def _duplicates(states: np.ndarray, may_repeat: np.ndarray) -> tuple[Group, ...]:
    groups: dict[bytes, list[int]] = {}
    for chain in np.flatnonzero(may_repeat):
        groups.setdefault(states[chain].tobytes(), []).append(int(chain))
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _modes(
    log_density: np.ndarray, levels: np.ndarray | None, chains: np.ndarray, limit: float
) -> tuple[Group, ...]:
    """Group moving chains by their mean log-density or, if that is one, by where they are."""
    if len(chains) < 2 or log_density.shape[1] < 2 * MIN_CHAIN_ESS:
        return ()
    groups = _groups(log_density[chains], chains, limit)
    if not groups and levels is not None:
        groups = _groups(_along_difference(levels[chains]), chains, limit)
    return groups


def _groups(series: np.ndarray, chains: np.ndarray, limit: float) -> tuple[Group, ...]:
    series = series.astype(float)
    if np.ptp(series) == 0 or rhat(series) <= limit:
        return ()
    effective = np.array([effective_draws(one) for one in series])
    if not (effective >= MIN_CHAIN_ESS).all():
        return ()
    means, errors = series.mean(axis=1), series.std(axis=1, ddof=1) / np.sqrt(effective)
    order = np.argsort(means)
    is_gap = np.diff(means[order]) > MIN_GAP * np.hypot(errors[order][1:], errors[order][:-1])
    groups = np.split(chains[order], np.flatnonzero(is_gap) + 1)
    if len(groups) < 2:
        return ()
    return tuple(sorted(tuple(sorted(group.tolist())) for group in groups))


def _along_difference(levels: np.ndarray) -> np.ndarray:
    """Project draws on the direction in which chains differ most, (chain, half of the draws).

    The direction is found in the first half of the draws and used in the second: used where it was found, it
    would separate chains by their noise alone.
    """
    commonest = commonest_levels(as_paths(levels))
    half = levels.shape[1] // 2

    def fractions(draws: np.ndarray) -> np.ndarray:
        is_common = (draws == commonest).astype(np.float32)
        return is_common.mean(axis=1) if draws.ndim == 3 else is_common

    means = np.stack([fractions(chain[:half]).mean(axis=0) for chain in levels])
    direction = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2][0]
    return np.stack([fractions(chain[half:]) @ direction for chain in levels])
