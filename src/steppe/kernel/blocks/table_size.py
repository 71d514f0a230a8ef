"""Table size: how many updates of single sites to decide from one table of differences."""

import math
from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from steppe.target.log_density import Target

Leaf = tuple[tuple[int, ...], np.dtype]

# Fraction of updates that change a site.
CHANGED = 0.2


def cheapest_table(target: Target) -> int:
    """How many updates to decide from one table, so that a sweep costs least.

    An update of the cache costs `u`, a row of a table `c`, and a fraction `r` of updates change their site:
    a sweep of `d` sites costs `(d/B + rd)(u + Bc)`, least at `B = √(u / rc)`. Without a cache the whole table
    comes at once. Where an update costs less than writing the state, tables do not pay.
    """
    domain = target.domain
    if target.incremental is None:
        return domain.num_sites if target.has_differences else 1
    if target.incremental.table_size is not None:
        return target.incremental.table_size
    update, row = count_operations(target)
    if target.has_constraint or update < domain.num_sites:
        return 1
    return max(1, round(math.sqrt(update / (CHANGED * max(row, 1)))))


def count_operations(target: Target) -> tuple[float, float]:
    """Floating-point operations of a cache update and of a row of a table."""
    leaves, tree = jax.tree.flatten(target)
    return _count_operations(tree, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))


@lru_cache(maxsize=256)
def _count_operations(tree: PyTree, leaves: tuple[Leaf, ...]) -> tuple[float, float]:
    """Floating-point operations of a cache update and of a row of a table, as XLA counts them."""
    target = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves])
    position = jax.ShapeDtypeStruct(target.domain.shape, jnp.result_type(float))
    site, sites = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((1,), jnp.int32)
    cache = jax.eval_shape(lambda target, position: target.incremental.init(position), target, position)

    def count(function: Callable[..., PyTree], *arguments: PyTree) -> float:
        counted = jax.jit(function).lower(target, cache, position, *arguments).cost_analysis()
        return (counted or {}).get("flops", 0.0)

    update = count(lambda target, *given: target.incremental.update(*given), site, site)
    return update, count(lambda target, *given: target.incremental.differences(*given), sites)
