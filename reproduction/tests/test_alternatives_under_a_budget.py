"""Alternatives under a budget: what counts as found, as alike and as robust."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from steppe.targets.tsp_bits import TourBits
from steppe_edlp.budget import run as protocol
from steppe_edlp.budget.planted import make_planted
from steppe_edlp.budget.tours import CYCLES, NUM_CITIES, make_places, make_tours, number_cycles
from steppe_edlp.request import Request

INSTANCE = make_tours(0, tolerance=0.3)
COSTS = -INSTANCE.log_density


def find_tours(instance) -> TourBits:
    assert isinstance(instance.target, TourBits)
    return instance.target


def test_costs_of_all_cycles_are_those_of_the_target():
    some = np.arange(0, len(CYCLES), 500)
    target = find_tours(INSTANCE)
    positions = np.stack([target.position(CYCLES[place]) for place in some])
    np.testing.assert_allclose(target.cost(positions), COSTS[some], rtol=1e-6)
    np.testing.assert_array_equal(INSTANCE.number(positions), some)


def test_a_cycle_has_one_number_wherever_it_begins_and_no_tour_has_none():
    turned = np.stack([np.roll(CYCLES[77], shift) for shift in range(NUM_CITIES)])
    assert set(number_cycles(turned).tolist()) == {77}
    assert number_cycles(turned[:, ::-1])[0] != 77  # roads have a direction
    twice = CYCLES[77].copy()
    twice[3] = twice[4]
    assert number_cycles(twice[None]).tolist() == [-1]


def test_distances_count_edges_with_their_directions():
    assert COSTS[INSTANCE.affordable].max() <= 1.3 * COSTS.min()
    assert (np.diag(INSTANCE.distances) == 0).all()
    first, second = CYCLES[INSTANCE.affordable[:2]]
    edges = [set(zip(tour, np.roll(tour, -1), strict=True)) for tour in (first, second)]
    assert INSTANCE.distances[0, 1] == len(edges[0] - edges[1])
    np.testing.assert_array_equal(INSTANCE.num_near, (INSTANCE.distances <= 3).sum(axis=1) - 1)


def test_a_tour_of_places_and_its_reverse_are_one():
    map_of = np.random.default_rng(0).uniform(size=(30, 2))
    apart = np.linalg.norm(map_of[:, None] - map_of, axis=-1)
    found = make_places(0, apart, tolerance=0.2)
    tours, target = CYCLES[found.affordable], find_tours(found)
    forth, back = (np.stack([target.position(tour) for tour in way]) for way in (tours, tours[:, ::-1]))
    np.testing.assert_array_equal(found.number(forth), found.affordable)
    np.testing.assert_array_equal(found.number(back), found.affordable)
    np.testing.assert_allclose(target.cost(back), -found.log_density[found.affordable], rtol=1e-5)
    edges = [{frozenset(pair) for pair in zip(tour, np.roll(tour, -1), strict=True)} for tour in tours[:2]]
    assert found.distances[0, 1] == len(edges[0] - edges[1])
    assert (np.diag(found.distances) == 0).all()
    chosen = np.random.default_rng([8, 0]).choice(30, NUM_CITIES, replace=False)
    lengths = [apart[chosen[tour], chosen[np.roll(tour, -1)]].sum() for tour in tours]
    ratios = -found.log_density[found.affordable] / lengths
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-12)
    assert found.number(np.zeros_like(forth[:1])).tolist() == [-1]


def test_planted_states_have_the_log_density_of_the_target_and_the_plateau_is_robust():
    planted = make_planted(3, tolerance=3.0)
    states = planted.target.domain.enumerate()
    some = np.arange(0, len(states), 999)
    np.testing.assert_array_equal(planted.number(states[some]), some)
    values = [float(planted.target.log_density(states[place])) for place in some]
    np.testing.assert_allclose(planted.log_density[some], values, rtol=1e-5)
    np.testing.assert_allclose(planted.excess[some], planted.log_density.max() - values, rtol=1e-4)
    bits = np.asarray(states)[planted.affordable]
    assert planted.distances[0, 1] == np.abs(bits[0] - bits[1]).sum()
    top = planted.log_density[planted.affordable[np.argmax(planted.num_near)]]
    assert planted.excess[planted.affordable].max() <= 3.0
    assert planted.num_near.max() == 14 + 91  # in its middle all changes of one or two bits are affordable
    assert top < planted.log_density.max() - 0.5


def test_what_a_run_met_is_counted_once_and_the_first_robust_tour_in_gradients():
    robust = INSTANCE.affordable[np.argmax(INSTANCE.num_near)]
    dear = int(np.argmax(COSTS))
    cycles = np.full((2, 10), dear)
    cycles[0, 4:6] = robust
    cycles[1, 0] = -1
    found = protocol.judge(cycles, INSTANCE, num_gradients=20)
    assert found["found"] == pytest.approx(1 / len(INSTANCE.affordable))
    assert found["first_robust"] == pytest.approx((10 + 20) / 2)  # the fifth of ten steps, and never
    assert found["near"] == INSTANCE.num_near.max()
    late = (9 * COSTS[dear] + COSTS[robust]) / 10
    assert found["log_density"] == pytest.approx(-late)


def test_sets_are_compared_at_equal_number_and_cost():
    every = np.arange(len(INSTANCE.affordable))
    few = every[::3]
    found = protocol.match_sets([few, few[:1]], [every, every], [INSTANCE, INSTANCE])
    assert found["number"].tolist() == [len(few), 1]
    assert found["cost"][0] == pytest.approx(found["other_cost"][0])  # all of them are there
    assert found["distance"][0] == pytest.approx(found["other_distance"][0])
    assert np.isnan(found["distance"][1])


@pytest.mark.slow
def test_every_variant_runs_at_its_own_settings(tmp_path):
    size = SimpleNamespace(
        num_chains=2,
        tolerance={"tours": 0.1, "planted": 3.0},
        num_gradients={"tours": 40, "planted": 40},
        step_sizes=[0.15],
        coupling_variances=[0.5],
        center_step_sizes=[0.1],
    )
    problems, _ = protocol.list_problems(size, Request(scale="quick"))
    for (name, variant), problem in product(protocol.VARIANTS.items(), problems.values()):
        answer = protocol._measure(problem, name, [0, 1], size)
        assert set(answer["setting"]) <= {"step_size", "coupling_variance", "center_step_size"}
        assert len(answer["sets"]) == 2
        assert ("center_step_size" in answer["setting"]) == (variant.sampler == "edmala")
