"""A gradient made of exact one-site differences, for log-densities that have none.

Probabilistic programs index arrays and branch on their discrete sites, so automatic differentiation finds
zero, or nothing. Evaluating all states one change away gives what gradient-guided samplers really want to
know, at the cost of that many evaluations, made as one batch.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain import Categorical, Domain, Ordinal
from steppe.target import Target

# In nats; a change that costs more is never proposed anyway, and impossible states stay finite.
LARGEST_DIFFERENCE = 1e3


def differences_as_gradient(
    log_density: Callable[[Array], Array], domain: Domain
) -> Callable[[Array], tuple[Array, Array]]:
    """Return `position → (value, gradient)` whose slopes are differences of the log-density.

    On two levels and on categories `gradient · jump` is the exact difference. On three or more ordered
    levels it is the slope of the line through the next levels below and above.

    Parameters
    ----------
    log_density
        `U` of one position.
    domain
        Where the position lives.
    """
    target = Target(log_density, domain)

    def value_and_grad(position: Array) -> tuple[Array, Array]:
        table = jnp.nan_to_num(target.differences(position), nan=0.0)
        table = jnp.clip(table, -LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
        return target.log_density(position), _gradient(domain, position, table)

    return value_and_grad


def _gradient(domain: Domain, position: Array, table: Array) -> Array:
    if isinstance(domain, Categorical):
        return jnp.where(domain.level_mask, table, 0)
    assert isinstance(domain, Ordinal)
    levels = domain.to_levels(position).astype(jnp.int32)
    below, above = jnp.maximum(levels - 1, 0), jnp.minimum(levels + 1, domain.max_levels - 1)
    rise = _at(table, above) - _at(table, below)
    values = jnp.asarray(np.asarray(domain.levels), table.dtype)
    return rise / (values[above] - values[below])


def _at(table: Array, levels: Array) -> Array:
    return jnp.take_along_axis(table, levels[:, None], axis=1)[:, 0]
