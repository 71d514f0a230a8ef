"""`find_flat_modes` finds the best modes and those that are worth most after the stated disturbance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.diagnostics.flatness import single_site_differences
from steppe.errors import RecipeError, RunError, StartError, TargetError
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.judge import Judged, find_max_loss
from steppe.modes.local_search import Found
from steppe.modes.plateau_walk import walk_plateaus
from steppe.robust.disturbances import Flips
from steppe.robust.outcomes import evaluate_after
from steppe.robust.risk import Risk
from steppe.targets import max_cut, paper_bernoulli, planted_mixture, planted_plateau, tsp_paper

KEY = jax.random.key(0)
BITS = paper_bernoulli()
VALUES = jnp.linspace(0.2, 1.5, 12)
KNAPSACK = steppe.Target(lambda x: VALUES @ x, steppe.Binary(12), is_valid=lambda x: x.sum() <= 4)


@pytest.fixture(scope="module")
def paper_modes():
    return steppe.find_flat_modes(BITS, key=KEY, budget=20_000)


def test_all_modes_of_the_papers_bits_are_found_and_ranked_by_their_exact_value(paper_modes):
    assert {"".join(map(str, mode.levels)) for mode in paper_modes} == {"0100", "1001", "0010", "0111"}
    values = np.asarray(jax.vmap(BITS.log_density)(BITS.domain.enumerate()), float)
    kernel = np.ones((1, 1))
    for _ in range(4):
        kernel = np.kron(kernel, [[0.75, 0.25], [0.25, 0.75]])  # a tenth, and at least one of four
    exact = kernel @ values
    found = [mode.value for mode in paper_modes]
    index = [int(BITS.domain.index(jnp.asarray(mode.position))) for mode in paper_modes]
    np.testing.assert_allclose(found, exact[index], atol=1e-5)
    assert found == sorted(found, reverse=True)
    assert all(mode.value_error == 0 for mode in paper_modes)
    assert paper_modes.best.log_density == pytest.approx(values.max(), abs=1e-6)
    assert {mode.label for mode in paper_modes if mode.label == "flat"} == {"flat"}
    assert paper_modes.num_evaluations <= 20_000


def test_the_same_key_gives_the_same_table(paper_modes):
    again = steppe.find_flat_modes(BITS, key=KEY, budget=20_000)
    assert again.to_records() == paper_modes.to_records()
    assert str(again) == str(paper_modes)
    assert paper_modes.explain() in " ".join(str(again).split()).replace("• ", "")


def test_picture_shows_curves_and_the_front(paper_modes, tmp_path):
    figure = paper_modes.plot(tmp_path / "modes")
    assert (tmp_path / "modes.png").stat().st_size > 5_000
    curves, front = figure.axes
    assert len(curves.get_legend().get_texts()) == len(paper_modes.curve_modes) + 1
    assert len(front.collections) >= len(paper_modes)
    strengths = paper_modes.curves.strengths
    assert strengths[0] == 0
    assert paper_modes.curves.stated in strengths
    before = [paper_modes[rank].log_density for rank in paper_modes.curve_modes]
    np.testing.assert_allclose(paper_modes.curves.values[:, 0], before, rtol=1e-5)


def test_alternatives_differ_in_the_separation_and_lie_within_the_loss(paper_modes):
    found = steppe.find_flat_modes(BITS, key=KEY, budget=20_000, max_loss=0.5, separation=3)
    assert all(mode.log_density >= found.best.log_density - 0.5 for mode in found)
    near = [mode for mode in found if not mode.is_best and not mode.is_robust]
    for mode in near:
        others = [other for other in found if other is not mode]
        assert min(int((mode.levels != other.levels).sum()) for other in others) >= 3
    assert found.best.position.tolist() == paper_modes.best.position.tolist()


def test_a_peak_that_no_chain_meets_is_shown_where_all_states_can_be_evaluated():
    sites = 10
    slope, peak = jnp.arange(1, sites + 1) / 4, jnp.arange(sites) % 2

    def log_density(x):
        return jnp.where((x == peak).all(), 20.0, -slope @ x)

    hidden = steppe.Target(log_density, steppe.Binary(sites))
    found = steppe.find_flat_modes(hidden, key=KEY, budget=40 * 2**sites)
    np.testing.assert_array_equal(found.best.position, peak)
    assert "enumerated" in found.best.found_by
    assert found.num_evaluations <= 40 * 2**sites
    assert all(
        "enumerated" not in mode.found_by for mode in steppe.find_flat_modes(hidden, key=KEY, budget=20_000)
    )


@pytest.mark.slow
def test_wide_component_of_the_mixture_is_the_most_robust_mode():
    planted = planted_mixture()
    for seed in range(20):
        found = steppe.find_flat_modes(planted.target, key=jax.random.key(seed), budget=60_000)
        assert (found.robust.position == planted.patterns[planted.flat]).all()
        assert found.best.label == "sharp"
        assert found.robust.label == "flat"
        assert found.robust.gain > 0
    loss = found.best.log_density - found.robust.log_density
    assert loss == pytest.approx(1.655, abs=0.01)
    assert f"gives up {loss:.3g} nats and gains" in found.explain()


def plateau_distance(planted, mode):
    return int(np.abs(mode.position - planted.plateau).sum())


@pytest.mark.slow
def test_plateau_that_is_worth_more_after_flips_is_found_by_its_middle_in_19_of_20_landscapes():
    num_found = 0
    for seed in range(20):
        planted = planted_plateau(seed, loss=3.0)
        found = steppe.find_flat_modes(planted.target, key=jax.random.key(seed))
        num_found += plateau_distance(planted, found.robust) == 0
        assert (np.abs(planted.wells - found.best.position).sum(axis=1) == 0).any()
    assert num_found >= 19


@pytest.mark.slow
def test_cuts_are_ranked_by_their_weight_and_said_to_be_degenerate():
    edges = np.argwhere(np.triu(np.random.default_rng(0).random((40, 40)) < 0.2, 1))
    cut = max_cut(edges, num_nodes=40)
    found = steppe.find_flat_modes(cut, key=KEY)
    assert found.is_degenerate
    assert found[0].is_best
    assert found[0].is_robust
    assert "The best mode is also the most robust" in found.explain()
    assert "rising function" in found.explain()
    plain = steppe.anneal(cut, key=KEY, num_steps=2000, num_chains=100, progress=False)
    assert found.best.log_density >= float(plain.best_log_density.max())


@pytest.mark.slow
def test_knapsack_shows_its_optimum_first_and_how_many_flips_break_it():
    for seed in range(10):
        found = steppe.find_flat_modes(KNAPSACK, key=jax.random.key(seed))
        assert found.best.log_density == pytest.approx(float(VALUES[-4:].sum()), rel=1e-6)
        assert found[0].is_best
    assert 0 < found.best.broken_fraction < 1
    assert "break the constraint" in found.explain()


@pytest.mark.slow
def test_tours_are_disturbed_by_one_move_and_the_shortest_is_shown():
    found = steppe.find_flat_modes(tsp_paper("permutation"), key=KEY, budget=100_000)
    np.testing.assert_allclose(-found.best.log_density, 13.194113, rtol=1e-6)
    assert found.disturbance == "1 random move"
    assert all(sorted(mode.levels) == list(range(8)) for mode in found)


@pytest.mark.slow
def test_within_is_a_fraction_that_a_constant_does_not_change():
    shifted = steppe.Target(lambda x: BITS.log_density(x) + 100, BITS.domain, differences=BITS.differences)
    limits = [
        steppe.find_flat_modes(target, key=KEY, budget=20_000, within=0.2).max_loss
        for target in (BITS, shifted)
    ]
    np.testing.assert_allclose(*limits, rtol=1e-3)


def test_within_is_a_fraction_of_the_score_where_there_is_one():
    weights = np.triu(np.random.default_rng(3).integers(1, 5, (8, 8)), 1)
    cut = max_cut(weights + weights.T, inverse_temperature=0.5)
    states = cut.domain.enumerate()
    found = Found(
        np.asarray(states), np.asarray(jax.vmap(cut.log_density)(states), float), np.ones((256, 1), int)
    )
    after = evaluate_after(cut, found.states, Flips(None, 1, None), Risk("mean"), KEY, 2)
    judged = Judged(found, after, single_site_differences(cut, states))
    limit = find_max_loss(cut, judged, None, 0.1, KEY, EvaluationCounter(cut, 0))
    scores = np.asarray(jax.vmap(cut.score)(states))
    is_near = scores >= 0.9 * scores.max()
    assert limit == pytest.approx(0.5 * (scores.max() - scores[is_near].min()), rel=1e-5)
    assert limit < 0.5 * (scores.max() - scores[~is_near].max())


FEW_VALID = steppe.Target(jnp.sum, steppe.Binary(30), is_valid=lambda x: jnp.all(x[:25] == x[0]))
MISTAKES = {
    "key": ({"key": 3}, RunError, "random key"),
    "modes": ({"num_modes": 0}, RecipeError, "num_modes"),
    "small budget": ({"budget": 100}, RunError, "evaluations are the least"),
    "budget": ({"budget": 1.5}, RunError, "budget"),
    "separation": ({"separation": 0}, RecipeError, "separation"),
    "within": ({"within": 1.5}, RunError, "in (0, 1]"),
    "no fraction": ({"within": 0.0}, RunError, "in (0, 1]"),
    "loss": ({"max_loss": -1.0}, RunError, "in [0, inf)"),
    "both": ({"max_loss": 1.0, "within": 0.5}, RunError, "got both"),
    "risk": ({"risk": "cvar:2"}, TargetError, "level in (0, 1)"),
    "two": ({"flips": 1, "flip_rate": 0.1}, TargetError, "exactly one disturbance"),
    "scenario": ({"scenarios": [KNAPSACK]}, TargetError, "lives on Binary(12)"),
    "start": ({"initial": np.full((2, 4), 0.5), "budget": 20_000}, StartError, "0.5 on site 0"),
}


@pytest.mark.parametrize(("arguments", "error", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_met_by_name(arguments, error, said):
    with pytest.raises(error) as caught:
        steppe.find_flat_modes(BITS, **({"key": KEY} | arguments))
    assert said in str(caught.value)


@pytest.mark.slow
def test_a_domain_of_few_valid_positions_asks_for_starts():
    with pytest.raises(StartError, match="initial=positions"):
        steppe.find_flat_modes(FEW_VALID, key=KEY, budget=20_000)
    found = steppe.find_flat_modes(FEW_VALID, key=KEY, budget=20_000, initial=np.zeros((1, 30)))
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
