"""The travelling salesman: do entropic samplers give tours of steadier cost, closer to the best?"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from steppe import samplers
from steppe.kernel.compose import Recipe
from steppe.routes import RouteFigures, route_figures
from steppe.routes.measures import pairwise_mismatch_count
from steppe.samplers.permutations import informed_permutation
from steppe_edlp.request import Findings, Request
from steppe_edlp.tsp import instance, report
from steppe_edlp.tsp.landscape import exact_draws
from steppe_edlp.tsp.walks import Walk, costs_of, keys_of, tours_of, walk, walk_as_coded
from steppe_edlp.work import Content, Work

PAPER = {
    "dula": samplers.dula(0.1),
    "edula": samplers.edula(0.1, 0.1, 0.1),
    "dmala": samplers.dmala(0.2),
    "edmala": samplers.edmala(0.2, 0.1, 0.8),
}
SOUND = PAPER | {"informed_permutation": informed_permutation(("two_opt", "insert"))}
PAPER_STEPS, PAPER_WARMUP = 10_001, 2_001
# A step of `informed_permutation` looks at all reversals and insertions of a tour, 84 tours that differ from
# it in two or three of eight edges: worth about ten evaluations of a tour and of its gradient.
COST_OF_INFORMED = 10
LAW_SEED = 1_000_000  # apart from the seeds of the other chains
MOST_POINTS = 1_500  # of a scatter


class Size(NamedTuple):
    """How much is run: seeds of the paper's run, and chains per seed that start at exact draws."""

    num_seeds: int
    num_law_chains: int


SIZES = {
    ("published", "quick"): Size(100, 1),
    ("published", "full"): Size(1_000, 1),
    ("sound", "quick"): Size(20, 4),
    ("sound", "full"): Size(100, 8),
}


def run(request: Request, work: Work) -> Findings:
    """Carry out the experiment, on the paper's cities or on an instance of TSPLIB."""
    if request.instance is not None:
        return instance.run(request, work)
    recipes = SOUND if request.is_sound else PAPER
    recipes = {name: recipes[name] for name in request.chosen(recipes)}
    answers = work.all({name: partial(measured, recipe, request) for name, recipe in recipes.items()})
    size = SIZES[request.protocol, request.scale]
    return report.findings(request, recipes, answers, request.seeds(size.num_seeds), size.num_law_chains)


def measured(recipe: Recipe, request: Request) -> Content:
    """Figures of the paper's run for every seed, and costs of chains that start at exact draws."""
    size = SIZES[request.protocol, request.scale]
    seeds = request.seeds(size.num_seeds)
    drawn = exact_draws(seeds, size.num_law_chains)
    starts = np.concatenate([np.tile(np.arange(8), (len(seeds), 1)), drawn])
    keys = jnp.concatenate(
        [keys_of(seeds), keys_of([LAW_SEED + seed for seed in seeds], size.num_law_chains)]
    )
    is_of_orders = recipe.name.endswith("permutation")
    go = walk if request.is_sound else walk_as_coded
    walked = go(recipe, starts, keys, PAPER_STEPS // (COST_OF_INFORMED if is_of_orders else 1))
    own, law = _parted(walked, len(seeds))
    costs = costs_of(law.codes).reshape(len(seeds), -1)
    return {
        **_figures(own),
        "law_mean": costs.mean(axis=1),
        "law_square": (costs**2).mean(axis=1),
        "law_optimal": (costs < report.OPTIMUM + 1e-3).mean(axis=1),
        "steps": walked.codes.shape[1],
        "chains": len(walked.codes),
    }


def _parted(walked: Walk, number: int) -> tuple[Walk, Walk]:
    codes, moves = walked
    return Walk(codes[:number], moves[:number]), Walk(codes[number:], moves[number:])


def _figures(own: Walk) -> Content:
    """The paper's figures, one entry per seed, and the paths of the first seeds for a scatter."""
    kept = own.codes[:, own.codes.shape[1] * PAPER_WARMUP // PAPER_STEPS :]
    figures = [route_figures(tours_of(codes), costs_of(codes)) for codes in kept]
    points = [_points(codes) for codes in kept]
    of_seed = np.repeat(np.arange(len(points)), [len(part) for part in points])
    return {
        **{name: np.asarray(values, float) for name, values in _columns(figures).items()},
        "moves": own.moves * own.codes.shape[1],
        "points": np.concatenate(points)[:MOST_POINTS],
        "points_seed": of_seed[:MOST_POINTS].astype(np.int64),
    }


def _columns(figures: list[RouteFigures]) -> dict[str, list[float]]:
    return {
        "paths": [one.num_paths for one in figures],
        "cost": [one.cost.mean for one in figures],
        "spread": [one.cost.std for one in figures],
        "best": [one.cost.smallest for one in figures],
        "to_best": [one.mismatch_to_best.mean for one in figures],
        "band": [one.mismatch_to_best.mean + one.mismatch_to_best.std for one in figures],
        "overall": [one.mismatch_overall.mean for one in figures],
    }


def _points(codes: np.ndarray) -> np.ndarray:
    """Cost and mismatch to the best of every distinct path of a run."""
    paths = np.unique(codes)
    tours, costs = tours_of(paths), costs_of(paths)
    return np.stack([costs, pairwise_mismatch_count(tours, tours[np.argmin(costs)])], axis=1)
