"""Alternatives under a budget: which affordable solutions equal gradients find, and how alike they are."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import datasets, samplers
from steppe.compiling import quick_jit
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import Count, simulate
from steppe_edlp.budget.enumerated import Instance
from steppe_edlp.budget.planted import make_planted
from steppe_edlp.budget.tours import make_places, make_tours
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.work import Content, Work

PILOT_SEEDS = range(1000, 1004)
# Annealed, the coupling variance falls from so many times its own to its own.
ANNEALED_FROM = 16.0
RIVAL = "dmala"
TIED = 1e-9
MEASURES = ("found", "log_density", "first_robust", "near")
# Of TSPLIB; needs data.
MAP = "kroA100"


class Problem(NamedTuple):
    """Instances by seed, and how many gradients a chain gets on one."""

    make: Callable[[int], Instance]
    num_gradients: int


class Variant(NamedTuple):
    """A sampler, and how its draws are read.

    Attributes
    ----------
    sampler
        Name of the recipe.
    reads_center
        Whether solutions are the rounded center, the paper's smoothed variable.
    is_annealed
        Whether the coupling variance falls during the run.
    """

    sampler: str
    reads_center: bool = False
    is_annealed: bool = False


VARIANTS = {
    "dmala": Variant("dmala"),
    "edmala": Variant("edmala"),
    "edmala, rounded center": Variant("edmala", reads_center=True),
    "edmala, annealed η": Variant("edmala", is_annealed=True),
    "edmala_glu": Variant("edmala_glu"),
    "edmala_ou": Variant("edmala_ou"),
}


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment: settings chosen on pilot instances, then fresh ones."""
    size = experiment.size(request)
    seeds = request.seeds(size.num_instances)
    problems, digests = list_problems(size, request)
    names = [name for name, one in VARIANTS.items() if one.sampler in request.chosen(experiment.samplers)]
    pieces = {(problem, name): _to_key(problem, name) for problem in problems for name in names}
    kept = work.all(
        {key: partial(_measure, problems[of], name, seeds, size) for (of, name), key in pieces.items()}
    )
    parts = [
        _Compared.of(title, problem, seeds, {name: kept[pieces[title, name]] for name in names})
        for title, problem in problems.items()
    ]
    num_gradients = sum(problem.num_gradients for problem in problems.values())
    return Found(
        rows={"alternatives": [row for part in parts for row in part.describe()]},
        facts={
            "size": size,
            **{
                f"num_{part.problem}": np.mean([len(one.affordable) for one in part.instances])
                for part in parts
            },
        },
        conditions=problems,
        arrays={
            "nearer": np.stack([part.find_lead(name) for part in parts for name in part.answers]),
            "found": np.stack([one["found"] for part in parts for one in part.answers.values()]),
        },
        recipes={f"{name} on {part.problem}": one for part in parts for name, one in part.recipes.items()},
        seeds=seeds,
        data=digests,
        model_evaluations=len(names) * len(seeds) * size.num_chains * num_gradients,
    )


def list_problems(size: SimpleNamespace, request: Request) -> tuple[dict[str, Problem], dict[str, str]]:
    """What is looked at by name, and digests of data: places of a map only where data are given."""
    make: dict[str, Callable[..., Instance]] = {"tours": make_tours, "planted": make_planted}
    digests = {}
    if request.data is not None:
        loaded = datasets.load(f"tsplib:{MAP}", data=request.data)
        make["places"] = partial(make_places, distances=np.asarray(loaded.distances, float))
        digests = {f"tsplib:{name}": digest for name, digest in loaded.card.sha256.items()}
    problems = {
        name: Problem(partial(one, tolerance=size.tolerance[name]), size.num_gradients[name])
        for name, one in make.items()
    }
    return problems, digests


