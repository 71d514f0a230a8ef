"""Iterated local search of short tours: 2-opt and Or-opt over neighbour lists, with double bridges between.

All moves that make one of the nearest neighbours of a city its neighbour in the tour are weighed at once,
and the best one is made until none shortens the tour. A local double bridge then exchanges two stretches next
to each other, which 2-opt cannot undo, and the search begins anew; what is not longer is kept.

Notation: `L[a, b]` is the length from city `a` to city `b`; the stretch `f … e` lies between `p` and `q`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.targets.cycles import rotate_to_city_0
from steppe.targets.tsp import Tsp
from steppe.targets.tsp_bits import TourBits
from steppe.validation import count, random_key

LONGEST_STRETCH = 3
# Cities in either of the stretches that a double bridge exchanges, at most.
LONGEST_BRIDGE = 30
# Lengths are compared with as many roundings of the longest edge.
NUM_ROUNDINGS = 32
# Kinds of moves: two reversals, then for every length of a stretch four places next to a neighbour.
REVERSALS = 2
PLACES = 4


class ShortTours(NamedTuple):
    """Tours found, the shortest first.

    Attributes
    ----------
    tours
        One row per start, cities in canonical order.
    costs
        Their lengths.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.tsp(coordinates=[[0, 0], [2, 0], [2, 1], [0, 1], [1, 0]])
    >>> found = steppe.routes.find_short_tours(target, key=jax.random.key(0))
    >>> float(found.costs[0])  # around the rectangle
    6.0
    """

    tours: np.ndarray
    costs: np.ndarray


@checked(RunError, num_starts="[1, inf)", num_bridges="[0, inf)", num_neighbours="[1, inf)")
def find_short_tours(
    target: Tsp | TourBits,
    *,
    key: Array,
    num_starts: int = 1,
    num_bridges: int = 4000,
    num_neighbours: int = 8,
) -> ShortTours:
    """Search for the shortest tour by iterated local search; it optimises and samples nothing.

    Parameters
    ----------
    target
        A `targets.tsp` on permutations. Where lengths depend on the direction, no stretch is reversed.
    key
        Random key of the first tours and the double bridges.
    num_starts
        Searches from random tours, one after another.
    num_bridges
        Double bridges in each of them, each followed by a local search. Raising it finds shorter tours, at a
        cost in proportion: some 0.4 ms each for 100 cities.
    num_neighbours
        How many of the nearest cities a city may be joined to. Raising it weighs more moves.

    Examples
    --------
    >>> import jax, numpy as np, steppe
    >>> cities = np.random.default_rng(0).random((12, 2))
    >>> target = steppe.targets.tsp(coordinates=cities)
    >>> found = steppe.routes.find_short_tours(target, key=jax.random.key(0), num_bridges=50)
    >>> found.tours.shape
    (1, 12)
    """
    name = "find_short_tours"
    if isinstance(target, TourBits):
        raise RunError(f"`{name}(target)` needs tours as permutations: `tsp(..., encoding='permutation')`.")
    starts = count(f"{name}(num_starts=...)", num_starts)
    bridges = count(f"{name}(num_bridges=...)", num_bridges, 0)
    nearest = min(count(f"{name}(num_neighbours=...)", num_neighbours), target.domain.num_sites - 1)
    keys = jax.random.split(random_key(name, key), starts)
    found = np.asarray(_search_all(target.lengths, keys, bridges, nearest, not target.is_symmetric))
    costs = np.asarray(target.cost(jnp.asarray(found)))
    order = np.argsort(costs, kind="stable")
    return ShortTours(rotate_to_city_0(np, found[order], not target.is_symmetric), costs[order])


@partial(jax.jit, static_argnames=("num_neighbours", "is_directed"))
def _search_all(
    lengths: Array, keys: Array, num_bridges: Array, num_neighbours: int, is_directed: bool
) -> Array:
    nearest = find_nearest(lengths, num_neighbours)
    return jax.lax.map(lambda key: _iterate(lengths, nearest, key, num_bridges, is_directed), keys)


def _iterate(lengths: Array, nearest: Array, key: Array, num_bridges: Array, is_directed: bool) -> Array:
    """Bridge and search, keeping what is not longer."""
    size = lengths.shape[0]

    def measure(tour: Array) -> Array:
        return jnp.sum(lengths[tour, jnp.roll(tour, -1)])

    def bridge(index: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        tour, cost = best
        found = _descend(lengths, nearest, _bridge(jax.random.fold_in(key, index + 1), tour), is_directed)
        length = measure(found)
        return jnp.where(length <= cost, found, tour), jnp.minimum(length, cost)

    start = jax.random.permutation(jax.random.fold_in(key, 0), size).astype(jnp.int32)
    first = _descend(lengths, nearest, start, is_directed)
    return jax.lax.fori_loop(0, num_bridges, bridge, (first, measure(first)))[0]


def find_nearest(lengths: Array, num_neighbours: int) -> Array:
    """Cities × neighbours, the nearest first, either way."""
    apart = jnp.minimum(lengths, lengths.T) + jnp.diag(jnp.full(len(lengths), jnp.inf))
    return jnp.argsort(apart, axis=1)[:, :num_neighbours].astype(jnp.int32)


def _descend(lengths: Array, nearest: Array, tour: Array, is_directed: bool) -> Array:
    """Make the best move until none shortens the tour by more than rounding."""
    least = NUM_ROUNDINGS * jnp.finfo(lengths.dtype).eps * jnp.max(lengths)

    def move(state: tuple[Array, Array]) -> tuple[Array, Array]:
        tour, _ = state
        places = _find_places(tour)
        table = weigh_moves(lengths, nearest, tour, places, is_directed)
        best = jnp.argmin(table)
        kind, city, rank = jnp.unravel_index(best, table.shape)
        is_shorter = table.reshape(-1)[best] < -least
        moved = make_move(nearest, tour, places, kind, city, rank)
        return jnp.where(is_shorter, moved, tour), is_shorter

    return jax.lax.while_loop(lambda state: state[1], move, (tour, jnp.asarray(True)))[0]


def _find_places(tour: Array) -> Array:
    return jnp.zeros_like(tour).at[tour].set(jnp.arange(len(tour), dtype=tour.dtype))


def weigh_moves(lengths: Array, nearest: Array, tour: Array, places: Array, is_directed: bool) -> Array:
    """Change of length by every move, a table over (kind, city, neighbour); no moves are `+inf`.

    Kinds 0 and 1 join a city to a neighbour by reversing what is between them. The others take the stretch of
    1 to 3 cities that begins with the city, and put its first or last city behind or ahead of a neighbour.
    """
    size = len(tour)
    city = jnp.arange(size)
    after, before = tour[(places + 1) % size], tour[(places - 1) % size]
    leave, enter = lengths[city, after], lengths[before, city]
    joined, near = lengths[city[:, None], nearest], nearest
    changes = [
        joined + lengths[after[:, None], after[near]] - leave[:, None] - leave[near],
        joined + lengths[before[:, None], before[near]] - enter[:, None] - enter[near],
    ]
    is_reversed = [True, True]
    for span in range(1, LONGEST_STRETCH + 1):
        first, last, behind = city, tour[(places + span - 1) % size], tour[(places + span) % size]
        freed = lengths[before, first] + lengths[last, behind] - lengths[before, behind]
        for is_last in (False, True):
            near = nearest[last if is_last else first]
            is_outside = (places[near] - places[:, None]) % size >= span
            # Behind the neighbour: the city at its side comes first. Ahead of it: it comes last.
            for is_ahead in (False, True):
                keeps = is_last == is_ahead
                head, tail = (first, last) if keeps else (last, first)
                left, right = (before[near], near) if is_ahead else (near, after[near])
                put_in = lengths[left, head[:, None]] + lengths[tail[:, None], right] - lengths[left, right]
                is_move = is_outside & (right != behind[:, None] if is_ahead else left != before[:, None])
                changes.append(jnp.where(is_move, put_in - freed[:, None], jnp.inf))
                is_reversed.append(not keeps)
    table = jnp.stack(changes)
    return jnp.where(np.array(is_reversed)[:, None, None], jnp.inf, table) if is_directed else table


def make_move(nearest: Array, tour: Array, places: Array, kind: Array, city: Array, rank: Array) -> Array:
    """Return the tour after one entry of the table of moves."""
    size = len(tour)
    place, here = places[city], jnp.arange(size)
    # Reversal: from behind the city to the neighbour, or from the city to ahead of the neighbour.
    begin = (place + (kind == 0)) % size
    span = (places[nearest[city, rank]] - place) % size
    turned_round = (begin + jnp.where(here < span, span - 1 - here, here)) % size
    # Stretch: counted from its first city, the rest up to the neighbour, the stretch, the rest.
    index = jnp.maximum(kind - REVERSALS, 0)
    span, is_last, is_ahead = index // PLACES + 1, (index // 2) % 2, index % 2
    near = nearest[jnp.where(is_last, tour[(place + span - 1) % size], city), rank]
    num_ahead = (places[near] - place) % size - is_ahead - span + 1
    inside = here - num_ahead
    turned = jnp.where(is_last == is_ahead, inside, span - 1 - inside)
    is_inside = (inside >= 0) & (inside < span)
    moved = jnp.where(inside < 0, here + span, jnp.where(is_inside, turned, here))
    return tour[jnp.where(kind < REVERSALS, turned_round, (place + moved) % size)]


def _bridge(key: Array, tour: Array) -> Array:
    """Exchange two neighbouring stretches of random lengths, at a random place."""
    size = len(tour)
    longest = max(1, min(LONGEST_BRIDGE, size // 3))
    key_place, key_spans = jax.random.split(key)
    place = jax.random.randint(key_place, (), 0, size)
    first, second = jax.random.randint(key_spans, (2,), 1, longest + 1)
    here = jnp.arange(size)
    moved = jnp.where(here < second, here + first, jnp.where(here < first + second, here - second, here))
    return tour[(place + moved) % size]
