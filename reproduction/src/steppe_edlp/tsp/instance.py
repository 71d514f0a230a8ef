"""Tours of an instance of TSPLIB: how close to the optimum, and which near-optimal tours are robust."""

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

from steppe import datasets, targets
from steppe.run.anneal import anneal
from steppe.run.sample import sample
from steppe.run.schedule import geometric_schedule, parameter_schedule
from steppe.samplers.permutations import informed_permutation
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.tsp.alternatives import RobustSolutions, robust_solutions
from steppe_edlp.work import Content, Work

MOVES = informed_permutation(moves=("two_opt", "insert"))
# Temperatures in units of the median distance to the nearest city.
HOT, COLD = 0.5, 0.07
# Without geometry the nearest city says little about what a change costs: start and stay warmer.
HOT_ASYMMETRIC, COLD_ASYMMETRIC = 5.0, 0.3
# Temperature of sampling in units of the mean edge of the best tour.
WARMTH, WARMTH_ASYMMETRIC = 0.05, 0.12
TOLERANCE = 0.02
NUM_SHOWN = 10


class Size(NamedTuple):
    """Chains, steps of annealing, draws after it, and seeds."""

    num_chains: int
    num_steps: int
    num_draws: int
    num_seeds: int


class Solved(NamedTuple):
    """What one seed found.

    Attributes
    ----------
    best
        Best cost of every chain after annealing.
    robust
        Up to a thousand distinct tours, the most robust first.
    """

    best: np.ndarray
    robust: RobustSolutions


def find_unit(distances: np.ndarray) -> float:
    """Median distance to the nearest other city: the scale of temperatures."""
    return float(np.median(np.sort(distances + np.diag(np.full(len(distances), np.inf)))[:, 0]))


def solve(distances: np.ndarray, seed: int, size: Size) -> Solved:
    """Anneal, then sample near the best tours and rank what was met by its good alternatives."""
    target: Any = targets.tsp(distances)
    unit, is_symmetric = find_unit(distances), bool((distances == distances.T).all())
    hot, cold = (HOT, COLD) if is_symmetric else (HOT_ASYMMETRIC, COLD_ASYMMETRIC)
    cooling = parameter_schedule(inverse_temperature=geometric_schedule(1 / (hot * unit), 1 / (cold * unit)))
    key_anneal, key_sample = jax.random.split(jax.random.key(seed))
    annealed = anneal(
        target,
        MOVES,
        cooling,
        key=key_anneal,
        num_chains=size.num_chains,
        num_steps=size.num_steps,
        progress=False,
    )
    best = -np.asarray(annealed.best_log_density, float)
    # Warm enough to leave the best tour, cold enough to stay within a few percent of it.
    temperature = (WARMTH if is_symmetric else WARMTH_ASYMMETRIC) * best.min() / len(distances)
    warm: Any = targets.tsp(distances, inverse_temperature=1 / temperature)
    drawn = sample(
        warm,
        MOVES,
        key=key_sample,
        num_chains=size.num_chains,
        num_warmup=0,
        num_draws=size.num_draws,
        initial=annealed.best_position,
        progress=False,
    )
    return Solved(best, robust_solutions(drawn, top=1000, radius=4, target=warm, tolerance=TOLERANCE))


def run_instance(request: Request, work: Work, size: SimpleNamespace) -> Found:
    """Solve one instance over several seeds."""
    instance = datasets.load(f"tsplib:{request.instance}", data=request.data)
    own = Size(**size.instance)
    seeds = request.seeds(own.num_seeds)
    answers = work.all({f"seed-{seed}": partial(_measure, instance.distances, seed, own) for seed in seeds})
    found = [answers[f"seed-{seed}"] for seed in seeds]
    gaps = [_find_gap(min(one["best"].min(), one["costs"].min()), instance) for one in found]
    near = [float((one["costs"] <= (1 + TOLERANCE) * one["costs"].min()).sum()) for one in found]
    chosen, places = found[int(np.argmin(gaps))], instance.coordinates
    summary: Row = {"instance": instance.name, "cities": len(instance.distances), "near": np.asarray(near)}
    if instance.optimum:
        summary |= {"optimum": instance.optimum, "gap": np.asarray(gaps)}
    return Found(
        rows={"instance": [summary], "robust": _describe_robust(instance, chosen)},
        facts={"instance": request.instance, "tolerance": TOLERANCE},
        conditions=["instance", *["places"] * (places is not None)],
        arrays={"tours": chosen["tours"]} | ({} if places is None else {"places": np.asarray(places, float)}),
        settings={"instance": request.instance, **own._asdict()},
        seeds=seeds,
        data={f"tsplib:{name}": digest for name, digest in instance.card.sha256.items()},
    )


def _measure(distances: np.ndarray, seed: int, size: Size) -> Content:
    best, robust = solve(distances, seed, size)
    shown = slice(0, NUM_SHOWN)
    assert robust.disrupted_cost is not None
    return {
        "best": best,
        "costs": robust.costs,
        "tours": robust.tours[shown].astype(np.int64),
        "alternatives": robust.num_alternatives[shown].astype(np.int64),
        "alternative_cost": robust.alternative_cost[shown],
        "disrupted": robust.disrupted_cost[shown],
    }


def _find_gap(cost: float, instance: Any) -> float:
    return float(100 * (cost / instance.optimum - 1)) if instance.optimum else float("nan")


def _describe_robust(instance: Any, chosen: Content) -> list[Row]:
    keys = ("costs", "alternatives", "alternative_cost", "disrupted")
    return [
        {
            "cost": float(cost),
            "gap": _find_gap(float(cost), instance) if instance.optimum else None,
            "alternatives": int(number),
            "alternative_cost": float(near),
            "disrupted": float(after),
        }
        for cost, number, near, after in zip(*(chosen[key] for key in keys), strict=False)
    ]
