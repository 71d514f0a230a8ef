"""Tours of eight cities with random factors: all of them, those within a budget, and their neighbours."""

from functools import partial
from itertools import permutations

import numpy as np

from steppe.targets import tsp
from steppe.targets.tsp_bits import PAPER_CORNERS, TourBits
from steppe_edlp.budget.instance import Instance

NUM_CITIES = 8
# An insertion of one city elsewhere replaces three edges.
NEAR = 3
LEAST_FACTOR, LARGEST_FACTOR = 1.0, 3.0
CYCLES = np.asarray([(0, *rest) for rest in permutations(range(1, NUM_CITIES))])
_CODES = CYCLES @ NUM_CITIES ** np.arange(NUM_CITIES)[::-1]
_EDGES = NUM_CITIES * CYCLES + np.roll(CYCLES, -1, axis=1)


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
    corners = np.asarray(PAPER_CORNERS)
    target = tsp(coordinates=corners, weights=factors, encoding="bits")
    assert isinstance(target, TourBits)
    lengths = factors * np.linalg.norm(corners[:, None] - corners, axis=-1)
    costs = lengths.ravel()[_EDGES].sum(axis=1)
    excess = costs / costs.min() - 1
    affordable = np.flatnonzero(excess <= tolerance)
    has_edge = np.zeros((len(affordable), NUM_CITIES**2), np.int64)
    np.put_along_axis(has_edge, _EDGES[affordable], 1, axis=1)
    return Instance(
        target,
        log_density=-costs,
        excess=excess,
        affordable=affordable,
        distances=NUM_CITIES - has_edge @ has_edge.T,
        near=NEAR,
        number=partial(_number_positions, target),
        draw_starts=target.starts,
    )


def _number_positions(target: TourBits, positions: np.ndarray) -> np.ndarray:
    return number_cycles(target.tour(positions))


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
