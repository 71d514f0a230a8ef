"""Time per full update: plain, entropic and Gibbs-like samplers, with evaluations counted."""

import time
from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import steppe
from steppe.domain import Binary
from steppe.intervals import LEVEL
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState
from steppe.results import Estimate
from steppe.run.simulate import simulate
from steppe.target import Target
from steppe.targets.binary_network import binary_network
from steppe_edlp.bnn.tabular import EMBEDDED, Asked, Rows, load_rows
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.work import Content, Work

CALLS_PER_UPDATE = {"edula_glu": 2, "edmala_glu": 2}
COMPARED_WITH = {"edula": "dula", "edmala": "dmala", "edula_glu": "edula", "edmala_glu": "edmala"}


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment on Adult where data are given, else on a small table."""
    size, recipes = experiment.size(request), experiment.make_recipes(request)
    table = EMBEDDED if request.data is None else "adult"
    rows = load_rows(Asked(table, size.num_rows if request.is_quick else None), request)
    measured = work.all({"timings": partial(_time, rows, recipes, size, request.seed)}, at_once=1)["timings"]
    described = [_describe(name, recipe, measured, size) for name, recipe in recipes.items()]
    return Found(
        rows={"timings": described},
        facts={"table": table, "num_rows": len(rows.train), "ratios": ", ".join(_say_ratios(measured))},
        recipes=recipes,
        seeds=[request.seed],
        data=rows.digests,
    )


def _describe(name: str, recipe: Recipe, seconds: Content, size: SimpleNamespace) -> Row:
    calls, found = CALLS_PER_UPDATE.get(name, 1), estimate_median(1e3 * seconds[name])
    row: Row = {
        "sampler": name,
        "evaluations": count_evaluations(recipe),
        "milliseconds": found,
        "per_call": found.value / calls,
        "paper": calls * size.paper_seconds[name],
        "paper_per_call": size.paper_seconds[name],
    }
    if "dula" in seconds:
        row["relative"] = estimate_median(seconds[name] / seconds["dula"])
    if (other := COMPARED_WITH.get(name)) in seconds:
        row["ratio"] = partial(estimate_median, seconds[name] / seconds[other])
        row["variation"] = _find_deviations(seconds[name]) - _find_deviations(seconds[other])
        row["memory"] = count_bytes(recipe) / count_bytes(getattr(steppe, other)())
    return row


def _find_deviations(values: np.ndarray) -> np.ndarray:
    """How far every measurement is from the median, relative to it."""
    return np.abs(values / np.median(values) - 1)


def count_bytes(recipe: Recipe, num_sites: int = 1000) -> int:
    """Memory of the state of one chain."""
    sampler = recipe.build(Target(jnp.sum, Binary(num_sites)), audit=False)
    state = jax.eval_shape(sampler.init, jnp.zeros(num_sites))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def _say_ratios(seconds: Content) -> list[str]:
    return [
        f"{one} takes {np.median(seconds[one] / seconds[other]):.2f} times as long as {other}"
        for one, other in COMPARED_WITH.items()
        if one in seconds and other in seconds
    ]


def count_evaluations(recipe: Recipe) -> int | None:
    """Evaluations of U and its gradient in one full update, counted as it runs; `None` without a gradient."""
    calls = []

    def log_density(position: Any) -> Any:
        jax.debug.callback(lambda _: calls.append(1), jnp.sum(position))
        return jnp.sum(position * jnp.arange(6.0))

    if not recipe.uses_gradient:
        return None
    sampler = recipe.build(Target(log_density, Binary(6)), audit=False)
    state = sampler.init(jnp.zeros(6), jax.random.key(0))
    jax.block_until_ready(state)
    jax.effects_barrier()
    before = len(calls)
    jax.block_until_ready(sampler.step(jax.random.key(1), state))
    jax.effects_barrier()
    return len(calls) - before


def _time(rows: Rows, recipes: Mapping[str, Recipe], size: SimpleNamespace, seed: int) -> Content:
    """Processor seconds per full update of all networks, by sampler; one entry per round."""
    target = binary_network(rows.train.x, rows.train.y, size.num_hidden, preset="published")
    key = jax.random.key(seed)
    starts = target.domain.draw(key, (size.num_chains,))
    built = {name: recipe.build(target, audit=False) for name, recipe in recipes.items()}
    states = {name: jax.vmap(sampler.init)(starts) for name, sampler in built.items()}
    steps = {}
    for name, sampler in built.items():  # compile, then find how many steps a measurement takes
        _time_steps(sampler, states[name], key, 1)
        each = _time_steps(sampler, states[name], key, 2) / 2
        steps[name] = max(1, round(size.seconds / max(each, 1e-6)))
    found: dict[str, list[float]] = {name: [] for name in built}
    for number in range(size.num_rounds):
        for name in list(built)[:: 1 if number % 2 else -1]:  # forth and back: drift falls on all alike
            found[name].append(_time_steps(built[name], states[name], key, steps[name]) / steps[name])
    return {name: np.asarray(values) for name, values in found.items()}


def _time_steps(sampler: Sampler, states: SamplerState, key: Array, num_steps: int) -> float:
    begun = time.process_time()
    jax.block_until_ready(_make_steps(sampler, states, key, jnp.asarray(num_steps)))
    return time.process_time() - begun


@jax.jit
def _make_steps(sampler: Sampler, states: SamplerState, key: Array, num_steps: Array) -> SamplerState:
    return simulate(sampler, key, states, num_steps).state


def estimate_median(values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Median with an interval between order statistics that covers it at least at a level.

    Parameters
    ----------
    values
        Independent measurements; below six there is no interval of 95 %.
    level
        Fraction of intervals that cover the true median, at least.
    """
    from scipy import stats

    ordered, number = np.sort(np.asarray(values, float)), len(values)
    skipped = int(stats.binom.ppf((1 - level) / 2, number, 0.5))  # P(fewer than this lie below) is too small
    ends = (None, None) if skipped < 1 else (float(ordered[skipped - 1]), float(ordered[number - skipped]))
    return Estimate(value=float(np.median(ordered)), low=ends[0], high=ends[1])
