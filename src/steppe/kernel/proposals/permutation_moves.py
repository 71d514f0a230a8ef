"""Moves of a permutation: swaps, reversals, insertions, shifts of a stretch.

Every move concerns the stretch of places from `first` to `last`:

- `"swap"` exchanges the items at its two ends;
- `"two_opt"` reverses it (in a tour: two edges are exchanged, if directions do not matter);
- `"insert"` takes the item at its first place to its last (`shift = 1`) or back (`shift = −1`);
- `"or_opt"` rotates it by up to three places either way, so that up to three items move together.

The move that leads back has the same places and the opposite shift.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.target.log_density import Target

TABLED = ("swap", "two_opt", "insert")
KINDS = (*TABLED, "or_opt")
LONGEST_SHIFT = 3


class Move(NamedTuple):
    """One move: which kind (as an index into the kinds in use), which stretch, and how far it shifts."""

    kind: Array
    first: Array
    last: Array
    shift: Array


def invert(move: Move) -> Move:
    """Return the move that undoes this one."""
    return move._replace(shift=-move.shift)


def apply_move(kinds: tuple[str, ...], position: Array, move: Move) -> Array:
    """Return the permutation after a move."""
    places = jnp.arange(position.shape[0])
    first, last, shift = move.first, move.last, move.shift
    rotated = first + (places - first + shift) % (last - first + 1)
    sources = {
        "swap": jnp.where(places == first, last, jnp.where(places == last, first, places)),
        "two_opt": first + last - places,
        "insert": rotated,
        "or_opt": rotated,
    }
    inside = jnp.select([move.kind == index for index in range(len(kinds))], [sources[k] for k in kinds])
    return position[jnp.where((places >= first) & (places <= last), inside, places)]


def differences(target: Target, kind: str, position: Array) -> Array:
    """Exact `U(after) − U(before)` of all moves of a kind, a table over (first, last).

    For `"insert"` the item moves from the row's place to the column's; the others use the upper triangle.
    Targets that offer `move_differences(kind, position)` make the table themselves; for others the
    log-density of every neighbour is evaluated.
    """
    if target.has_move_differences:
        table = target.move_differences(kind, position)
        return jnp.where(is_move(kind, position.shape[0]), table, -jnp.inf)
    rows, columns = np.nonzero(is_move(kind, position.shape[0]))
    ends = jax.vmap(lambda i, j: apply_move((kind,), position, as_move(kind, i, j)))(rows, columns)
    changes = jax.vmap(target.log_density)(ends) - target.log_density(position)
    table = jnp.full((position.shape[0],) * 2, -jnp.inf, changes.dtype)
    return table.at[rows, columns].set(changes)


def is_move(kind: str, num_items: int) -> np.ndarray:
    """Boolean table over (row, column) of the entries that are moves of a kind."""
    full = np.ones((num_items, num_items), bool)
    return ~np.eye(num_items, dtype=bool) if kind == "insert" else np.triu(full, 1)


def as_move(kind: str, row: Array, column: Array, index: Array | int = 0) -> Move:
    """Return the move that an entry of a table stands for."""
    first, last = jnp.minimum(row, column), jnp.maximum(row, column)
    shift = jnp.where(row < column, 1, -1) if kind == "insert" else jnp.zeros_like(first)
    return Move(jnp.asarray(index, jnp.int32), first, last, shift.astype(jnp.int32))
