"""Which sites mixed, which are not converged and which never changed, judged from the levels of kept draws.

R-hat of a bit is a poor thing to look at: it is undefined where a chain is constant, and close to 1 where
a level is rare. So it is used here, never shown; what is shown is one of three words per site:

- *constant*: one level in every draw of every chain. The target may demand it; the draws cannot tell.
- *not converged*: chains tell different stories. Either the fraction of the most frequent level differs
  between
  (half) chains by an R-hat above a limit, or a chain never leaves a level that others leave often.
- *mixed*: neither.

Warm-up is not consulted. From random starts nearly every site moves in warm-up, also those which the target
then holds in place for good.

In an ensemble every replica counts as a chain of its own: a replica that has not converged among moving ones
is found.
Replicas of one chain depend on each other, which can only delay the verdict of R-hat, not cause one.
"""

from typing import NamedTuple

import numpy as np

RHAT_LIMIT = 1.05
# Chance per run, all sites together, that a chain is said to be held in place when it merely did not happen
# to leave a rarely left level.
FALSE_ALARM = 1e-3
MIN_DRAWS = 4


class SiteVerdicts(NamedTuple):
    """What became of every site.

    Attributes
    ----------
    is_constant
        One level everywhere, by site.
    is_held
        Whether a chain never leaves a level of a site that others leave, (chain · replica, site).
    disagrees
        Whether R-hat of the most frequent level is above the limit, by site.
    """

    is_constant: np.ndarray
    is_held: np.ndarray
    disagrees: np.ndarray

    @property
    def is_unconverged(self) -> np.ndarray:
        """By site, whether chains tell different stories."""
        return self.disagrees | self.is_held.any(axis=0)

    @property
    def labels(self) -> np.ndarray:
        """`"constant"`, `"not converged"` or `"mixed"` by site."""
        return np.select([self.is_constant, self.is_unconverged], ["constant", "not converged"], "mixed")

    def count(self, label: str) -> int:
        """How many sites have a label."""
        return int((self.labels == label).sum())


def judge_sites(levels: np.ndarray, limit: float = RHAT_LIMIT) -> SiteVerdicts:
    """Give every site a verdict.

    Parameters
    ----------
    levels
        Small integers with axes (chain, draw, [replica,] site).
    limit
        Largest R-hat of chains that agree.
    """
    paths = as_paths(levels)
    never_moves = (paths == paths[:, :1]).all(axis=1)
    is_constant = never_moves.all(axis=0) & (paths[:, 0] == paths[0, 0]).all(axis=0)
    return SiteVerdicts(
        is_constant=is_constant,
        is_held=_is_held(paths, never_moves & ~is_constant),
        disagrees=site_rhat(paths) > limit,  # false where R-hat is undefined
    )


def as_paths(levels: np.ndarray) -> np.ndarray:
    """Turn every replica of an ensemble into a chain of its own: (chain · replica, draw, site)."""
    if levels.ndim == 3:
        return levels
    by_replica = np.moveaxis(levels, 2, 1)
    return by_replica.reshape(-1, *by_replica.shape[2:])


def site_rhat(paths: np.ndarray) -> np.ndarray:
    """Split R-hat, without ranks, of the indicator of each site's most frequent level.

    It is infinite where half-chains are constant at different levels, and NaN where nothing varies.
    """
    num_sites, half = paths.shape[2], paths.shape[1] // 2
    if half < MIN_DRAWS // 2:
        return np.full(num_sites, np.nan)
    is_common = paths == commonest_levels(paths)
    fractions = np.concatenate([is_common[:, :half].mean(axis=1), is_common[:, -half:].mean(axis=1)])
    # The variance of an indicator follows from its mean.
    within = (fractions * (1 - fractions)).mean(axis=0) * half / (half - 1)
    between = fractions.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((half - 1) / half + between / within)


def commonest_levels(paths: np.ndarray) -> np.ndarray:
    """Most frequent level of every site over all chains and draws."""
    totals = [(paths == level).sum(axis=(0, 1)) for level in range(int(paths.max()) + 1)]
    return np.argmax(totals, axis=0)


def _is_held(paths: np.ndarray, never_moves: np.ndarray) -> np.ndarray:
    """Tell chains that cannot leave a level from those that merely did not.

    If all chains were alike, every excursion from a level would fall on any of `C` chains with equal
    chance, and of `E` excursions none would fall on some chain with a chance of at most `C (1 − 1/C)^E`.
    With 4 chains and 100 sites it takes 45 excursions of the others to call a chain held.
    """
    num_paths, _, num_sites = paths.shape
    is_held = np.zeros_like(never_moves)
    first = paths[:, 0]
    for level in np.unique(first[never_moves]):
        stays = never_moves & (first == level)
        sites = np.flatnonzero(stays.any(axis=0))
        is_away = paths[:, :, sites] != level
        num_excursions = is_away[:, 0].sum(axis=0) + (is_away[:, 1:] & ~is_away[:, :-1]).sum(axis=(0, 1))
        chance = num_paths * (1 - 1 / num_paths) ** num_excursions
        is_held[:, sites] |= stays[:, sites] & (chance < FALSE_ALARM / num_sites)
    return is_held
