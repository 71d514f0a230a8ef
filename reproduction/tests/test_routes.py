"""Route measures: the paper's mismatch count, edges, spreads and robust tours."""

import itertools
from math import comb

import jax
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.errors import DomainError, RunError
from steppe.samplers.permutations import informed_permutation
from steppe_edlp.tsp import alternatives, path_statistics, tour_measures

A = np.arange(8)


def slow_mismatches(first, second) -> int:
    """Pairs of places whose ordered pair of cities differs, with the start appended to both."""
    one, other = [*first, first[0]], [*second, second[0]]
    pairs = itertools.combinations(range(len(one)), 2)
    return sum((one[i], one[j]) != (other[i], other[j]) for i, j in pairs)


def test_mismatches_are_counted_pair_by_pair():
    rng = np.random.default_rng(0)
    first, second = (np.asarray([rng.permutation(8) for _ in range(30)]) for _ in range(2))
    second[:10] = first[:10]
    second[:10, 3:6] = second[:10, [4, 5, 3]]
    counts = tour_measures.pairwise_mismatch_count(first, second)
    assert counts.tolist() == [slow_mismatches(a, b) for a, b in zip(first, second, strict=True)]


def test_mismatches_of_eight_cities_take_the_values_of_the_paper():
    # m agreeing places of nine give 36 − C(m, 2).
    assert tour_measures.pairwise_mismatch_count(A, A) == 0
    swapped = A.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    assert tour_measures.pairwise_mismatch_count(A, swapped) == 36 - comb(7, 2) == 15
    turned = np.roll(A, 1)
    assert tour_measures.pairwise_mismatch_count(A, turned) == 36  # the same cycle, yet as far as can be


def test_edge_distance_does_not_see_where_a_tour_begins():
    reversed_tour = A[::-1]
    for shift in range(8):
        assert tour_measures.edge_distance(A, np.roll(A, shift)) == 0
        assert tour_measures.edge_distance(A, np.roll(reversed_tour, shift)) == 0
        assert tour_measures.edge_distance(A, np.roll(reversed_tour, shift), directed=True) == 8


def test_a_reversed_stretch_changes_two_edges_and_an_insertion_three():
    reversal = np.asarray([0, 1, 5, 4, 3, 2, 6, 7])
    insertion = np.asarray([0, 2, 3, 4, 1, 5, 6, 7])
    assert tour_measures.edge_distance(A, reversal) == 2
    assert tour_measures.edge_distance(A, reversal, directed=True) == 5
    assert tour_measures.edge_distance(A, insertion) == 3
    assert tour_measures.edge_distance(A, np.stack([A, reversal, insertion])).tolist() == [0, 2, 3]


def test_distinct_tours_are_counted_once_whatever_their_start_and_direction():
    rng = np.random.default_rng(1)
    cycles = [rng.permutation(6) for _ in range(4)]
    copies = [np.roll(cycle[::step], shift) for cycle in cycles for step in (1, -1) for shift in range(6)]
    found, first, counts = tour_measures.distinct_tours(copies)
    assert len(found) == 4
    assert counts.tolist() == [12] * 4
    assert (found[:, 0] == 0).all()
    np.testing.assert_array_equal(tour_measures.canonical_tours(np.asarray(copies)[first]), found)
    assert len(tour_measures.distinct_tours(copies, directed=True)[0]) == 8


def test_figures_of_the_paper_count_each_path_once():
    paths = np.stack([A, A, np.roll(A, 1), A])
    figures = path_statistics.route_figures(paths, [2.0, 2.0, 4.0, 2.0])
    assert figures.num_paths == 2
    assert figures.cost == path_statistics.Spread(3.0, 1.0, 2.0, 4.0)
    assert figures.mismatch_to_best.mean == 18  # 0 to itself and 36
    assert figures.mismatch_overall == path_statistics.Spread(36.0, 0.0, 36.0, 36.0)
    assert figures.cost_of_draws.mean == 2.5


@pytest.fixture(scope="module")
def circle():
    """Eight cities on a circle: the shortest tour goes round."""
    angles = 2 * np.pi * np.arange(8) / 8
    return targets.tsp(
        coordinates=np.stack([np.cos(angles), np.sin(angles)], axis=1), inverse_temperature=3.0
    )


@pytest.fixture(scope="module")
def run(circle):
    return steppe.sample(
        circle, informed_permutation(), key=jax.random.key(0), num_chains=2, num_warmup=50, num_draws=400
    )


@pytest.mark.slow
def test_robust_solutions_are_the_cheapest_cycles_with_the_most_alternatives_first(run, circle):
    found = alternatives.robust_solutions(run, top=10, radius=3, target=circle, tolerance=0.3)
    costs = np.asarray(circle.cost(run.trace.levels()))
    assert found.costs.min() == pytest.approx(costs.min(), rel=1e-5)
    assert (np.diff(found.num_alternatives) <= 0).all()
    assert len(np.unique(found.tours, axis=0)) == len(found.tours) == 10
    np.testing.assert_allclose(found.costs, circle.cost(found.tours), rtol=1e-5)
    cycles = tour_measures.distinct_tours(run.trace.levels())[0]
    near = tour_measures.edge_distance(found.tours[0], cycles) <= 3
    cheap = np.asarray(circle.cost(cycles)) <= 1.3 * found.costs[0]
    assert found.num_alternatives[0] == (near & cheap).sum() - 1
    assert (found.disrupted_cost > found.costs.min()).all()


def test_disrupted_cost_is_the_mean_over_all_reversals(circle):
    tour = np.random.default_rng(2).permutation(8)
    ends = []
    for first, last in itertools.combinations(range(8), 2):
        end = tour_measures.canonical_tours(tour, directed=True)
        end[first : last + 1] = end[first : last + 1][::-1].copy()
        ends.append(float(circle.cost(end)))
    np.testing.assert_allclose(alternatives.disrupted_costs(circle, tour[None]), np.mean(ends), rtol=1e-5)


def test_without_a_target_directions_matter_and_costs_are_negative_log_densities(run):
    found = alternatives.robust_solutions(run, top=3, radius=8)
    assert found.disrupted_cost is None
    assert found.costs.min() == pytest.approx(-run.trace.statistic("log_density").max(), rel=1e-6)


def test_bad_input_is_refused(run):
    with pytest.raises(DomainError, match="item 1 is there 2 times"):
        tour_measures.edge_distance([0, 1, 2], [0, 1, 1])
    with pytest.raises(DomainError, match="`top` must be an integer of at least 1; got 0"):
        alternatives.robust_solutions(run, top=0)
    with pytest.raises(DomainError, match="one cost per tour; got 1 for 2"):
        path_statistics.route_figures([A, A], [1.0])
    with pytest.raises(RunError, match="with entries"):
        path_statistics.cost_spread([])
