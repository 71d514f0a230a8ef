"""Tail mass of truncated counts: how much of a distribution lies beyond the largest count of a domain.

From the fractions `f` of draws at the largest count and `g` at the one before it: `f r / (1 − r)` with
`r = f / g`, what a geometric tail has beyond; tails that fall faster, as those of Poisson counts, have less.
"""

import math
from typing import NamedTuple

import numpy as np

from steppe.domain import Domain

# With no draw at the largest count, a fraction above 3 / n is ruled out at 95 % (the rule of three).
RULE_OF_THREE = 3.0
# More beyond than this, and moments are wrong in the second digit.
MAX_TAIL = 0.01


class Tail(NamedTuple):
    """The site with the most mass beyond its largest count.

    Attributes
    ----------
    site
        Its number.
    max_count
        Its largest count.
    top
        Fraction of draws there.
    beyond
        Fraction of all mass beyond, estimated, or bounded where no draw is at the largest count; infinite if
        counts do not fall off.
    """

    site: int
    max_count: int
    top: float
    beyond: float


def estimate_tail(domain: Domain, levels: np.ndarray) -> Tail | None:
    """Return the worst tail of a domain with truncated sites, else `None`.

    Parameters
    ----------
    domain
        Where draws live.
    levels
        Their levels, site last.
    """
    sites = domain.truncated_sites
    if not len(sites):
        return None
    flat = levels.reshape(-1, levels.shape[-1])[:, sites]
    last = np.asarray(domain.num_levels)[sites] - 1
    top, below = ((flat == last - step).mean(axis=0) for step in (0, 1))
    beyond = [_extrapolate(*fractions, len(flat)) for fractions in zip(top, below, strict=True)]
    worst = int(np.argmax(beyond))
    return Tail(int(sites[worst]), int(last[worst]), float(top[worst]), beyond[worst])


def _extrapolate(top: float, below: float, num_draws: int) -> float:
    if top == 0:
        return RULE_OF_THREE / num_draws
    beyond = top * top / (below - top) if below > top else math.inf
    return beyond if math.isinf(beyond) else beyond / (1 + beyond)  # of all mass, not of what is kept
