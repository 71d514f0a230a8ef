"""Judge of `steppe.recommend`: effective draws per CPU second of its recipe and of all other sensible ones.

    taskset -c 0 python benchmarks/recommend_judge.py [--only NAME ...] [--json FILE]

For every target all recipes that move it run with the same numbers of chains and draws, twice; the time is
that of the second call, warm-up included, compiling not. Effective draws are those of the worse of the
log-density and a second observable: the squared sum of levels about their mean, or for permutations the place
of the first item. The last column is the best recipe's figure over that of the recommended one.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import arviz
import jax
import jax.numpy as jnp
import numpy as np
from speed.harness import stamp

import steppe
from steppe import targets
from steppe.errors import RecipeError, SteppeError
from steppe.kernel.compose import Recipe

NUM_CHAINS = 8
NUM_WARMUP = 200
# Within this factor of the best a recommendation counts as good.
CLOSE = 1.5


def make_regression(num_columns: int) -> steppe.Target:
    rng = np.random.default_rng(0)
    design = rng.normal(size=(2 * num_columns, num_columns))
    design[:, 1::2] += 0.5 * design[:, 0::2]
    response = design[:, :10] @ (0.5 * rng.normal(size=10)) + rng.normal(size=len(design))
    return targets.variable_selection(design, response, inclusion=0.1)


def make_glass() -> steppe.Target:
    rng = np.random.default_rng(0)
    sites = np.arange(6**3).reshape(6, 6, 6)
    edges = np.concatenate(
        [np.stack([sites, np.roll(sites, -1, axis)], -1).reshape(-1, 2) for axis in range(3)]
    )
    return targets.ising_graph(edges, rng.choice([-1.0, 1.0], len(edges)) / 1.5)


def make_pairs(num_sites: int) -> np.ndarray:
    matrix = np.random.default_rng(0).normal(size=(num_sites, num_sites)) / np.sqrt(num_sites)
    return (matrix + matrix.T) / np.sqrt(2) * (1 - np.eye(num_sites))


def make_sparse_edges(num_nodes: int, degree: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.argwhere(np.triu(rng.random((num_nodes, num_nodes)) < degree / num_nodes, 1))


def make_machine() -> steppe.Target:
    rng = np.random.default_rng(0)
    return targets.rbm(0.1 * rng.normal(size=(100, 200)), np.zeros(100), 0.3 * rng.normal(size=200))


def make_mixture() -> steppe.Target:
    rng = np.random.default_rng(0)
    return targets.mixture(rng.dirichlet(np.ones(3)), rng.uniform(0.2, 0.8, (3, 50)))


def make_labels(num_inputs: int, num_patterns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.choice([-1.0, 1.0], (num_patterns, num_inputs)), rng.choice([-1.0, 1.0], num_patterns)


def make_ordinal() -> steppe.Target:
    chain = jnp.asarray(np.random.default_rng(0).normal(size=(40,)), float)
    return steppe.Target(
        lambda x: -0.5 * jnp.sum((x - 2 - chain) ** 2) - 0.25 * jnp.sum(jnp.diff(x) ** 2),
        steppe.Ordinal(40, 5),
    )


def compare_neighbours(x: jax.Array) -> jax.Array:
    return 0.7 * jnp.sum(x[1:] == x[:-1]) + 0.3 * jnp.sum(x[2:] == x[:-2])


def rank_items(x: jax.Array) -> jax.Array:
    return -0.1 * jnp.sum(jnp.abs(x - jnp.arange(12.0)))


TARGETS: dict[str, tuple[Callable[[], steppe.Target], int]] = {
    "Ising 24², T = 3": (lambda: targets.ising_lattice((24, 24), 1 / 3), 1000),
    "Ising 24², T = 2.3": (lambda: targets.ising_lattice((24, 24), 1 / 2.3), 1000),
    "Ising 24², field": (lambda: targets.ising_lattice((24, 24), 1 / 3, 0.1), 1000),
    "Edwards-Anderson 6³, T = 1.5": (make_glass, 1000),
    "Sherrington-Kirkpatrick 128": (lambda: targets.ising(make_pairs(128) / 1.25), 1000),
    "Potts 16², q = 3": (lambda: targets.potts((16, 16), 3, 0.8), 1000),
    "RBM 200 × 100": (make_machine, 300),
    "perceptron 51": (lambda: targets.perceptron(*make_labels(51, 25)), 1000),
    "committee 3 × 31": (lambda: targets.committee(*make_labels(31, 20)), 500),
    "variable selection 40": (lambda: make_regression(40), 1000),
    "QUBO 100, dense": (lambda: targets.qubo(make_pairs(100)), 1000),
    "QUBO 300, sparse": (
        lambda: targets.qubo(make_pairs(300) * (make_pairs(300) > 0.12)),
        1000,
    ),
    "max-cut 200, degree 4": (
        lambda: targets.max_cut(make_sparse_edges(200, 4), num_nodes=200, inverse_temperature=0.7),
        1000,
    ),
    "mixture 50": (make_mixture, 1000),
    "Bernoulli 4": (targets.paper_bernoulli, 2000),
    "ordinal 40 × 5": (make_ordinal, 1000),
    "comparisons 30": (lambda: steppe.Target(compare_neighbours, steppe.Binary(30)), 500),
    "tour of 20": (
        lambda: targets.tsp(coordinates=np.random.default_rng(0).random((20, 2)), inverse_temperature=10.0),
        2000,
    ),
    "ranking of 12": (lambda: steppe.Target(rank_items, steppe.Permutation(12)), 1000),
}


def list_recipes(target: steppe.Target) -> dict[str, Recipe]:
    """Every sensible recipe for a target."""
    if not target.domain.is_site_product:
        return {
            "informed_permutation": steppe.informed_permutation(),
            "informed_permutation, insert": steppe.informed_permutation(moves=("two_opt", "insert")),
            "uniform_permutation": steppe.uniform_permutation(),
        }
    return {
        "chromatic_gibbs": steppe.chromatic_gibbs(),
        "swendsen_wang": steppe.swendsen_wang(),
        "gibbs": steppe.gibbs(num_updates=target.domain.num_sites),
        "dmala": steppe.dmala(),
        "dmala, barker": steppe.dmala(balancing="barker"),
        "gwg": steppe.gwg(),
        "pas": steppe.pas(),
    }


def measure(target: steppe.Target, recipe: Recipe, num_draws: int) -> float:
    """Effective draws per CPU second of the second call; 0 where a chain never moved."""
    options = {"num_chains": NUM_CHAINS, "num_warmup": NUM_WARMUP, "num_draws": num_draws, "progress": False}
    steppe.sample(target, recipe, key=jax.random.key(0), **options)
    started = time.process_time()
    run = steppe.sample(target, recipe, key=jax.random.key(1), **options)
    seconds = time.process_time() - started
    levels = np.asarray(run.levels, float)
    spread = (levels.mean(axis=-1) - levels.mean()) ** 2
    other = spread if target.domain.is_site_product else levels[..., 0]
    observed = (np.asarray(run.data["sample_stats"]["log_density"], float), other)
    effective = [float(arviz.ess(values)) for values in observed]
    return max(float(np.nan_to_num(min(effective))), 0.0) / seconds


def judge(make: Callable[[], steppe.Target], num_draws: int) -> dict[str, float | str]:
    """Figures of all recipes that move a target, and the name of the recommended one."""
    target = make()
    recommended = steppe.recommend(target)
    candidates = {f"recommended {recommended.recipe.name}": recommended.recipe, **list_recipes(target)}
    found: dict[str, float | str] = {}
    for name, recipe in candidates.items():
        try:
            recipe.build(target)
        except (RecipeError, SteppeError):
            continue
        found[name] = measure(target, recipe, num_draws)
    return found


def main(only: list[str] | None, path: Path | None) -> None:
    """One line per target, and how many recommendations are close to the best."""
    warnings.simplefilter("ignore")
    rows, num_close = {}, 0
    for name, (make, num_draws) in TARGETS.items():
        if only and name not in only:
            continue
        figures = judge(make, num_draws)
        numbers = {recipe: float(value) for recipe, value in figures.items()}
        recommended = next(iter(numbers))
        best = max(numbers, key=lambda recipe: numbers[recipe])
        ratio = numbers[best] / max(numbers[recommended], 1e-9)
        num_close += ratio <= CLOSE
        rows[name] = {"figures": numbers, "recommended": recommended, "best": best, "ratio": ratio, **stamp()}
        listed = ", ".join(f"{recipe} {value:.3g}" for recipe, value in numbers.items())
        sys.stdout.write(f"{name}: {ratio:.2f} (best {best}) | {listed}\n")
        sys.stdout.flush()
        if path is not None:
            path.write_text(json.dumps(rows, indent=1) + "\n")
    sys.stdout.write(f"within {CLOSE} of the best: {num_close} of {len(rows)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    main(arguments.only, arguments.json)
