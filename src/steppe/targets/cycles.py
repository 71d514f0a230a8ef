"""Cycles through cities: their canonical form and their edges, for arrays of NumPy and of JAX alike.

Tours are arrays of city numbers with the cities on the last axis. `xp` is `numpy` or `jax.numpy`.
"""

from types import ModuleType
from typing import TypeVar

import numpy as np
from jax import Array

Tours = TypeVar("Tours", Array, np.ndarray)


def rotate_to_city_0(xp: ModuleType, tours: Tours, is_directed: Tours | bool) -> Tours:
    """Begin every tour at city 0 and, unless directed, go towards its smaller neighbour."""
    size = tours.shape[-1]
    start = xp.argmax(tours == 0, axis=-1)[..., None]
    forth = xp.take_along_axis(tours, (start + xp.arange(size)) % size, axis=-1)
    back = xp.take_along_axis(tours, (start - xp.arange(size)) % size, axis=-1)
    return xp.where(is_directed | (forth[..., 1:2] <= back[..., 1:2]), forth, back)


def find_successors(xp: ModuleType, tours: Tours) -> Tours:
    """City after each city, by city."""
    places = xp.argsort(tours, axis=-1)
    return xp.take_along_axis(tours, (places + 1) % tours.shape[-1], axis=-1)


def count_new_edges(
    xp: ModuleType, after: Tours, others_after: Tours, others_before: Tours, is_directed: Tours | bool
) -> Tours:
    """Number of edges of cycles, given by the city after each city, that others do not have."""
    is_turned = xp.logical_not(is_directed) & (after == others_before)
    is_shared = (after == others_after) | is_turned
    return is_shared.shape[-1] - is_shared.sum(axis=-1)
