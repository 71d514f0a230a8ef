"""A step does no more arithmetic than it did: XLA's counts against a table, five per cent at most."""

import json

import jax
import pytest

import steppe
from contract.costs import FILE, recipes, step_cost, targets
from tiers import cases

TOLERANCE = 0.05
KNOWN = json.loads(FILE.read_text()).get(jax.__version__)
TARGETS, RECIPES = targets(), recipes()
FAST = ("dula", "edmala", "gwg", "gibbs", "robust_ensemble")

pytestmark = pytest.mark.skipif(KNOWN is None, reason=f"no table of costs for jax {jax.__version__}")


# A table shows a change of the random numbers, matrix products one of the model's evaluations.
@pytest.mark.parametrize("target_name", cases(TARGETS, fast=["bernoulli", "rbm"]))
@pytest.mark.parametrize("recipe_name", cases(RECIPES, fast=FAST))
def test_step_costs_what_the_table_says(recipe_name, target_name):
    assert KNOWN is not None
    cost = step_cost(RECIPES[recipe_name], TARGETS[target_name])
    known = KNOWN[f"{target_name}: {recipe_name}"]
    assert cost == pytest.approx(known, rel=TOLERANCE), "run `python -m contract.costs` if this is meant"


def test_a_second_evaluation_of_the_model_would_be_noticed():
    plain, target = RECIPES["dmala"], TARGETS["rbm"]

    def twice(position):
        value, gradient = target.value_and_grad(position)
        again, _ = target.value_and_grad(1 - position)
        return value + 0 * again, gradient

    wasteful = steppe.Target(target.log_density, target.domain, value_and_grad=twice)
    assert step_cost(plain, wasteful)["flops"] > (1 + TOLERANCE) * step_cost(plain, target)["flops"]
