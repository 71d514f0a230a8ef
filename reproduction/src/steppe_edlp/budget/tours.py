"""Tours of eight cities with random factors: all of them, those within a budget, and their neighbours."""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from steppe.targets import tsp
from steppe.targets.tsp_bits import PAPER_CORNERS, TourBits

NUM_CITIES = 8
# An insertion of one city elsewhere replaces three edges.
NEAR = 3
LEAST_FACTOR, LARGEST_FACTOR = 1.0, 3.0
CYCLES = np.asarray([(0, *rest) for rest in permutations(range(1, NUM_CITIES))])
_CODES = CYCLES @ NUM_CITIES ** np.arange(NUM_CITIES)[::-1]
_EDGES = NUM_CITIES * CYCLES + np.roll(CYCLES, -1, axis=1)


class Instance(NamedTuple):
    """Cities, and everything about the tours within a budget.

    Attributes
    ----------
    target
        In bits, as the paper has them.
    costs
        Of every cycle, in the order of `CYCLES`.
    affordable
        Numbers of the cycles that cost at most a fraction more than the best.
    distances
        Between two affordable cycles: edges of one, with their directions, that the other lacks.
    num_near
        Affordable cycles within three edges of each.
    """

    target: TourBits
    costs: np.ndarray
    affordable: np.ndarray
    distances: np.ndarray
    num_near: np.ndarray


def make_instance(seed: int, tolerance: float, inverse_temperature: float) -> Instance:
    """Draw factors between the corners of a cube and enumerate all tours.

    Parameters
    ----------
    seed
        Of the factors, uniform between 1 and 3, which depend on the direction.
    tolerance
        An affordable tour costs at most this fraction more than the best.
    inverse_temperature
        Of the target.
    """
    factors = np.random.default_rng([7, seed]).uniform(LEAST_FACTOR, LARGEST_FACTOR, (NUM_CITIES, NUM_CITIES))
    corners = np.asarray(PAPER_CORNERS)
    target = tsp(
        coordinates=corners, weights=factors, encoding="bits", inverse_temperature=inverse_temperature
    )
    assert isinstance(target, TourBits)
    lengths = factors * np.linalg.norm(corners[:, None] - corners, axis=-1)
    costs = lengths.ravel()[_EDGES].sum(axis=1)
    affordable = np.flatnonzero(costs <= (1 + tolerance) * costs.min())
    has_edge = np.zeros((len(affordable), NUM_CITIES**2), np.int64)
    np.put_along_axis(has_edge, _EDGES[affordable], 1, axis=1)
    distances = NUM_CITIES - has_edge @ has_edge.T
    num_near = (distances <= NEAR).sum(axis=1) - 1
    return Instance(target, costs, affordable, distances, num_near)


def number_cycles(tours: np.ndarray) -> np.ndarray:
    """Numbers of tours among `CYCLES`, and −1 for rows that name a city twice.

    Parameters
    ----------
    tours
        Cities along the last axis.
    """
    rows = tours.reshape(-1, NUM_CITIES)
    is_tour = (np.sort(rows, axis=1) == np.arange(NUM_CITIES)).all(axis=1)
    start = np.argmax(rows == 0, axis=1)
    turned = np.take_along_axis(rows, (start[:, None] + np.arange(NUM_CITIES)) % NUM_CITIES, axis=1)
    codes = turned @ NUM_CITIES ** np.arange(NUM_CITIES)[::-1]
    found = np.searchsorted(_CODES, np.where(is_tour, codes, _CODES[0]))
    return np.where(is_tour, found, -1).reshape(tours.shape[:-1])
