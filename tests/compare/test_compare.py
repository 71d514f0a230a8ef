"""Comparisons spend equal budgets, tune by one rule, and say what they cannot do."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import polynomial_target
from steppe.compare.measurement import spend
from steppe.diagnostics.exact import expected_total_variation, target_distribution, total_variation
from steppe.errors import TargetError
from steppe.results import read_results

TARGET = polynomial_target(steppe.Binary(4), 1.0)
KEY = jax.random.key(3)
SEEDS = 20
BUDGET = 400


@pytest.fixture(scope="module")
def comparison():
    recipes = {"dula": steppe.dula(), "dmala": steppe.dmala(), "gibbs, twice": steppe.gibbs(num_updates=2)}
    return steppe.compare(TARGET, recipes, key=KEY, seeds=SEEDS, budget=BUDGET, tuning_budget=9_000)


def rows(comparison, table):
    return {row["sampler"]: row for row in comparison.results.table(table).rows}


@pytest.mark.slow
def test_every_sampler_spends_the_same_number_of_evaluations(comparison):
    for row in rows(comparison, "spending").values():
        spent = row["cost"] * row["steps"] / 0.8
        assert BUDGET - row["cost"] * 5 <= spent <= BUDGET + row["cost"] * 5
    assert rows(comparison, "spending")["gibbs, twice"]["cost"] == 4


@pytest.mark.slow
def test_unadjusted_recipe_gets_the_step_size_of_its_adjusted_twin(comparison):
    assert comparison.tuning["dula"].recipe.is_adjusted
    found = comparison.recipes["dula"].parameters["step_size"]
    assert found == comparison.tuning["dula"].recipe.parameters["step_size"]
    assert not comparison.recipes["dula"].is_adjusted
    assert "gibbs, twice" not in comparison.tuning


def test_reference_row_is_the_enumerated_distribution(comparison):
    distribution = target_distribution(TARGET)
    values = np.asarray(jax.vmap(TARGET.log_density)(TARGET.domain.enumerate()))
    exact = rows(comparison, "distribution")["exact π"]
    assert exact["log_density"] == pytest.approx(distribution @ values, rel=1e-5)


def test_pooled_distance_of_an_adjusted_sampler_is_noise_and_that_of_a_biased_one_is_not(comparison):
    # The pooled distance of a sampler that samples π has mean `tv_noise` and, being a sum of 16 terms, a
    # deviation
    # of less than half of it: three times the noise is four deviations, one false alarm in 10⁴.
    of = rows(comparison, "distribution")
    for name in ("dmala", "gibbs, twice"):
        assert of[name]["tv_pooled"] < 3 * of[name]["tv_noise"]
    assert of["dula"]["tv_pooled"] > 3 * of["dula"]["tv_noise"]


def test_results_survive_the_file_and_draw_their_figures(comparison, tmp_path):
    path = comparison.save(tmp_path)
    again = read_results(path)
    assert again == comparison.results
    names = {file.name for file in tmp_path.iterdir()}
    assert {"efficiency.png", "flatness.svg", "distance.png", "results.json"} <= names
    assert again.provenance.model_evaluations > 3 * SEEDS * BUDGET * 0.9
    assert json.loads(path.read_text())["settings"]["budget per seed"] == BUDGET


def test_plot_has_a_row_for_every_sampler(comparison, tmp_path):
    (axes,) = comparison.plot(tmp_path / "efficiency").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(comparison.recipes)
    assert (tmp_path / "efficiency.png").exists()


def test_advice_names_no_biased_winner_and_ends_in_code(comparison):
    first, *_, last = comparison.advice.splitlines()
    assert "dula" not in first
    assert last.startswith("Go on with: run = steppe.sample(target, ")
    assert comparison.results.notes[-1] == last


def test_summary_shows_every_sampler_with_intervals(comparison):
    text = str(comparison)
    assert all(name in text for name in ("dula", "dmala", "gibbs, twice", "exact π", "biased"))


@pytest.mark.slow
def test_same_key_gives_the_same_tables(comparison):
    recipes = {"dula": steppe.dula(), "dmala": steppe.dmala(), "gibbs, twice": steppe.gibbs(num_updates=2)}
    again = steppe.compare(TARGET, recipes, key=KEY, seeds=SEEDS, budget=BUDGET, tuning_budget=9_000)
    assert again.results.table("distribution") == comparison.results.table("distribution")


def test_expected_distance_of_independent_draws_is_that_of_simulated_ones():
    distribution, rng = target_distribution(TARGET).astype(float), np.random.default_rng(0)
    distribution = distribution / distribution.sum()
    found = [total_variation(rng.multinomial(50, distribution) / 50, distribution) for _ in range(4000)]
    # Four standard errors: false alarm 6e-5; seen: an error of one percent.
    assert abs(np.mean(found) - expected_total_variation(distribution, 50)) < 4 * np.std(found) / np.sqrt(
        4000
    )


def test_budget_is_split_into_warm_up_and_draws_that_fit_memory():
    long = spend("dmala", steppe.dmala(), TARGET, 100_000)
    assert (long.num_warmup, long.thinning, long.num_draws) == (20_000, 20, 4_000)
    assert long.num_evaluations == 100_000


BAD = {
    "seeds": ({"seeds": 1}, "no interval"),
    "budget": ({"budget": 3}, "Use at least"),
    "budget of the wrong kind": ({"budget": 0}, "at least 1"),
    "rule": ({"tuned_by": "best"}, "'ess'"),
    "key": ({"key": 7}, "random key"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_request_is_refused_before_anything_runs(name):
    arguments, message = BAD[name]
    with pytest.raises(steppe.errors.SteppeError, match=message):
        steppe.compare(TARGET, [steppe.dmala()], **{"key": KEY, **arguments})


@pytest.mark.parametrize("recipes", [[], "dmala", ["dmala"], None, [steppe.dmala(), 3]])
def test_what_is_not_a_list_of_recipes_is_refused(recipes):
    with pytest.raises(steppe.errors.RunError, match="recipe"):
        steppe.compare(TARGET, recipes, key=KEY)


def test_two_recipes_of_one_name_need_labels():
    with pytest.raises(steppe.errors.RunError, match="label them"):
        steppe.compare(TARGET, [steppe.dmala(), steppe.dmala(step_size=0.3)], key=KEY)


def test_recipe_that_cannot_run_on_orders_is_refused_by_name():
    orders = steppe.Target(lambda order: 1.0 * order[0], steppe.Permutation(4))
    with pytest.raises(steppe.errors.RecipeError, match=r"dmala.*informed_permutation"):
        steppe.compare(orders, [steppe.dmala()], key=KEY)


def without_gradient(position):
    shape = jax.ShapeDtypeStruct((), position.dtype)
    return jax.pure_callback(lambda x: np.asarray(x.sum(), x.dtype), shape, position)


def test_target_without_gradient_is_refused_for_gradient_recipes_only():
    target = steppe.Target(without_gradient, steppe.Binary(3))
    with pytest.raises(steppe.errors.GradientError, match=r"dmala.*gibbs"):
        steppe.compare(target, [steppe.gibbs(), steppe.dmala()], key=KEY)


@pytest.mark.slow
def test_orders_are_compared_too():
    orders = steppe.Target(lambda order: 0.3 * order[0], steppe.Permutation(4))
    recipes = [steppe.informed_permutation(), steppe.uniform_permutation()]
    found = steppe.compare(orders, recipes, key=KEY, seeds=4, budget=2_000)
    assert [row["sampler"] for row in found.results.table("efficiency").rows] == [r.name for r in recipes]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(jnp.nan, "NaN or .inf at 4 of 16 states"), (-jnp.inf, "All 16 states are impossible")],
)
def test_a_target_without_a_distribution_is_refused_before_anything_runs(wrong, said):
    def log_density(bits):
        is_wrong = (bits[0] + bits[1] == 2) | jnp.isneginf(wrong)
        return jnp.where(is_wrong, wrong, jnp.sum(bits) / 4)

    target = steppe.Target(log_density, steppe.Binary(4))
    recipes = [steppe.gibbs(), steppe.hamming_ball(block_size=2)]
    with pytest.raises(TargetError, match=said):
        steppe.compare(target, recipes, key=jax.random.key(0), seeds=2, budget=10**12, tuned_by="none")
