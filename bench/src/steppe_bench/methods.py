"""Methods: what searches an instance for so much processor time, by name."""

import jax
import numpy as np

import steppe
from steppe.kernel.compose import Recipe
from steppe.target import Target
from steppe_bench.rivals import RIVALS, Found, Method, list_rivals

__all__ = ["METHODS", "anneal", "anneal_isco", "list_methods"]

# Positions of the best chains that are repaired and counted.
NUM_OFFERED = 8


def anneal(
    target: Target, seconds: float, seed: int, goal: float | None, recipe: Recipe | None = None
) -> Found:
    """`steppe.anneal(target, key=key)`, nothing chosen."""
    limit = steppe.until(cpu_seconds=seconds, value=goal)
    found = steppe.anneal(target, recipe, key=jax.random.key(seed), until=limit, progress=False)
    order = np.argsort(-np.asarray(found.best_log_density), kind="stable")[:NUM_OFFERED]
    return Found(np.asarray(found.best_position)[order], found.cpu_seconds)


def anneal_isco(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """ISCO in this library: paths of Poisson length that follow the acceptance rate, annealed."""
    return anneal(target, seconds, seed, goal, steppe.pas(path_length="poisson"))


METHODS: dict[str, Method] = {
    "steppe": anneal,
    "isco": anneal_isco,
    **{name: rival.search for name, rival in RIVALS.items()},
}


def list_methods(target: Target) -> list[str]:
    """Names of the methods that are installed and take the target."""
    own = ["steppe", "isco"] if target.domain.is_site_product else ["steppe"]
    return [*own, *list_rivals(target)]
