"""Chains of a network at many coupling variances at once."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.kernel.compose import Recipe, Sampler
from steppe.kernel.types import SamplerState, StepInfo
from steppe.run.simulate import simulate
from steppe.targets.binary_network import BinaryNetwork

STRIDE = 5  # steps between points of a series, as in the paper's code


def sweep(
    recipe: Recipe,
    target: BinaryNetwork,
    variances: Sequence[float],
    seeds: Sequence[int],
    x: np.ndarray,
    y: np.ndarray,
    *,
    num_chains: int,
    num_points: int,
) -> dict[str, np.ndarray]:
    """Series of a run at every variance and seed, each of shape (points, variances, seeds).

    Parameters
    ----------
    recipe, target
        What to run.
    variances
        Coupling variances; one for a recipe without coupling.
    seeds
        Independent runs. The same seed starts at the same networks whatever the variance.
    x, y
        Rows the mean output of the chains of a run is judged on.
    num_chains
        Chains of a run.
    num_points
        Points of a series, five steps apart.

    Returns
    -------
    series
        `rmse` of the mean output, and means over chains of `acceptance`, `flips` per step, `log_density` and
        `distance` between position and center (0 without a center).
    """
    sampler = recipe.build(target, audit=False)
    with_ones = np.concatenate((x, np.ones((len(x), 1), x.dtype)), axis=1)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    keys = jax.vmap(lambda key: jax.random.split(key, num_chains))(keys)
    each = jnp.asarray(variances, jnp.float32)
    series = _run(sampler, each, keys.ravel(), with_ones, num_points)
    per_run = {
        name: np.moveaxis(np.asarray(values, float), 1, 0)
        .reshape(num_points, len(variances), *keys.shape, *values.shape[3:])
        .mean(axis=3)
        for name, values in series.items()
    }
    rmse = np.sqrt(np.mean((per_run.pop("outputs") - y) ** 2, axis=-1))
    return {"rmse": rmse, **per_run}


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
