"""The states one change away from a state, whatever a change is on its domain.

On sites a change sets one site to another level. On orders it is a swap, a reversal or an insertion. Measures
of flatness ask only for the gains of all changes and for the state after one of them.
"""

import jax.numpy as jnp
from jax import Array

from steppe.kernel.proposals.permutation_moves import TABLED, apply_move, as_move, differences
from steppe.target.log_density import Target


def gains(target: Target, position: Array) -> tuple[Array, Array]:
    """`U(after) − U(position)` of every change, and which entries are changes to possible states."""
    domain = target.domain
    if domain.is_site_product:
        table = target.differences(position)
        is_change = domain.level_mask & (domain.squared_jumps(position) > 0) & jnp.isfinite(table)
    else:
        table = jnp.stack([differences(target, kind, position) for kind in TABLED])
        is_change = jnp.isfinite(table)
    return jnp.ravel(table), jnp.ravel(is_change)


def after(target: Target, position: Array, change: Array) -> Array:
    """Return the state after a change, given by its place in `gains`."""
    domain = target.domain
    if domain.is_site_product:
        site, level = jnp.divmod(change, domain.max_levels)
        return domain.replace_sites(position, site, level)
    size = domain.num_sites
    kind, entry = jnp.divmod(change, size * size)
    row, column = jnp.divmod(entry, size)
    insert = TABLED.index("insert")
    move = as_move("insert", row, column, kind)
    return apply_move(TABLED, position, move._replace(shift=jnp.where(kind == insert, move.shift, 0)))
