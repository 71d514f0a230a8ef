"""Distances between tours: how far apart two of them are, and when they are the same.

Tours are arrays of city numbers from 0 with the cities on the last axis; other axes are a batch and
broadcast against each other.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain.permutation import check_permutation
from steppe.errors import DomainError, RunError
from steppe.targets.cycles import count_new_edges, find_successors, rotate_to_city_0


@checked(RunError, first=1, second=1)
def pairwise_mismatch_count(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """The paper's distance: pairs of places that do not show the same pair of cities in both tours.

    Both tours get their start appended, which makes `n + 1` places, and of the `C(n + 1, 2)` pairs of places
    those count where at least one place differs: `C(n + 1, 2) − C(m, 2)` with `m` places that agree (for
    eight cities `36 − C(m, 2)`).

    Parameters
    ----------
    first, second
        Tours, or stacks of them that broadcast.

    Notes
    -----
    It compares places, not edges: agreement of the start counts twice, and the same cycle begun at another
    city scores the maximum. `edge_distance` does not depend on where a tour begins.
    """
    one, other = _close(_tours(first)), _close(_tours(second))
    num_agreeing = (one == other).sum(axis=-1)
    num_places = one.shape[-1]
    return num_places * (num_places - 1) // 2 - num_agreeing * (num_agreeing - 1) // 2


@checked(RunError, first=1, second=1)
def edge_distance(first: ArrayLike, second: ArrayLike, *, directed: bool = False) -> np.ndarray:
    """Number of edges of the first tour that the second does not have; 0 for the same cycle.

    Parameters
    ----------
    first, second
        Tours, or stacks of them that broadcast.
    directed
        Whether an edge travelled the other way is another edge. If not, a reversed tour is the same one.
    """
    return Edges.of(first).distance(Edges.of(second), directed=directed)


class Edges(NamedTuple):
    """The edges of tours as tables by city, for comparing one set of tours with many others."""

    after: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, tours: ArrayLike) -> "Edges":
        """Look up the city after and before each city."""
        stack = _tours(tours)
        return cls(find_successors(np, stack), find_successors(np, stack[..., ::-1]))

    def distance(self, others: "Edges", *, directed: bool) -> np.ndarray:
        """Number of edges that others do not have."""
        return count_new_edges(np, self.after, others.after, others.before, directed)

    def row(self, index: int) -> "Edges":
        """One tour of a stack."""
        return Edges(self.after[index], self.before[index])


@checked(RunError, tours=1)
def canonical_tours(tours: ArrayLike, *, directed: bool = False) -> np.ndarray:
    """Write every tour of a cycle the same way: from city 0, and unless directed towards its smaller side.

    Parameters
    ----------
    tours
        A tour or a stack of them.
    directed
        Whether a reversed tour is another one.
    """
    return rotate_to_city_0(np, _tours(tours), directed)


@checked(RunError, tours=1)
def distinct_tours(tours: ArrayLike, *, directed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct cycles in canonical form, where each was met first, and how often it was met.

    Parameters
    ----------
    tours
        Tours; all leading axes are one batch.
    directed
        Whether a reversed tour is another one.
    """
    stack = canonical_tours(tours, directed=directed)
    rows = stack.reshape(-1, stack.shape[-1])
    return np.unique(rows, axis=0, return_index=True, return_counts=True)


def _tours(tours: ArrayLike) -> np.ndarray:
    stack = np.asarray(tours)
    size = stack.shape[-1] if stack.ndim else 0
    if stack.dtype.kind not in "uif" or not (np.sort(stack, axis=-1) == np.arange(size)).all():
        rows = stack.reshape(-1, size) if size else stack.reshape(1, -1)
        for row in rows:
            check_permutation("tour", row, size)
        raise DomainError(f"A tour lists the cities 0, 1, 2, … in some order; got {tours!r}.")
    return stack.astype(np.int64)


def _close(tours: np.ndarray) -> np.ndarray:
    return np.concatenate([tours, tours[..., :1]], axis=-1)
