"""Iterated local search of tours: every entry of its tables is what the move does, and optima are found."""

import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steppe import datasets, targets
from steppe.errors import RunError
from steppe.routes import find_short_tours
from steppe.routes.tour_search import _bridge, find_nearest, make_move, weigh_moves

KEY = jax.random.key(0)


def random_lengths(size: int, *, is_directed: bool) -> np.ndarray:
    rng = np.random.default_rng(size)
    if is_directed:
        return rng.integers(1, 100, (size, size)) * (1.0 - np.eye(size))
    places = rng.random((size, 2))
    return np.linalg.norm(places[:, None] - places, axis=-1)


def measure(lengths, tour) -> float:
    return float(lengths[tour, np.roll(tour, -1)].sum())


def shortest(lengths) -> float:
    size = len(lengths)
    orders = np.array(list(itertools.permutations(range(1, size))))
    tours = np.hstack([np.zeros((len(orders), 1), int), orders])
    return float(lengths[tours, np.roll(tours, -1, axis=1)].sum(axis=1).min())


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("size", [4, 11])
def test_every_entry_of_the_table_is_what_its_move_does_to_the_length(size, is_directed):
    lengths = random_lengths(size, is_directed=is_directed)
    nearest = find_nearest(jnp.asarray(lengths), min(size - 1, 6))
    tour = jnp.asarray(np.random.default_rng(1).permutation(size), jnp.int32)
    places = jnp.argsort(tour).astype(jnp.int32)
    table = np.asarray(weigh_moves(jnp.asarray(lengths), nearest, tour, places, is_directed))
    entries = np.argwhere(np.isfinite(table))
    assert size < 11 or len(entries) > 10
    make = jax.jit(jax.vmap(lambda entry: make_move(nearest, tour, places, *entry)))
    ends = np.asarray(make(jnp.asarray(entries)))
    assert (np.sort(ends, axis=1) == np.arange(size)).all()
    changes = [measure(lengths, end) - measure(lengths, np.asarray(tour)) for end in ends]
    np.testing.assert_allclose(changes, table[tuple(entries.T)], atol=1e-12)


@pytest.mark.parametrize("size", [3, 4, 7, 100])
def test_a_double_bridge_is_a_permutation_of_the_tour(size):
    tour = jnp.arange(size)
    bridged = np.asarray(jax.vmap(lambda key: _bridge(key, tour))(jax.random.split(KEY, 50)))
    assert (np.sort(bridged, axis=1) == np.arange(size)).all()
    if size >= 7:
        assert len(np.unique(bridged, axis=0)) > 10


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("size", [3, 8])
def test_the_shortest_tour_of_few_cities_is_found(size, is_directed):
    lengths = random_lengths(size, is_directed=is_directed)
    found = find_short_tours(targets.tsp(lengths), key=KEY, num_starts=2, num_bridges=60)
    assert found.costs[0] == pytest.approx(shortest(lengths), rel=1e-6)
    assert found.costs[0] <= found.costs[1]
    assert found.tours.shape == (2, size)
    assert measure(lengths, found.tours[0]) == pytest.approx(found.costs[0], rel=1e-6)


def test_other_targets_are_refused():
    with pytest.raises(RunError, match="as permutations"):
        find_short_tours(targets.tsp_paper(), key=KEY)
    with pytest.raises(RunError, match="target"):
        find_short_tours(targets.ising_lattice((3, 3), 0.2), key=KEY)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.skipif("STEPPE_DATA" not in os.environ, reason="STEPPE_DATA is not set")
@pytest.mark.parametrize("name", ["kroA100", "lin105", "pr76"])
def test_the_optimum_of_a_published_instance_is_reached_from_four_of_five_seeds(name):
    """No seed of the fifteen missed when this was written, which bounds the chance of a miss by 1 in 5."""
    instance = datasets.load(f"tsplib:{name}")
    target = targets.tsp(instance)
    found = [find_short_tours(target, key=jax.random.key(seed)).costs[0] for seed in range(5)]
    assert sum(cost == instance.optimum for cost in found) >= 4
