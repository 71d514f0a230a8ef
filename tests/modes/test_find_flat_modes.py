"""`find_flat_modes` tells flat modes from sharp ones where the answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.diagnostics.flatness import single_site_differences
from steppe.errors import RecipeError, RunError, StartError
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.local_search import Found
from steppe.modes.plateau_walk import walk_plateaus
from steppe.targets import paper_bernoulli, planted_mixture, planted_plateau, tsp_paper

KEY = jax.random.key(0)
BITS = paper_bernoulli()


@pytest.fixture(scope="module")
def paper_modes():
    return steppe.find_flat_modes(BITS, key=KEY, budget=20_000)


def named(found, label):
    return {"".join(map(str, mode.levels)) for mode in found if mode.label == label}


def test_flat_and_sharp_modes_of_the_papers_bits_are_named(paper_modes):
    assert named(paper_modes, "flat") == {"0100", "1001"}
    assert named(paper_modes, "sharp") == {"0010", "0111"}
    assert [mode.is_on_front for mode in paper_modes] == [True, False, True, True]


def test_figures_of_small_domains_are_exact(paper_modes):
    np.testing.assert_allclose(
        [mode.basin_mass for mode in paper_modes], [0.164, 0.106, 0.266, 0.465], atol=1e-3
    )
    assert all(mode.local_entropy_error == 0 for mode in paper_modes)
    assert paper_modes.num_evaluations <= 20_000


def test_the_same_key_gives_the_same_table(paper_modes):
    again = steppe.find_flat_modes(BITS, key=KEY, budget=20_000)
    assert again.to_records() == paper_modes.to_records()
    assert str(again) == str(paper_modes)
    assert "0100" in str(again)


def test_picture_has_one_dot_per_mode(paper_modes, tmp_path):
    figure = paper_modes.plot(tmp_path / "modes")
    assert (tmp_path / "modes.png").stat().st_size > 5_000
    assert len(figure.axes[0].collections) == len(paper_modes)


@pytest.mark.slow
def test_wide_component_of_the_mixture_is_ranked_first():
    planted = planted_mixture()
    found = steppe.find_flat_modes(planted.target, key=KEY, budget=60_000)
    assert (found[0].position == planted.patterns[planted.flat]).all()
    assert len(named(found, "sharp")) == 6
    by_mass = steppe.find_flat_modes(planted.target, key=KEY, budget=60_000, flatness="local_entropy")
    assert by_mass[0].local_entropy >= by_mass[-1].local_entropy


def plateau_distance(planted, mode):
    return int(np.abs(mode.position - planted.plateau).sum())


def highest_of(planted, recipe, seed):
    """Best state of a plain sampler at the default budget."""
    run = steppe.anneal(
        planted.target,
        recipe,
        steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.3, 3.0)),
        key=jax.random.key(seed),
        num_steps=2_000,
        num_chains=100,
    )
    return np.asarray(run.best_position[np.argmax(run.best_log_density)])


@pytest.mark.slow
def test_plateau_among_narrow_wells_is_the_flattest_good_mode():
    planted = planted_plateau(0)
    found = steppe.find_flat_modes(planted.target, key=KEY)
    assert plateau_distance(planted, found[0]) <= planted.radius
    assert {mode.label for mode in found.modes[1:]} == {"sharp"}
    best = highest_of(planted, steppe.dmala(), 0)
    assert (np.abs(planted.wells - best).sum(axis=1) == 0).any()


@pytest.mark.slow
def test_plateau_is_found_in_19_of_20_landscapes_where_plain_samplers_end_in_wells():
    num_found = 0
    for seed in range(20):
        planted = planted_plateau(seed)
        found = steppe.find_flat_modes(planted.target, key=jax.random.key(seed))
        num_found += plateau_distance(planted, found[0]) <= planted.radius
        for recipe in (steppe.dmala(), steppe.edmala_glu()):
            best = highest_of(planted, recipe, seed)
            assert (np.abs(planted.wells - best).sum(axis=1) == 0).any()
    assert num_found >= 19


@pytest.mark.slow
def test_robust_tours_of_the_eight_cities_come_with_the_shortest_one():
    found = steppe.find_flat_modes(tsp_paper("permutation"), key=KEY, budget=20_000)
    costs = [-mode.log_density for mode in found]
    np.testing.assert_allclose(min(costs), 13.194113, rtol=1e-6)
    assert found[0].roughness < found[int(np.argmin(costs))].roughness
    assert all(sorted(mode.levels) == list(range(8)) for mode in found)


FEW_VALID = steppe.Target(jnp.sum, steppe.Binary(30), is_valid=lambda x: jnp.all(x[:25] == x[0]))
MISTAKES = {
    "key": ({"key": 3}, RunError, "random key"),
    "modes": ({"num_modes": 0}, RecipeError, "num_modes"),
    "small budget": ({"budget": 100}, RunError, "leaves 10 evaluations"),
    "budget": ({"budget": 1.5}, RunError, "budget"),
    "flatness": ({"flatness": "hessian"}, RunError, "'gap' or 'local_entropy'"),
    "separation": ({"separation": 0}, RecipeError, "separation"),
    "variance": ({"coupling_variance": -1.0}, RecipeError, "coupling_variance"),
    "start": ({"initial": np.full((2, 4), 0.5)}, StartError, "0.5 on site 0"),
}


@pytest.mark.parametrize(("arguments", "error", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_met_by_name(arguments, error, said):
    with pytest.raises(error) as caught:
        steppe.find_flat_modes(BITS, **({"key": KEY} | arguments))
    assert said in str(caught.value)


@pytest.mark.slow
def test_a_domain_of_few_valid_positions_asks_for_starts():
    with pytest.raises(StartError, match="initial=positions"):
        steppe.find_flat_modes(FEW_VALID, key=KEY, budget=5_000)
    found = steppe.find_flat_modes(FEW_VALID, key=KEY, budget=5_000, initial=np.zeros((1, 30)))
    assert all(bool(FEW_VALID.is_valid(mode.position)) for mode in found)


def test_plateau_walk_leaves_the_edge_where_the_local_search_ended():
    planted = planted_plateau(1, num_sites=40, num_wells=3)
    edge = planted.plateau.copy()
    edge[:3] = 1 - edge[:3]
    found = Found(np.stack([edge, planted.wells[0]]), np.array([-9.0, 0.0]), np.ones((2, 1), int))
    counter = EvaluationCounter(planted.target, 10_000)
    walked = walk_plateaus(planted.target, found, KEY, counter, 10_000)
    distances = np.abs(walked.states[:, None] - np.stack([planted.plateau, planted.wells[0]])).sum(axis=-1)
    assert distances.min(axis=0)[0] < 3  # inside
    assert distances.min(axis=0)[1] == 0  # a well has no level ground
    assert counter.num_made == 2 * (16 + 1)
    too_few = counter.num_made + 5
    assert walk_plateaus(planted.target, found, KEY, counter, too_few) is found


def test_gaps_of_a_mode_of_a_cut_follow_from_its_height(float64):
    weights = np.triu(np.random.default_rng(4).normal(size=(8, 8)), 1)
    cut = steppe.targets.max_cut(weights + weights.T, inverse_temperature=0.7)
    states = cut.domain.enumerate()
    gaps = single_site_differences(cut, states, exact=False)
    tables = np.asarray(jax.vmap(cut.differences)(states))
    is_mode = (tables <= 1e-12).all(axis=(1, 2))
    assert is_mode.sum() > 2
    expected = 4 * gaps.log_density - 2 * 0.7 * weights.sum()
    np.testing.assert_allclose(8 * gaps.mean_absolute[is_mode], expected[is_mode], atol=1e-10)