class _Compared(NamedTuple):
    """Answers of all variants on one problem, each beside those of the rival."""

    problem: str
    instances: list[Instance]
    answers: Mapping[str, Content]
    matched: Mapping[str, Mapping[str, np.ndarray]]
    recipes: Mapping[str, Recipe]

    @classmethod
    def of(
        cls, title: str, problem: Problem, seeds: Sequence[int], answers: Mapping[str, Content]
    ) -> "_Compared":
        """Match the sets of every variant with those of the rival."""
        instances = [problem.make(seed) for seed in seeds]
        matched = {
            name: match_sets(one["sets"], answers.get(RIVAL, one)["sets"], instances)
            for name, one in answers.items()
        }
        recipes = {name: _make_recipe(VARIANTS[name], one["setting"]) for name, one in answers.items()}
        return cls(title, instances, answers, matched, recipes)

    def find_lead(self, name: str) -> np.ndarray:
        """By how much solutions of a variant are nearer to each other than the rival's."""
        return self.matched[name]["other_distance"] - self.matched[name]["distance"]

    def describe(self) -> list[Row]:
        """One row for each variant."""
        return [
            {"problem": self.problem, **_describe(name, self.answers[name], self.matched[name])}
            for name in self.answers
        ]


def _to_key(problem: str, name: str) -> str:
    return f"{problem}-{name}".replace(", ", "-").replace(" ", "-").replace("η", "eta")


def _make_recipe(variant: Variant, setting: Mapping[str, float]) -> Recipe:
    return getattr(samplers, variant.sampler)(**setting)


def list_settings(variant: Variant, size: SimpleNamespace) -> list[dict[str, float]]:
    """The grid of hyper-parameters of a sampler."""
    grid = {"step_size": size.step_sizes}
    if variant.sampler != "dmala":
        grid["coupling_variance"] = size.coupling_variances
    if variant.sampler == "edmala":
        grid["center_step_size"] = size.center_step_sizes
    return [dict(zip(grid, numbers, strict=True)) for numbers in product(*grid.values())]


def _measure(problem: Problem, name: str, seeds: Sequence[int], size: SimpleNamespace) -> Content:
    """Choose a setting on pilot instances, and measure fresh ones with it."""
    variant, best = VARIANTS[name], None
    for setting in list_settings(variant, size):
        found = [_walk_instance(problem, variant, setting, seed, size)["found"] for seed in PILOT_SEEDS]
        if best is None or np.mean(found) > best[0]:
            best = float(np.mean(found)), setting
    assert best is not None
    walked = [_walk_instance(problem, variant, best[1], seed, size) for seed in seeds]
    return {
        **{key: np.asarray([one[key] for one in walked], float) for key in MEASURES},
        "sets": [one["set"] for one in walked],
        "setting": best[1],
        "pilot": best[0],
    }


def _walk_instance(
    problem: Problem, variant: Variant, setting: Mapping[str, float], seed: int, size: SimpleNamespace
) -> dict[str, Any]:
    """What the chains of one sampler find on one instance from random solutions."""
    instance, recipe = problem.make(seed), _make_recipe(variant, setting)
    sampler = recipe.build(instance.target, audit=False)
    num_steps = round(problem.num_gradients / sampler.evaluations_per_step)
    key_start, key = jax.random.split(jax.random.key(seed))
    starts = instance.draw_starts(key_start, size.num_chains)
    ends = None
    if variant.is_annealed:
        last = float(setting["coupling_variance"])
        ends = jnp.asarray([ANNEALED_FROM * last, last])
    positions = np.asarray(_walk(sampler, starts, key, num_steps, ends, reads_center=variant.reads_center))
    return judge(instance.number(positions), instance, problem.num_gradients)


@partial(quick_jit, static_argnames=("num_steps", "reads_center"))
def _walk(
    sampler: Sampler, starts: Array, key: Array, num_steps: int, ends: Array | None, *, reads_center: bool
) -> Array:
    """Positions, or rounded centers, of every chain and step."""

    def see(_: Sampler, state: SamplerState, __: StepInfo) -> Array:
        if not reads_center:
            return state.position.astype(jnp.int8)
        assert state.center is not None
        return (state.center > 0.5).astype(jnp.int8)

    def fall(step: Count) -> dict[str, Array]:
        assert ends is not None
        return {"coupling_variance": ends[0] * (ends[1] / ends[0]) ** (step / num_steps)}

    schedule = None if ends is None else fall
    keys = jax.random.split(key, len(starts))
    states = jax.vmap(sampler.init)(starts, keys)
    return simulate(sampler, key, states, num_steps, observe=see, schedule=schedule).observed


