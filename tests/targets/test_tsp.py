"""Tours: the paper's eight cities in bits against enumeration, any cities as orders, refusals."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import quick_jit
from steppe import targets
from steppe.errors import DomainError, TargetError
from steppe.samplers.permutations import informed_permutation
from steppe.targets.tsp_bits import PAPER_CITIES, PAPER_CORNERS, PAPER_WEIGHTS

OPTIMUM = 13.194113
MEAN, STD, OPTIMAL_SHARE = 16.4693, 1.5877, 0.02554

CORNERS = np.asarray(PAPER_CORNERS, float)
WEIGHTS = np.asarray(PAPER_WEIGHTS)


def slow_cost(tour) -> float:
    """Edge by edge, as the formula reads."""
    total = 0.0
    for here, there in zip(tour, [*tour[1:], tour[0]], strict=True):
        total += float(WEIGHTS[here, there]) * float(np.sqrt(((CORNERS[here] - CORNERS[there]) ** 2).sum()))
    return total


def slow_gradient(tour) -> np.ndarray:
    """`∂U/∂c_i` with the weights held fixed, position by position."""
    rows = []
    for place in range(8):
        before, here, after = tour[place - 1], tour[place], tour[(place + 1) % 8]
        back, forth = CORNERS[here] - CORNERS[before], CORNERS[here] - CORNERS[after]
        rows.append(
            -WEIGHTS[before, here] * back / np.linalg.norm(back)
            - WEIGHTS[here, after] * forth / np.linalg.norm(forth)
        )
    return np.concatenate(rows)


@pytest.fixture(scope="module")
def all_tours():
    """Every ordered tour of eight cities with its cost, by an independent formula."""
    tours = np.asarray(list(itertools.permutations(range(8))))
    edges = WEIGHTS * np.linalg.norm(CORNERS[:, None] - CORNERS[None], axis=-1)
    return tours, edges[tours, np.roll(tours, -1, axis=1)].sum(axis=1)


def test_enumeration_of_the_paper_gives_its_optimum_and_its_distribution(all_tours):
    tours, costs = all_tours
    best = tours[np.argmin(costs)]
    assert "".join(PAPER_CITIES[city] for city in best) == "ADGFECHB"
    weights = np.exp(-costs) / np.exp(-costs).sum()
    mean = weights @ costs
    assert costs.min() == pytest.approx(OPTIMUM, abs=1e-6)
    assert mean == pytest.approx(MEAN, abs=5e-5)
    assert np.sqrt(weights @ (costs - mean) ** 2) == pytest.approx(STD, abs=5e-5)
    assert weights[np.isclose(costs, costs.min())].sum() == pytest.approx(OPTIMAL_SHARE, abs=5e-6)


@pytest.mark.usefixtures("float64")
def test_bits_and_orders_of_the_paper_have_the_cost_and_gradient_of_the_formula():
    bits, orders = targets.tsp_paper(), targets.tsp_paper("permutation")
    assert bits.domain == steppe.Binary(24)
    for seed in range(5):
        tour = np.random.default_rng(seed).permutation(8)
        position = bits.position(tour)
        value, gradient = bits.value_and_grad(position)
        np.testing.assert_array_equal(np.asarray(position).reshape(8, 3), CORNERS[tour])
        np.testing.assert_array_equal(bits.tour(position), tour)
        np.testing.assert_allclose([-value, bits.cost(position)], slow_cost(tour), rtol=1e-13)
        np.testing.assert_allclose(gradient, slow_gradient(tour), rtol=0, atol=1e-13)
        np.testing.assert_allclose(orders.cost(orders.position(tour)), slow_cost(tour), rtol=1e-13)


@quick_jit
def validity(target, positions):
    return jax.vmap(lambda x: (target.is_valid(x), *target.value_and_grad(x)))(positions)


def test_tours_in_bits_are_valid_exactly_if_every_city_is_named_once():
    target = targets.tsp_paper()
    position = target.position(np.arange(8))
    assert bool(target.is_valid(position))
    flipped = np.abs(np.asarray(position) - np.eye(24, dtype=np.float32))
    is_valid, values, gradients = validity(target, np.concatenate([flipped, np.zeros((1, 24), np.float32)]))
    assert not is_valid.any()  # every single flip names a city that is already there
    assert np.isneginf(values).all()
    assert np.isfinite(gradients).all()  # also where all places name one city, at distance zero
    swapped = np.arange(8)
    swapped[[0, 3]] = swapped[[3, 0]]  # A=100 and D=110 differ in one bit: two flips exchange them
    assert int(jnp.sum(target.position(swapped) != position)) == 2


@pytest.mark.parametrize("encoding", ["bits", "permutation"])
def test_random_starts_are_tours(encoding):
    target = targets.tsp_paper(encoding)
    starts = target.starts(jax.random.key(0), 5)
    assert np.isfinite(jax.vmap(target.log_density)(starts)).all()
    assert (np.sort(target.tour(starts), axis=1) == np.arange(8)).all()
    assert len(np.unique(target.tour(starts), axis=0)) == 5


NUM_CHAINS = 256


@jax.jit
def long_run(sampler, key, states, num_steps):
    """Means over steps, by chain: cost, squared cost and fraction of the optimal cycle."""

    def step(index, carry):
        states, sums = carry
        keys = jax.random.split(jax.random.fold_in(key, index), NUM_CHAINS)
        states, _ = jax.vmap(sampler.step)(keys, states)
        costs = -states.log_density
        figures = jnp.stack([costs, (costs - MEAN) ** 2, (costs < OPTIMUM + 1e-3).astype(costs.dtype)])
        return states, sums + figures

    start = states, jnp.zeros((3, NUM_CHAINS))
    states, sums = jax.lax.fori_loop(0, num_steps, step, start)
    return states, sums / num_steps


# Chains are independent, so the spread of their means gives the standard error. |z| < 4.5 for nine
# figures: false alarm 6e-5 in all. With errors below those listed, a mean off by 0.1, a variance off by 8 %
# or a share off by a third is found. A decision per city instead of per tour puts the mean at 15 to 17.6.
Z_LIMIT = 4.5
LARGEST_ERRORS = (0.02, 0.04, 0.002)


def assert_samples_the_distribution(sampler, states, num_steps):
    states, _ = long_run(sampler, jax.random.key(1), states, num_steps // 2)
    means = np.asarray(long_run(sampler, jax.random.key(2), states, num_steps)[1], float)
    errors = means.std(axis=1, ddof=1) / np.sqrt(NUM_CHAINS)
    z = (means.mean(axis=1) - [MEAN, STD**2, OPTIMAL_SHARE]) / errors
    assert (errors < LARGEST_ERRORS).all()
    assert np.abs(z).max() < Z_LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        steppe.dmala(step_size=0.15),
        steppe.edmala(step_size=0.15, center_step_size=0.5, coupling_variance=5.0),
    ],
    ids=["dmala", "edmala"],
)
def test_one_decision_per_tour_samples_the_distribution_of_the_paper(recipe):
    target = targets.tsp_paper()
    sampler = recipe.build(target)
    start = target.position(np.arange(8))
    keys = jax.random.split(jax.random.key(0), NUM_CHAINS)
    assert_samples_the_distribution(sampler, jax.vmap(lambda key: sampler.init(start, key))(keys), 60_000)


@pytest.mark.slow
def test_informed_moves_with_a_center_sample_the_distribution_of_the_paper():
    # The order moves in most steps, so a sixtieth of them is enough.
    target = targets.tsp_paper("permutation")
    sampler = informed_permutation(moves=("two_opt", "insert"), coupling_variance=2.0).build(target)
    keys = jax.random.split(jax.random.key(0), NUM_CHAINS)
    starts = jax.vmap(lambda key: sampler.init(target.domain.draw(key), key))(keys)
    assert_samples_the_distribution(sampler, starts, 1000)


def test_coordinates_and_their_distances_are_the_same_problem():
    places = np.random.default_rng(0).normal(size=(6, 2))
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    position = jnp.arange(6.0)
    expected = sum(distances[i, (i + 1) % 6] for i in range(6))
    for target in (targets.tsp(distances), targets.tsp(coordinates=places)):
        np.testing.assert_allclose(target.cost(position), expected, rtol=1e-5)
    half = targets.tsp(distances, inverse_temperature=0.5)
    np.testing.assert_allclose(half.log_density(position), -0.5 * expected, rtol=1e-5)


def test_a_loaded_instance_is_its_distances():
    class Instance:
        distances = np.arange(9.0).reshape(3, 3)

    position = jnp.arange(3.0)
    assert targets.tsp(Instance()).cost(position) == targets.tsp(Instance.distances).cost(position)


def test_the_diagonal_of_the_distances_is_not_looked_at():
    distances = np.ones((4, 4)) + 9998 * np.eye(4)
    assert targets.tsp(distances).cost(jnp.arange(4.0)) == 4


def test_weights_turn_with_the_direction():
    distances, weights = np.ones((3, 3)), np.arange(9.0).reshape(3, 3)
    target = targets.tsp(distances, weights=weights)
    assert target.cost(target.position([0, 1, 2])) == weights[0, 1] + weights[1, 2] + weights[2, 0]
    assert target.cost(target.position([2, 1, 0])) == weights[2, 1] + weights[1, 0] + weights[0, 2]


def test_four_cities_at_the_corners_of_a_square_can_be_written_in_bits():
    target = targets.tsp(coordinates=[[0, 0], [0, 1], [1, 1], [1, 0]], encoding="bits")
    assert target.domain == steppe.Binary(8)
    assert target.cost(target.position([0, 1, 2, 3])) == 4


ONES = np.ones((4, 4))
REFUSED = {
    "non-square distances": (lambda: targets.tsp(np.ones((3, 4))), r"tsp\(distances=...\).*square.*\(3, 4\)"),
    "negative distances": (
        lambda: targets.tsp(1 - 2 * np.eye(4, k=1)),
        r"distances=.*-1 from city 0 to city 1",
    ),
    "NaN distances": (lambda: targets.tsp(np.full((3, 3), np.nan)), r"distances=.*finite"),
    "no road": (
        lambda: targets.tsp(np.where(np.eye(3, k=1) > 0, np.inf, 1.0)),
        r"no road from city 0 to city 1 \(inf\).*shortest paths",
    ),
    "two cities": (lambda: targets.tsp(np.ones((2, 2))), "at least 3 cities; got 2"),
    "neither": (targets.tsp, "either `distances` or `coordinates"),
    "both": (lambda: targets.tsp(ONES, coordinates=ONES), "either `distances` or `coordinates"),
    "weights": (lambda: targets.tsp(ONES, weights=np.ones((3, 3))), r"weights=.*4 × 4.*\(3, 3\)"),
    "negative weights": (lambda: targets.tsp(ONES, weights=-ONES), r"weights=.*not be negative"),
    "flat coordinates": (lambda: targets.tsp(coordinates=[1.0, 2.0]), r"coordinates=.*2 axes"),
    "temperature": (lambda: targets.tsp(ONES, inverse_temperature=0), "inverse_temperature=.*positive"),
    "encoding": (lambda: targets.tsp(ONES, encoding="one-hot"), "encoding=.*'permutation' or 'bits'"),
    "bits without corners": (lambda: targets.tsp(ONES, encoding="bits"), "needs `coordinates"),
    "bits off the corners": (
        lambda: targets.tsp(coordinates=ONES[:, :2], encoding="bits"),
        r"every corner of a cube.*\(4, 2\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_name(name):
    make, message = REFUSED[name]
    with pytest.raises(TargetError, match=message):
        make()


@pytest.mark.parametrize("encoding", ["bits", "permutation"])
def test_a_tour_that_is_not_a_permutation_is_refused(encoding):
    with pytest.raises(DomainError, match="item 2 is there 2 times and item 7 not at all"):
        targets.tsp_paper(encoding).position([0, 1, 2, 3, 4, 5, 6, 2])


def edges_of(tour, directed):
    """The edges of a closed tour, as a set."""
    pairs = [(int(one), int(other)) for one, other in zip(tour, np.roll(tour, -1), strict=True)]
    return set(pairs) if directed else {frozenset(pair) for pair in pairs}


@pytest.mark.parametrize("symmetric", [False, True])
def test_canonical_form_and_distance_of_tours_are_those_of_their_cycles(symmetric):
    rng = np.random.default_rng(5)
    lengths = rng.uniform(1, 2, (6, 6))
    target = targets.tsp(lengths + lengths.T if symmetric else lengths)
    tours = np.stack([rng.permutation(6) for _ in range(20)]).astype(np.float32)
    edges = [edges_of(tour, not symmetric) for tour in tours]
    canonical = np.asarray(quick_jit(jax.vmap(target.canonical))(tours))
    assert [edges_of(tour, not symmetric) for tour in canonical] == edges
    assert (canonical[:, 0] == 0).all()
    assert len(np.unique(canonical, axis=0)) == len({frozenset(own) for own in edges})
    np.testing.assert_array_equal(
        quick_jit(jax.vmap(target.distance))(tours, tours[::-1]),
        [len(own - other) for own, other in zip(edges, edges[::-1], strict=True)],
    )
