"""A small restricted Boltzmann machine with hidden units summed out, in every form a target can take."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import steppe

NUM_HIDDEN = 5


def parameters(num_sites: int, seed: int = 3) -> dict[str, jax.Array]:
    rng = np.random.default_rng(seed)
    return {
        "visible": jnp.asarray(rng.normal(size=num_sites)),
        "hidden": jnp.asarray(rng.normal(size=NUM_HIDDEN)),
        "weights": jnp.asarray(rng.normal(size=(NUM_HIDDEN, num_sites))),
    }


def log_density(params, position):
    return params["visible"] @ position + jnp.sum(jax.nn.softplus(hidden_inputs(params, position)))


def hidden_inputs(params, position):
    return params["hidden"] + params["weights"] @ position


def site_differences(params, levels, inputs, position, sites):
    """Exact `U(site at level) − U(position)` from the inputs to the hidden units alone."""
    steps = levels - position[sites][:, None]
    moved = inputs + steps[:, :, None] * params["weights"].T[sites][:, None, :]
    rise = jnp.sum(jax.nn.softplus(moved) - jax.nn.softplus(inputs), axis=-1)
    return steps * params["visible"][sites][:, None] + rise


def all_differences(params, levels, position):
    sites = jnp.arange(len(position))
    return site_differences(params, levels, hidden_inputs(params, position), position, sites)


def updated_inputs(params, levels, inputs, position, site, level):
    return inputs + params["weights"][:, site] * (levels[level] - position[site])


def is_not_extreme(bounds, position):
    """A constraint that removes about a third of the states."""
    return (jnp.sum(position) >= bounds[0]) & (jnp.sum(position) <= bounds[1])


def machine(domain: steppe.Ordinal, form: str, *, bounds: tuple[float, float] | None = None) -> steppe.Target:
    """The same log-density as `"plain"`, with a table of `"differences"`, or `"incremental"`."""
    params, levels = parameters(domain.num_sites), jnp.asarray(domain.levels)
    incremental = steppe.Incremental(
        Partial(hidden_inputs, params),
        Partial(site_differences, params, levels),
        Partial(updated_inputs, params, levels),
    )
    return steppe.Target(
        Partial(log_density, params),
        domain,
        differences=Partial(all_differences, params, levels) if form == "differences" else None,
        incremental=incremental if form == "incremental" else None,
        is_valid=None if bounds is None else Partial(is_not_extreme, jnp.asarray(bounds)),
    )
