"""The travelling salesman: costs and mismatches of tours over the paper's eight cities."""

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

from steppe.intervals import estimate_mean
from steppe.kernel.compose import Recipe
from steppe.results import Estimate
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row, name_seeds
from steppe_edlp.tsp.enumeration import Minima, draw_exactly, enumerate_costs, find_minima
from steppe_edlp.tsp.instance import run_instance
from steppe_edlp.tsp.path_statistics import route_figures
from steppe_edlp.tsp.tour_measures import pairwise_mismatch_count
from steppe_edlp.tsp.walks import Walk, find_costs, make_keys, unpack_tours, walk, walk_as_coded
from steppe_edlp.work import Content, Work

# A step of `informed_permutation` looks at all reversals and insertions of a tour, 84 tours that differ from
# it in two or three of eight edges: worth about ten evaluations of a tour and of its gradient.
COST_OF_INFORMED = 10
EXACT_SEED = 1_000_000  # apart from the seeds of the other chains
MOST_POINTS = 1_500  # of a scatter
PRINTED = ("paths", "cost", "spread", "to_best", "band", "overall")
STATISTICS = ("paths", "cost", "spread", "best", "to_best", "band", "overall", "moves")


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment, on the paper's cities or on an instance of TSPLIB."""
    size = experiment.size(request)
    if request.instance is not None:
        return run_instance(request, work, size)
    recipes = experiment.make_recipes(request)
    seeds, exact, minima = request.seeds(size.num_seeds), enumerate_costs(), find_minima()
    label = name_seeds(seeds)
    kept = work.all({f"{n}-{label}": partial(_measure, one, request, size) for n, one in recipes.items()})
    recipes = {name: recipe for name, recipe in recipes.items() if f"{name}-{label}" in kept}
    answers = {name: kept[f"{name}-{label}"] for name in recipes}
    printed = {row["sampler"]: row["spread"] for row in experiment.published}
    points = [answer["points"] for answer in answers.values()]
    return Found(
        rows={
            "runs": [_describe_run(name, answers[name], request, printed.get(name)) for name in recipes],
            "distribution": _describe_distributions(answers),
            "minima": _describe_minima(minima),
        },
        facts={
            "num_seeds": len(seeds),
            "exact": exact,
            "budget": minima.budget,
            "flat": minima.within_budget[minima.flattest],
            "sharp": minima.within_budget[minima.sharpest],
            "runs": "all seeds" if request.is_sound else "one run each",
            "steps": size.num_steps,
            "dropped": size.num_warmup,
            "start": size.start,
            "num_exact_chains": size.num_exact_chains,
        },
        arrays={
            "profiles": minima.profiles,
            "budget": np.asarray([minima.budget]),
            "exact": np.asarray([exact.optimum, exact.mean]),
            "single_runs": np.stack(
                [[answer[key] for key in ("spread", "band", "overall")] for answer in answers.values()]
            ),
            # Of the paper's table, what every seed gives: sampler × statistic × seed.
            "all_runs": np.asarray([[one[key] for key in PRINTED] for one in answers.values()], np.float32),
            # Sampler, seed, cost and mismatch of every path.
            "points": np.concatenate([np.c_[np.full(len(part), n), part] for n, part in enumerate(points)]),
        },
        recipes=recipes,
        seeds=seeds,
        model_evaluations=sum(int(answer["steps"]) * int(answer["chains"]) for answer in answers.values()),
    )


