"""Tours of an instance of TSPLIB: how close to the optimum, and which near-optimal tours are robust."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from steppe import datasets, targets
from steppe.intervals import mean_estimate
from steppe.results import Cell, Column, Figure, Table
from steppe.routes import RobustSolutions, robust_solutions
from steppe.run.anneal import anneal
from steppe.run.sample import sample
from steppe.run.schedule import geometric, schedule
from steppe.samplers.permutations import informed_permutation
from steppe_edlp.request import Findings, Request
from steppe_edlp.work import Content, Work

MOVES = informed_permutation(("two_opt", "insert"))
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


SIZES = {"quick": Size(8, 1500, 300, 3), "full": Size(16, 4000, 1000, 20)}


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


def nearest(distances: np.ndarray) -> float:
    """Median distance to the nearest other city: the scale of temperatures."""
    return float(np.median(np.sort(distances + np.diag(np.full(len(distances), np.inf)))[:, 0]))


def solve(distances: np.ndarray, seed: int, size: Size) -> Solved:
    """Anneal, then sample near the best tours and rank what was met by its good alternatives."""
    target: Any = targets.tsp(distances)
    unit, is_symmetric = nearest(distances), bool((distances == distances.T).all())
    hot, cold = (HOT, COLD) if is_symmetric else (HOT_ASYMMETRIC, COLD_ASYMMETRIC)
    cooling = schedule(inverse_temperature=geometric(1 / (hot * unit), 1 / (cold * unit)))
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


def run(request: Request, work: Work) -> Findings:
    """Solve one instance over several seeds."""
    assert request.instance is not None
    instance = datasets.load(f"tsplib:{request.instance}", data=request.data)
    size = SIZES[request.scale]
    seeds = request.seeds(size.num_seeds)
    answers = work.all({f"seed-{seed}": partial(_piece, instance.distances, seed, size) for seed in seeds})
    found = [answers[f"seed-{seed}"] for seed in seeds]
    gaps = [_gap(min(float(one["best"].min()), float(one["costs"].min())), instance) for one in found]
    chosen = found[int(np.argmin(gaps))]
    places = instance.coordinates
    return Findings(
        tables=[_summary(instance, gaps, found), _robust(instance, chosen)],
        figures=_figures(instance) if places is not None else [],
        arrays={
            "tours": chosen["tours"],
            **({} if places is None else {"places": np.asarray(places, float)}),
        },
        settings={"instance": request.instance, **{key: int(value) for key, value in size._asdict().items()}},
        notes=[
            (
                "The paper has eight cities only. Here a tour is an order of cities, moved by informed "
                "2-opt and insertion moves; it is annealed first and then sampled at a fixed temperature "
                "near the best tours."
            ),
            f"An alternative differs in at most four edges and costs at most {TOLERANCE:.0%} more.",
        ],
        seeds=seeds,
        data={f"tsplib:{name}": digest for name, digest in instance.card.sha256.items()},
    )


def _piece(distances: np.ndarray, seed: int, size: Size) -> Content:
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


def _gap(cost: float, instance: Any) -> float:
    return 100 * (cost / instance.optimum - 1) if instance.optimum else float("nan")


def _summary(instance: Any, gaps: list[float], found: list[Content]) -> Table:
    near = [float((one["costs"] <= (1 + TOLERANCE) * one["costs"].min()).sum()) for one in found]
    row: dict[str, Cell] = {
        "instance": instance.name,
        "cities": len(instance.distances),
        "optimum": instance.optimum,
        "gap": mean_estimate(np.asarray(gaps)) if instance.optimum else None,
        "near": mean_estimate(np.asarray(near)),
    }
    return Table(
        key="instance",
        title="Best tours",
        columns=[
            Column(key="instance", label="instance"),
            Column(key="cities", label="cities", digits=0),
            Column(key="optimum", label="known optimum", digits=0),
            Column(key="gap", label="gap of the best tour", unit="%", better="lower"),
            Column(key="near", label="tours within 2 % of the best", digits=0),
        ],
        rows=[row],
    )


def _robust(instance: Any, chosen: Content) -> Table:
    columns = zip(
        chosen["costs"], chosen["alternatives"], chosen["alternative_cost"], chosen["disrupted"], strict=False
    )
    return Table(
        key="robust",
        title="The tours with the most good alternatives",
        columns=[
            Column(key="cost", label="cost", digits=0, better="lower"),
            Column(key="gap", label="gap", unit="%", digits=2),
            Column(key="alternatives", label="good alternatives", digits=0, better="higher"),
            Column(key="alternative_cost", label="their mean cost", digits=0),
            Column(key="disrupted", label="mean cost after a random 2-opt move", digits=0, better="lower"),
        ],
        rows=[
            {
                "cost": float(cost),
                "gap": _gap(float(cost), instance) if instance.optimum else None,
                "alternatives": int(number),
                "alternative_cost": float(near),
                "disrupted": float(after),
            }
            for cost, number, near, after in columns
        ],
    )


def _figures(instance: Any) -> list[Figure]:
    return [
        Figure(
            key="tours",
            title=f"The most robust tours of {instance.name}",
            caption="The tour with the most good alternatives, drawn over the nine next ones: edges they "
            "share are dark, edges where they differ are light.",
            alternative="Cities as points with several tours drawn over each other.",
        )
    ]
