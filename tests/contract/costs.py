"""What a step costs by XLA's own count, before any optimisation: no clock, no compilation.

PYTHONPATH=tests python -m contract.costs    # writes tests/contract/costs.json for this version of jax
"""

import json
from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.kernel.compose import Recipe
from steppe.samplers import ALL_RECIPES
from steppe.targets import binary_network, ising_lattice, paper_bernoulli, rbm

FILE = Path(__file__).with_name("costs.json")
NUM_CHAINS = 8


def targets() -> dict[str, steppe.Target]:
    """One target of every kind of arithmetic: a table, matrix products, a stencil, a network."""
    rng = np.random.default_rng(0)
    return {
        "bernoulli": paper_bernoulli(),
        "rbm": rbm(rng.standard_normal((50, 64)), np.zeros(50), np.zeros(64)),
        "ising": ising_lattice((12, 12), 0.3),
        "network": binary_network(rng.standard_normal((40, 5)), rng.uniform(size=40), 8),
    }


def recipes() -> dict[str, Recipe]:
    """Every recipe that changes single sites, with blocks that fit four sites."""
    fitted = {
        "block_gibbs": steppe.block_gibbs(block_size=2),
        "hamming_ball": steppe.hamming_ball(block_size=3, radius=1),
    }
    made = {name: fitted.get(name) or make() for name, make in ALL_RECIPES.items()}
    return {name: recipe for name, recipe in made.items() if "permutation" not in name}


def step_cost(recipe: Recipe, target: steppe.Target) -> dict[str, float]:
    """Floating-point operations and bytes of one vectorised step."""
    sampler = recipe.build(target, audit=False)
    starts = target.domain.draw(jax.random.key(0), (NUM_CHAINS,))
    keys = jax.random.split(jax.random.key(1), NUM_CHAINS)
    states = jax.eval_shape(jax.vmap(sampler.init), starts, keys)
    cost = jax.jit(jax.vmap(sampler.step)).lower(keys, states).cost_analysis()
    assert cost is not None
    return {"flops": cost["flops"], "bytes": cost["bytes accessed"]}


def all_costs() -> dict[str, dict[str, float]]:
    """Costs by `target: recipe`."""
    return {
        f"{name}: {recipe_name}": step_cost(recipe, target)
        for name, target in targets().items()
        for recipe_name, recipe in recipes().items()
    }


if __name__ == "__main__":
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    known[jax.__version__] = all_costs()
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