def judge(numbers: np.ndarray, instance: Instance, num_gradients: int) -> dict[str, Any]:
    """What a run found.

    Parameters
    ----------
    numbers
        Of the solutions of every chain and step, −1 for none.
    instance
        What was sampled.
    num_gradients
        Evaluations of a chain, spread over its steps.

    Returns
    -------
    dict
        `found`: fraction of the affordable solutions that any chain met. `near`: mean number of affordable
        ones near those. `first_robust`: mean gradients of a chain until it met one of the tenth with most of
        them, at most the whole run. `log_density`: mean over the second half. `set`: those met.
    """
    place = np.full(len(instance.excess) + 1, -1)
    place[instance.affordable] = np.arange(len(instance.affordable))
    met, num_near = place[numbers], instance.num_near
    kept = np.unique(met[met >= 0])
    is_robust = np.append(num_near >= np.quantile(num_near, 0.9), False)
    hits = is_robust[met]
    first = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, numbers.shape[1])
    late = numbers[:, numbers.shape[1] // 2 :]
    late = late[late >= 0]
    return {
        "found": len(kept) / len(instance.affordable),
        "near": float(num_near[kept].mean()) if len(kept) else 0.0,
        "first_robust": float(first.mean()) * num_gradients / numbers.shape[1],
        "log_density": float(instance.log_density[late].mean()) if len(late) else -np.inf,
        "set": kept.astype(np.int64),
    }


def match_sets(
    own: Sequence[np.ndarray], others: Sequence[np.ndarray], instances: Sequence[Instance]
) -> dict[str, np.ndarray]:
    """How alike solutions of two samplers are when both show as many of them, equally good.

    The smaller set of an instance says how good; of the other, those nearest to that are taken in turn.
    Instances where one set has less than two solutions say nothing and are NaN.

    Parameters
    ----------
    own, others
        Affordable solutions that two samplers met, by instance, as places in `affordable`.
    instances
        What was sampled.

    Returns
    -------
    dict
        One number per instance: mean `distance` and `diameter` of the first sampler's set, its mean `cost`
        over the best, the `number` of solutions, and `other_distance`, `other_diameter` and `other_cost`.
    """
    rows = []
    for first, second, instance in zip(own, others, instances, strict=True):
        # Of equally good solutions any may be taken, but not those that happen to be numbered first.
        costs = instance.excess[instance.affordable]
        costs = costs + TIED * np.random.default_rng(0).random(len(costs))
        wanted = costs[min(first, second, key=len)]
        row = {"number": float(len(wanted))}
        for prefix, places in (("", first), ("other_", second)):
            chosen = places[_match(costs[places], wanted)]
            pairs = instance.distances[np.ix_(chosen, chosen)][np.triu_indices(len(chosen), 1)]
            measures = (pairs.mean(), pairs.max(), costs[chosen].mean()) if len(pairs) else 3 * (np.nan,)
            names = ("distance", "diameter", "cost")
            row |= {prefix + name: float(value) for name, value in zip(names, measures, strict=True)}
        rows.append(row)
    return {key: np.asarray([row[key] for row in rows]) for key in rows[0]}


def _match(costs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Places of different costs that are nearest to those wanted, the dearest first."""
    free, chosen = np.ones(len(costs), bool), []
    for cost in np.sort(wanted)[::-1]:
        nearest = int(np.argmin(np.where(free, np.abs(costs - cost), np.inf)))
        free[nearest] = False
        chosen.append(nearest)
    return np.asarray(chosen, int)


def _describe(name: str, answer: Content, matched: Mapping[str, np.ndarray]) -> Row:
    row: Row = {"sampler": name, **{key: answer[key] for key in MEASURES}}
    is_matched = np.isfinite(matched["distance"])
    shown = is_matched if is_matched.any() else np.ones_like(is_matched)
    row |= {key: values[shown] for key, values in matched.items()}
    row["nearer"] = row["other_distance"] - row["distance"]
    settings = ", ".join(f"{key} = {value:g}" for key, value in sorted(answer["setting"].items()))
    return {**row, "log_first": np.log(answer["first_robust"]), "hyper_parameters": settings}
