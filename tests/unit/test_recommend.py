"""A recipe is recommended by rules that look at the target, and a run without one says why it has it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.errors import RecipeError
from steppe.recommend import RULES, recommend_for_search

rng = np.random.default_rng(0)
GAUSSIAN = rng.normal(size=(70, 70)) / 8


def smooth(position):
    return 0.3 * jnp.sum(position) + jnp.sum(jnp.sin(jnp.cumsum(position)))


def flat(position):
    return jnp.sum(jnp.where(position == 1, 0.7, -0.2))


TARGETS = {
    "orders": (lambda: targets.tsp(coordinates=rng.uniform(size=(6, 2))), "informed_permutation"),
    "ranking": (lambda: steppe.Target(smooth, steppe.Permutation(6)), "uniform_permutation"),
    "hot lattice": (lambda: targets.ising_lattice((8, 8), 1 / 3), "chromatic_gibbs"),
    "cold lattice": (lambda: targets.ising_lattice((8, 8), 1 / 2.3), "swendsen_wang"),
    "cold antiferromagnet": (lambda: targets.ising_lattice((8, 8), -1 / 2.3), "swendsen_wang"),
    "cold lattice in a field": (lambda: targets.ising_lattice((8, 8), 1 / 2.3, 0.1), "chromatic_gibbs"),
    "glass": (lambda: targets.ising_graph([[0, 1], [1, 2], [2, 0]], [3.0, 3.0, -3.0]), "chromatic_gibbs"),
    "hot potts": (lambda: targets.potts((6, 6), 3, 0.8), "chromatic_gibbs"),
    "cold potts": (lambda: targets.potts((6, 6), 3, 1.1), "swendsen_wang"),
    "chain": (lambda: targets.ising_lattice(20, 2.0), "chromatic_gibbs"),
    "dense": (lambda: targets.ising(GAUSSIAN + GAUSSIAN.T - 2 * np.diag(np.diag(GAUSSIAN))), "gibbs"),
    "coupling tables": (lambda: targets.potts_tables(np.zeros((5, 5, 3, 3)), rng.normal(size=3)), "gibbs"),
    "formula": (lambda: targets.cnf([[1, -2, 3], [-3, 4], [2, -4]]), "gibbs"),
    "rbm": (lambda: targets.rbm(rng.normal(size=(4, 6)), 0.0, 0.0), "dmala"),
    "smooth": (lambda: steppe.Target(smooth, steppe.Binary(6)), "dmala"),
    "no gradient": (lambda: steppe.Target(flat, steppe.Binary(6)), "gibbs"),
    "constraint": (lambda: steppe.Target(smooth, steppe.Binary(6), is_valid=lambda x: x[0] > 0), "gibbs"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_recommendation_fits_the_target_and_can_be_built(name):
    make, expected = TARGETS[name]
    recipe, reason = steppe.recommend(make())
    assert recipe.name == expected
    assert recipe.is_adjusted
    assert recipe.build(make(), audit=False)
    assert reason in {rule.reason for rule in RULES}


def test_every_rule_is_met_by_some_target():
    met = {(steppe.recommend(make()).reason) for make, _ in TARGETS.values()}
    assert met == {rule.reason for rule in RULES}


def test_a_run_without_a_recipe_says_what_ran_and_why():
    target = targets.ising_lattice((6, 6), 0.3)
    run = steppe.sample(target, key=jax.random.key(0), num_warmup=50, num_draws=200, progress=False)
    same = steppe.sample(
        target, steppe.chromatic_gibbs(), key=jax.random.key(0), num_warmup=50, num_draws=200, progress=False
    )
    np.testing.assert_array_equal(run.trace.levels(), same.trace.levels())
    first = str(run.summary()).strip().splitlines()[0]
    assert first.startswith("chromatic_gibbs on Spin(36): few of its sites interact")
    assert "interact" not in str(same.summary()).strip().splitlines()[0]


def test_what_is_no_target_is_refused():
    with pytest.raises(RecipeError, match=r"`recommend\(target=...\)` must be a `steppe.Target`"):
        steppe.recommend(smooth)  # pyright: ignore[reportArgumentType]


def test_a_graph_with_a_hub_is_searched_by_colours_and_one_of_many_neighbours_from_change_to_change():
    hub = np.triu(np.random.default_rng(0).random((300, 300)) < 0.04, 1)
    hub[0, 1:140] = True
    for name, adjacency in {"chromatic_gibbs": hub, "gibbs": np.triu(np.ones((140, 140)), 1)}.items():
        target = targets.ising_graph(np.argwhere(adjacency), 0.01)
        assert recommend_for_search(target).recipe.name == name
