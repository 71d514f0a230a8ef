"""A binary network over η: the authors' settings on their rows, or a small network many times."""

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import steppe
from steppe import datasets
from steppe.compiling import quick_jit
from steppe.kernel.compose import Recipe
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import simulate
from steppe.targets.binary_network import BinaryNetwork, binary_network
from steppe.theory import effective_step_size
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row, name_seeds
from steppe_edlp.work import Content, Work

STRIDE = 5  # steps between points of a series, as in the paper's code


class Network(NamedTuple):
    """A network's posterior, and the rows its predictions are judged on."""

    target: BinaryNetwork
    x: np.ndarray
    y: np.ndarray
    constant_rmse: float
    description: str


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment."""
    size = experiment.size(request)
    seeds = request.seeds(size.num_seeds if request.is_sound else 1)
    network, recipes = _load(request, size), _make_recipes(experiment, request, size)
    firsts = range(0, len(seeds), size.seeds_per_piece)
    groups = [seeds[first : first + size.seeds_per_piece] for first in firsts]
    keys = {(name, group[0]): f"{name}-{name_seeds(group)}" for group in groups for name in recipes}
    answers = work.all(
        {
            keys[name, group[0]]: partial(_sweep, recipe, network, group, size, request)
            for group in groups
            for name, recipe in recipes.items()
        }
    )
    # Of a record, seeds that every sampler has.
    there = [name for name in recipes if keys[name, seeds[0]] in answers]
    whole = [group for group in groups if all(keys[name, group[0]] in answers for name in there)]
    swept = {name: [answers[keys[name, group[0]]] for group in whole] for name in there}
    # Groups of seeds side by side: the last axis counts seeds.
    found = {
        name: {key: np.concatenate([part[key] for part in parts], axis=-1) for key in parts[0]}
        for name, parts in swept.items()
    }
    seeds = [seed for group in whole for seed in group]
    entropic = [name for name in found if name in size.center_steps]
    plain = [_describe(name, found[name], 0) for name in found if name not in entropic]
    num_bits, variances = network.target.domain.num_sites, size.variances
    rows = [
        _describe(name, found[name], place)
        | _describe_center(name, found[name]["distance"][place], float(variance), num_bits, size)
        for name in entropic
        for place, variance in enumerate(variances)
    ]
    num_steps = STRIDE * size.num_points
    return Found(
        rows={"sweep": [*rows, *plain], "plain": plain},
        facts={
            "num_bits": num_bits,
            "num_steps": num_steps,
            "network": network.description,
            "constant_rmse": network.constant_rmse,
            "threshold": (size.step_size + size.center_steps["edula"]) / 4,
            "steps_to_settle": 2 * max(variances) / size.center_steps["edmala"],
        },
        conditions=[*found, *["entropic"] * bool(entropic), *["several"] * (len(seeds) > 1)],
        arrays={"paths": np.stack([found[name]["path"].mean(axis=-1) for name in entropic])}
        if entropic
        else {},
        seeds=seeds,
        data={"table": network.description},
        model_evaluations=len(variances) * len(seeds) * size.num_chains * num_steps * len(recipes),
    )


def _make_recipes(experiment: Experiment, request: Request, size: SimpleNamespace) -> dict[str, Recipe]:
    # A center that starts at the position needs 2η/α_a steps, thousands, to reach its stationary
    # distribution: the sound protocol starts it there.
    start = "conditional" if request.is_sound else "position"
    made = {}
    for name in request.chosen(experiment.samplers):
        center = {
            "center_step_size": size.center_steps.get(name),
            "coupling_variance": 1.0,
            "center_start": start,
        }
        made[name] = getattr(steppe, name)(
            step_size=size.step_size, **(center if name in size.center_steps else {})
        )
    return made


def _load(request: Request, size: SimpleNamespace) -> Network:
    """COMPAS, as the paper, where a data directory is given; else tumours, which ship with scikit-learn."""
    name = "breast-cancer" if request.data is None else "compas"
    data = datasets.load(name, data=request.data, as_published=request.data is not None, download=False)
    rows = slice(size.num_rows if request.is_quick else None)
    x, y = data.train.x[rows], data.train.y[rows].astype(np.float32)
    judged = data.validation
    constant = float(np.sqrt(np.mean((judged.y - y.mean()) ** 2)))
    digests = ", ".join(data.card.sha256.values()) or "ships with scikit-learn"
    words = (
        f"{name} ({digests}), {len(x)} training and {len(judged.y)} validation rows, {size.num_hidden} "
        "hidden units"
    )
    target = binary_network(x, y, size.num_hidden, preset="published")
    return Network(target, judged.x, judged.y.astype(np.float32), constant, words)


def _sweep(
    recipe: Recipe, network: Network, seeds: list[int], size: SimpleNamespace, request: Request
) -> Content:
    """Means over the run (sound: its second half) at every variance and seed, and the distance on its way.

    The same seed starts at the same networks whatever the variance. `rmse` is that of the mean output of the
    chains of a run; the others are means over its chains, `distance` being that of position and center.
    """
    sampler = recipe.build(network.target, audit=False)
    with_ones = np.concatenate((network.x, np.ones((len(network.x), 1), network.x.dtype)), axis=1)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    keys = jax.vmap(lambda key: jax.random.split(key, size.num_chains))(keys)
    variances = jnp.asarray(size.variances if recipe.coupling.has_center else (1.0,), jnp.float32)
    observed = _run(sampler, variances, keys.ravel(), with_ones, size.num_points)
    series = {}
    for name, values in observed.items():  # from variance × point × chain to point × variance × seed
        by_seed = np.asarray(values, float).reshape(*values.shape[:2], *keys.shape, *values.shape[3:])
        series[name] = by_seed.mean(axis=3).swapaxes(0, 1)
    series["rmse"] = np.sqrt(np.mean((series.pop("outputs") - network.y) ** 2, axis=-1))
    first = size.num_points // 2 if request.is_sound else 0
    means = {name: values[first:].mean(axis=0) for name, values in series.items()}
    return {**means, "path": series["distance"]}


@partial(quick_jit, static_argnames="num_points")
def _run(sampler: Sampler, variances: Array, keys: Array, rows: Array, num_points: int) -> dict[str, Array]:
    """Series of every chain, variance × point × chain."""
    target: Any = sampler.target

    def look(_: Sampler, state: SamplerState, info: StepInfo) -> dict[str, Array]:
        apart = state.position - (state.position if state.center is None else state.center)
        return {
            "outputs": target.outputs(state.position, rows),
            "acceptance": info.acceptance_rate,
            "flips": info.num_flips / STRIDE,
            "log_density": state.log_density,
            "distance": jnp.linalg.norm(apart),
        }

    def sweep_one(variance: Array) -> dict[str, Array]:
        own = sampler.replace({"coupling_variance": variance})
        starts = jax.vmap(lambda key: own.init(target.domain.draw(key), jax.random.fold_in(key, 0)))(keys)
        steps = {"first_step": 1, "every": STRIDE, "observe": look}
        return simulate(own, keys, starts, STRIDE * num_points, **steps).observed

    return jax.vmap(sweep_one)(variances)


def _describe(name: str, found: Content, place: int) -> Row:
    statistics = ("rmse", "acceptance", "flips", "log_density")
    return {"sampler": name, **{key: found[key][place] for key in statistics}}


def _describe_center(
    name: str, distance: np.ndarray, variance: float, num_bits: int, size: SimpleNamespace
) -> Row:
    step = effective_step_size(size.step_size, variance, size.center_steps[name])
    return {
        "variance": variance,
        "norm": distance,
        "distance": distance / np.sqrt(num_bits * variance),
        "effective_step": step.value if step.is_proper else None,
    }
