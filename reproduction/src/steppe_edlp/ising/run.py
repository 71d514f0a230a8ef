"""The authors' 25 spins: energy and magnetisation of every sampler beside exact sums."""

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.diagnostics.exact import total_variation
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe_edlp.experiment import Experiment
from steppe_edlp.ising.model import NUM_SPINS, make_target, sum_exactly
from steppe_edlp.occupancy import Sums, add_up, divide_by_seed, estimate_noise
from steppe_edlp.request import Found, Request, Row, name_seeds
from steppe_edlp.work import Content, Work


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment."""
    size, recipes = experiment.size(request), experiment.make_recipes(request)
    seeds = request.seeds(size.num_seeds if request.is_sound else 1)
    label = name_seeds(seeds)
    kept = work.all(
        {f"{name}-{label}": partial(_measure, recipe, seeds, size) for name, recipe in recipes.items()}
    )
    recipes = {name: recipe for name, recipe in recipes.items() if f"{name}-{label}" in kept}
    answers = {name: kept[f"{name}-{label}"] for name in recipes}
    exact = sum_exactly()
    reference: Row = {
        "sampler": "π",
        "settings": "exact sums",
        "is_reference": True,
        "log_density": exact.log_density,
        "up": _count_up(exact.magnetization),
        "distance": 0.0,
    }
    described = [_describe(name, answers[name], recipes[name], exact.magnetization) for name in recipes]
    return Found(
        rows={"spins": [reference, *described]},
        facts={"target": {"log_density": exact.log_density, "spread": exact.spread}, "run": size.run},
        arrays={
            "target": exact.magnetization,
            "fractions": np.stack([answer["fractions"] for answer in answers.values()]),
        },
        recipes=recipes,
        seeds=list(seeds),
        model_evaluations=len(recipes) * len(seeds) * size.run["num_chains"] * _count_steps(size),
    )


def _measure(recipe: Recipe, seeds: Sequence[int], size: SimpleNamespace) -> Content:
    sampler = recipe.build(make_target(), audit=False)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    keys = jax.vmap(lambda key: jax.random.split(key, size.run["num_chains"]))(keys)
    num_warmup, num_draws = size.run["num_warmup"], size.run["num_draws"]
    sums = _run(sampler, keys.ravel(), num_warmup, num_draws)
    names = ("fractions", "log_density", "acceptance", "flips")
    return {
        name: divide_by_seed(values, len(seeds), num_draws) for name, values in zip(names, sums, strict=True)
    }


@quick_jit
def _run(sampler: Sampler, keys: Array, num_warmup: Array, num_draws: Array) -> Sums:
    """Spins up, log-density, acceptance and flips, summed over the kept steps of every chain."""

    def see(state: SamplerState, info: StepInfo) -> Sums:
        here = jnp.sum(state.position).astype(int) == jnp.arange(NUM_SPINS + 1)
        return here, state.log_density, info.acceptance_rate, info.num_flips

    return add_up(sampler, keys, num_warmup, num_draws, see, [(NUM_SPINS + 1,), (), (), ()])


def _describe(name: str, answer: Content, recipe: Recipe, exact: np.ndarray) -> Row:
    fractions = answer["fractions"]
    return {
        "sampler": name,
        "is_reference": False,
        "log_density": answer["log_density"],
        "up": _count_up(fractions),
        "distance": np.array([total_variation(row, exact) for row in fractions]),
        "pooled": float(total_variation(fractions.mean(axis=0), exact)),
        "noise": estimate_noise(fractions),
        "acceptance": float(answer["acceptance"].mean()) if recipe.is_adjusted else None,
        "flips": float(answer["flips"].mean()),
    }


def _count_up(fractions: np.ndarray) -> np.ndarray:
    """Mean number of spins up."""
    return fractions @ np.arange(NUM_SPINS + 1)


def _count_steps(size: SimpleNamespace) -> int:
    return size.run["num_warmup"] + size.run["num_draws"]
