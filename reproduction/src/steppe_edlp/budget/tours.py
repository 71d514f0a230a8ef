"""Tours of eight cities: all of them, those within a budget, and their neighbours."""

from functools import partial
from itertools import permutations

import numpy as np

from steppe.targets import tsp
from steppe.targets.tsp_bits import PAPER_CORNERS, TourBits
from steppe_edlp.budget.enumerated import Instance

NUM_CITIES = 8
# An insertion of one city elsewhere replaces three edges.
NEAR = 3
LEAST_FACTOR, LARGEST_FACTOR = 1.0, 3.0
CYCLES = np.asarray([(0, *rest) for rest in permutations(range(1, NUM_CITIES))])
_CODES = CYCLES @ NUM_CITIES ** np.arange(NUM_CITIES)[::-1]
_EDGES = NUM_CITIES * CYCLES + np.roll(CYCLES, -1, axis=1)
_CORNERS = np.asarray(PAPER_CORNERS)
_APART = np.linalg.norm(_CORNERS[:, None] - _CORNERS, axis=-1)
_IS_ROAD = ~np.eye(NUM_CITIES, dtype=bool)


def make_tours(seed: int, *, tolerance: float) -> Instance:
    """Draw factors between the corners of a cube and enumerate all tours.

    Parameters
    ----------
    seed
        Of the factors, uniform between 1 and 3, which depend on the direction.
    tolerance
        An affordable tour costs at most this fraction more than the best.
    """
    factors = np.random.default_rng([7, seed]).uniform(LEAST_FACTOR, LARGEST_FACTOR, (NUM_CITIES, NUM_CITIES))
    return _enumerate_tours(factors, tolerance)


def make_places(seed: int, distances: np.ndarray, *, tolerance: float) -> Instance:
    """Draw eight places of a map and enumerate all tours of them.

    Parameters
    ----------
    seed
        Of the places.
    distances
        Between all places of the map, the same both ways.
    tolerance
        An affordable tour costs at most this fraction more than the best.
    """
    chosen = np.random.default_rng([8, seed]).choice(len(distances), NUM_CITIES, replace=False)
    roads = distances[np.ix_(chosen, chosen)]
    # As long on average as roads with factors are, so that temperatures are alike.
    roads = roads * (LEAST_FACTOR + LARGEST_FACTOR) / 2 * _APART[_IS_ROAD].mean() / roads[_IS_ROAD].mean()
    return _enumerate_tours(roads / np.where(_IS_ROAD, _APART, 1.0), tolerance)


def _enumerate_tours(factors: np.ndarray, tolerance: float) -> Instance:
    """All tours of the corners of a cube; one and its reverse are the same if roads are as long both ways."""
    target = tsp(coordinates=_CORNERS, weights=factors, encoding="bits")
    assert isinstance(target, TourBits)
    costs = (factors * _APART).ravel()[_EDGES].sum(axis=1)
    excess = costs / costs.min() - 1
    numbers = np.arange(len(CYCLES))
    if is_symmetric := np.array_equal(factors, factors.T):
        numbers = np.minimum(numbers, number_cycles(CYCLES[:, ::-1]))
    affordable = np.flatnonzero((excess <= tolerance) & (numbers == np.arange(len(CYCLES))))
    edges = _EDGES[affordable]
    edges = np.minimum(edges, _turn(edges)) if is_symmetric else edges
    has_edge = np.zeros((len(affordable), NUM_CITIES**2), np.int64)
    np.put_along_axis(has_edge, edges, 1, axis=1)
    return Instance(
        target,
        log_density=-costs,
        excess=excess,
        affordable=affordable,
        distances=NUM_CITIES - has_edge @ has_edge.T,
        near=NEAR,
        number=partial(_number_positions, target, np.append(numbers, -1)),
        draw_starts=target.starts,
    )


def _turn(edges: np.ndarray) -> np.ndarray:
    """Numbers of the same edges the other way round."""
    return NUM_CITIES * (edges % NUM_CITIES) + edges // NUM_CITIES


def _number_positions(target: TourBits, numbers: np.ndarray, positions: np.ndarray) -> np.ndarray:
    return numbers[number_cycles(target.tour(positions))]


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
