"""Methods: what searches an instance for so much processor time, by name."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.kernel.compose import Recipe
from steppe.target import Target
from steppe.targets import NodeSet
from steppe_bench.rivals import RIVALS, Found, Method, is_reached, list_rivals

__all__ = ["METHODS", "anneal", "anneal_away", "anneal_isco", "list_methods"]

# Positions of the best chains that are repaired and counted.
NUM_OFFERED = 8
# Seconds of the first turn of searches that take turns; every next turn is twice as long.
FIRST_TURN = 0.5
# Short rounds away from what was found: steps, inverse temperatures for nodes of weight 1, and how much of
# what earlier rounds found is remembered.
AWAY_STEPS, AWAY_RANGE, MEMORY = 200, (0.3, 4.0), 0.8


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


def anneal_away(target: Target, seconds: float, seed: int, goal: float | None) -> Found:
    """`steppe.anneal` as it is, and by turns short rounds of it away from the sets that such rounds found."""
    assert isinstance(target, NodeSet)
    needed = np.inf if goal is None else goal
    key, used, best, value = jax.random.key(seed), 0.0, np.zeros(target.domain.num_sites), -np.inf
    visited = best
    for turn in itertools.count():
        length = min(FIRST_TURN * 2**turn, seconds - used)
        limit = steppe.until(cpu_seconds=length, value=goal)
        found = steppe.anneal(target, key=jax.random.fold_in(key, 2 * turn), until=limit, progress=False)
        used += found.cpu_seconds
        best, value = _offer(target, np.asarray(found.best_position), best, value)
        end, away = min(used + length, seconds), jax.random.fold_in(key, 2 * turn + 1)
        for round_ in itertools.count():
            if used >= end or is_reached(value, needed):
                break
            found = steppe.anneal(
                target.avoid(visited),
                None,
                steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(*AWAY_RANGE)),
                key=jax.random.fold_in(away, round_),
                num_steps=AWAY_STEPS,
                restarts=0,
                until=steppe.until(cpu_seconds=end - used),
                progress=False,
            )
            begun, sets = time.process_time(), np.asarray(found.best_position)
            visited = MEMORY * visited + (1 - MEMORY) * sets.mean(axis=0)
            best, value = _offer(target, sets, best, value)
            used += found.cpu_seconds + time.process_time() - begun
        if used >= seconds or is_reached(value, needed):
            return Found(best[None], used)
    raise AssertionError


def _offer(target: NodeSet, sets: np.ndarray, best: np.ndarray, value: float) -> tuple[np.ndarray, float]:
    """Return the best of a set so far and of repaired ones, with its log-density."""
    weights = sets @ np.broadcast_to(np.asarray(target.weights), sets.shape[1])
    for place in np.argsort(-weights, kind="stable")[:NUM_OFFERED]:
        repaired = np.asarray(target.repair(sets[place]))
        reached = float(target.log_density(jnp.asarray(repaired)))
        if reached > value:
            best, value = repaired, reached
    return best, value


METHODS: dict[str, Method] = {
    "steppe": anneal,
    "isco": anneal_isco,
    "away": anneal_away,
    **{name: rival.search for name, rival in RIVALS.items()},
}


def list_methods(target: Target) -> list[str]:
    """Names of the methods that are installed and take the target."""
    own = ["steppe", "isco"] if target.domain.is_site_product else ["steppe"]
    if isinstance(target, NodeSet) and not target.marks_rest:
        own.append("away")
    return [*own, *list_rivals(target)]