def _measure(recipe: Recipe, request: Request, size: SimpleNamespace) -> Content:
    """Statistics of the paper's run for every seed, and costs of chains that start at exact draws."""
    seeds, num_chains = request.seeds(size.num_seeds), size.num_exact_chains
    starts = np.concatenate([np.tile(np.arange(8), (len(seeds), 1)), draw_exactly(seeds, num_chains)])
    keys = jnp.concatenate([make_keys(seeds), make_keys([EXACT_SEED + seed for seed in seeds], num_chains)])
    go = walk if request.is_sound else walk_as_coded
    is_of_permutations = recipe.name.endswith("permutation")
    walked = go(recipe, starts, keys, size.num_steps // (COST_OF_INFORMED if is_of_permutations else 1))
    own = Walk(*(part[: len(seeds)] for part in walked))
    costs = find_costs(walked.codes[len(seeds) :]).reshape(len(seeds), -1)
    return {
        **_summarize(own, size),
        "distribution_mean": costs.mean(axis=1),
        "mean_square": (costs**2).mean(axis=1),
        "optimal_distribution": (costs < enumerate_costs().optimum + 1e-3).mean(axis=1),
        "steps": walked.codes.shape[1],
        "chains": len(walked.codes),
    }


def _summarize(own: Walk, size: SimpleNamespace) -> Content:
    """The paper's statistics, one entry per seed, and the paths of the first seeds for a scatter."""
    kept = own.codes[:, own.codes.shape[1] * size.num_warmup // size.num_steps :]
    found = [route_figures(unpack_tours(codes), find_costs(codes)) for codes in kept]
    columns = {
        "paths": [one.num_paths for one in found],
        "cost": [one.cost.mean for one in found],
        "spread": [one.cost.std for one in found],
        "best": [one.cost.smallest for one in found],
        "to_best": [one.mismatch_to_best.mean for one in found],
        "band": [one.mismatch_to_best.mean + one.mismatch_to_best.std for one in found],
        "overall": [one.mismatch_overall.mean for one in found],
    }
    points = [_find_points(number, codes) for number, codes in enumerate(kept)]
    return {
        **{name: np.asarray(values, float) for name, values in columns.items()},
        "moves": own.moves * own.codes.shape[1],
        "points": np.concatenate(points)[:MOST_POINTS],
    }


def _find_points(seed: int, codes: np.ndarray) -> np.ndarray:
    """Seed, cost and mismatch to the best of every distinct path of a run."""
    paths = np.unique(codes)
    tours, costs = unpack_tours(paths), find_costs(paths)
    mismatches = pairwise_mismatch_count(tours, tours[np.argmin(costs)])
    return np.stack([np.full(len(paths), seed), costs, mismatches], axis=1)


def _describe_run(name: str, answer: Content, request: Request, printed: float | str | None) -> Row:
    row: Row = {"sampler": name, "all": answer}
    row |= {key: answer[key] if request.is_sound else answer[key][:1] for key in STATISTICS}
    return row if printed is None else row | {"percentile": float(100 * np.mean(answer["spread"] < printed))}


def _describe_distributions(answers: Mapping[str, Content]) -> list[Row]:
    exact = enumerate_costs()
    first = {"sampler": "π, enumerated", "mean": exact.mean, "std": exact.std, "optimal": exact.optimal_share}
    rows: list[Row] = [{**first, "is_reference": True}]
    for name, answer in answers.items():
        mean, square = answer["distribution_mean"], answer["mean_square"]
        rows.append(
            {
                "sampler": name,
                "mean": mean,
                "std": _take_root(estimate_mean(square - 2 * exact.mean * mean + exact.mean**2)),
                "std_about_own_mean": float(np.sqrt(square.mean() - mean.mean() ** 2)),
                "optimal": answer["optimal_distribution"],
            }
        )
    return rows


def _take_root(square: Estimate) -> Estimate:
    low, high = (None if end is None else float(np.sqrt(max(end, 0))) for end in (square.low, square.high))
    return Estimate(value=float(np.sqrt(square.value)), low=low, high=high)


def _describe_minima(found: Minima) -> list[Row]:
    ordered = sorted(zip(found.costs, found.rises, found.within_budget, strict=True))
    return [
        {"cost": float(cost), "rise": float(rise), "within": float(fraction)}
        for cost, rise, fraction in ordered
    ]
