"""Agreement of chains that are mapped side by side: loops that end for all of them at once.

`jax.vmap` of a loop whose end differs from chain to chain writes back, at every turn, everything that chains
which are done must keep. Where a turn changes nothing for them anyway, a common end spares that.
"""

import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap


@custom_vmap
def any_mapped(flag: Array) -> Array:
    """Whether a flag is set; mapped over chains, whether it is set for any of them, one flag for all."""
    return flag


@any_mapped.def_vmap
def _join_flags(axis_size: int, is_mapped: list[bool], flag: Array) -> tuple[Array, bool]:
    return any_mapped(jnp.any(flag, axis=0) if is_mapped[0] else flag), False


@custom_vmap
def max_mapped(number: Array) -> Array:
    """Return a number; mapped over chains, the largest of theirs, one number for all."""
    return number


@max_mapped.def_vmap
def _join_numbers(axis_size: int, is_mapped: list[bool], number: Array) -> tuple[Array, bool]:
    return max_mapped(jnp.max(number, axis=0) if is_mapped[0] else number), False
