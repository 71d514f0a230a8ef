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
    rows = np.concatenate((x, np.ones((len(x), 1), x.dtype)), axis=1)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    keys = jax.vmap(lambda key: jax.random.split(key, num_chains))(keys)
    shape = (len(variances), *keys.shape)
    flat = jnp.broadcast_to(keys, shape).ravel()
    each = jnp.broadcast_to(jnp.asarray(variances, jnp.float32)[:, None, None], shape).ravel()
    series = _run(sampler, each, flat, rows, jnp.asarray(y), shape, num_points)
    return {name: np.asarray(values, float) for name, values in series.items()}


@partial(quick_jit, static_argnames=("shape", "num_points"))
def _run(
    sampler: Sampler,
    variances: Array,
    keys: Array,
    rows: Array,
    y: Array,
    shape: tuple[int, ...],
    num_points: int,
) -> dict[str, Array]:
    target: Any = sampler.target
    domain = target.domain

    def own(variance: Array) -> Sampler:
        return sampler.replace({"coupling_variance": variance})

    def start(variance: Array, key: Array) -> Any:
        return own(variance).init(domain.draw(key), jax.random.fold_in(key, 0))

    def advance(variance: Array, key: Array, state: Any) -> Any:
        return own(variance).step(key, state)

    def step(states: Any, index: Array) -> tuple[Any, tuple[Array, Array]]:
        now = jax.vmap(jax.random.fold_in, (0, None))(keys, index + 1)
        states, info = jax.vmap(advance)(variances, now, states)
        return states, (info.acceptance_rate, info.num_flips)

    def point(states: Any, first: Array) -> tuple[Any, dict[str, Array]]:
        states, (acceptance, flips) = jax.lax.scan(step, states, first + jnp.arange(STRIDE))
        outputs = jax.vmap(lambda position: target.outputs(position, rows))(states.position)
        mean = outputs.reshape(*shape, -1).mean(axis=2)
        apart = states.position - (states.position if states.center is None else states.center)

        def per_run(values: Array) -> Array:
            return values.reshape(shape).mean(axis=2)

        return states, {
            "rmse": jnp.sqrt(jnp.mean((mean - y) ** 2, axis=-1)),
            "acceptance": per_run(acceptance.mean(axis=0)),
            "flips": per_run(flips.mean(axis=0)),
            "log_density": per_run(states.log_density),
            "distance": per_run(jnp.linalg.norm(apart, axis=-1)),
        }

    return jax.lax.scan(point, jax.vmap(start)(variances, keys), STRIDE * jnp.arange(num_points))[1]
