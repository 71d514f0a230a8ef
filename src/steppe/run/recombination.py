"""Recombination: of states that differ in separate regions, the better side of every region.

Sites in which two states differ fall into regions that no pair joins. What a region adds to the log-density
then does not depend on which side the other regions take, so that choosing each by itself gives the best of
all `2^regions` combinations (partition crossover: Whitley, Hains, Howe 2009, for tours). On sparse graphs the
ends of a few annealed chains differ in thousands of regions.
"""

from typing import NamedTuple

import numpy as np

from steppe.pytree import is_concrete
from steppe.target import Target

# Where sites have more neighbours, what differs hangs together, and looking at it finds nothing.
MAX_DEGREE = 8.0


class SparsePairs(NamedTuple):
    """A log-density of two-level sites as a sum over few pairs, each in both directions.

    Attributes
    ----------
    sources, ends, strengths
        The pairs and what the product of their values counts.
    field
        What the value of a site counts.
    to_values
        Factor and shift from positions to values.
    has_mirror
        Whether changing the sign of all values changes nothing.
    """

    sources: np.ndarray
    ends: np.ndarray
    strengths: np.ndarray
    field: np.ndarray
    to_values: tuple[float, float]
    has_mirror: bool


def list_sparse_pairs(target: Target) -> SparsePairs | None:
    """Return the pairs of a target, or `None` where it is no sum over few pairs of two-level sites.

    Parameters
    ----------
    target
        What is annealed.
    """
    form, pairs = target.pair_form, target.interactions
    if form is None or form.values is None or pairs is None or not is_concrete(target):
        return None
    num_sites = target.domain.num_sites
    if target.has_constraint or not 0 < len(pairs.ends) <= MAX_DEGREE * num_sites:
        return None
    strengths, scale = np.asarray(form.strengths, float), float(form.scale)
    strengths = scale * np.broadcast_to(
        strengths if pairs.places is None else strengths[np.asarray(pairs.places)], len(pairs.ends)
    )
    field = scale * np.broadcast_to(np.asarray(form.field, float), num_sites)
    low, high = form.values
    first, second = np.asarray(target.domain.points(0), float)[:, 0]
    factor = (high - low) / (second - first)
    has_mirror = low == -high and first == -second and not field.any()
    return SparsePairs(
        np.asarray(pairs.sources),
        np.asarray(pairs.ends),
        strengths,
        field,
        (factor, low - factor * first),
        has_mirror,
    )


def recombine(pairs: SparsePairs, state: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return a state put together from one and from regions of others, nowhere worse than the first.

    Parameters
    ----------
    pairs
        The log-density.
    state
        What is improved.
    others
        Where regions are taken from, one state per row; where signs do not matter, from mirror images too.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.targets import max_cut
    >>> pairs = list_sparse_pairs(max_cut([[0, 1], [1, 2], [2, 3], [3, 4]]))  # a path
    >>> left, right = np.array([-1.0, 1, -1, -1, -1]), np.array([-1.0, -1, -1, 1, -1])
    >>> recombine(pairs, left, right[None]).tolist()
    [-1.0, 1.0, -1.0, 1.0, -1.0]
    """
    for other in others:
        state = _cross(pairs, state, other)
        if pairs.has_mirror:
            state = _cross(pairs, state, -other)
    return state


def _cross(pairs: SparsePairs, state: np.ndarray, other: np.ndarray) -> np.ndarray:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    differs = state != other
    sources, ends = pairs.sources, pairs.ends
    touched = np.flatnonzero(differs[sources])
    sources, ends, strengths = sources[touched], ends[touched], pairs.strengths[touched]
    is_inside = differs[ends]
    joined = (np.ones(is_inside.sum(), bool), (sources[is_inside], ends[is_inside]))
    num_regions, region = connected_components(coo_matrix(joined, (len(state),) * 2), directed=False)
    factor, shift = pairs.to_values
    old, new = factor * state + shift, factor * other + shift
    # A pair inside a region is met from both of its ends, one at its border once.
    change = strengths * (new[sources] * new[ends] - old[sources] * old[ends]) * np.where(is_inside, 0.5, 1.0)
    of_pairs = np.bincount(region[sources], change, num_regions)
    gains = of_pairs + np.bincount(region, pairs.field * (new - old), num_regions)
    return np.where(differs & (gains[region] > 1e-9), other, state)
