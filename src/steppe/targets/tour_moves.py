"""Change of a tour's length under every move of a kind, for lengths that may depend on the direction.

Notation: `p` is the order, `L[a, b]` the length from city `a` to city `b`, and `M = L[p][:, p]` the same by
place. Every table is over (first, last) place of a stretch, or for insertions over (from, to); entries that
are no move hold anything. All tables cost `O(n²)`: the inside of a stretch enters through running sums.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array


class ByPlace(NamedTuple):
    """Lengths between cities by their places `k` and `l` in the tour.

    Attributes
    ----------
    direct
        From `k` to `l`.
    before
        From the one ahead of `k` to `l`.
    after
        From `k` to the one behind `l`.
    enter, leave
        Edges of the tour: into place `k`, and out of it.
    """

    direct: Array
    before: Array
    after: Array
    enter: Array
    leave: Array

    @classmethod
    def of(cls, lengths: Array, order: Array) -> "ByPlace":
        """Look the lengths up along an order."""
        direct = lengths[order][:, order]  # four times as fast as one look-up by pairs
        before, after = jnp.roll(direct, 1, axis=0), jnp.roll(direct, -1, axis=1)
        return cls(direct, before, after, jnp.diagonal(before), jnp.diagonal(after))


def swap_changes(lengths: Array, order: Array) -> Array:
    """Exchange the cities at two places."""
    direct, before, after, enter, leave = ByPlace.of(lengths, order)
    first, last = np.indices(direct.shape)
    taken_out = enter + leave
    apart = before + before.T + after + after.T - taken_out[:, None] - taken_out
    # Neighbours share an edge, which is turned round instead of being taken out twice.
    follows = before + direct.T + after - enter[:, None] - direct - leave
    closes = (first == 0) & (last == len(order) - 1)
    return jnp.where(last == first + 1, follows, jnp.where(closes, follows.T, apart))


def reversal_changes(lengths: Array, order: Array) -> Array:
    """Reverse the stretch between two places."""
    direct, before, after, enter, leave = ByPlace.of(lengths, order)
    first, last = np.indices(direct.shape)
    turned = jnp.cumsum(jnp.diagonal(direct, -1) - jnp.diagonal(direct, 1))
    turned = jnp.concatenate([jnp.zeros(1, turned.dtype), turned])
    ends = before + after - enter[:, None] - leave
    # Outside the whole tour there is one edge, not two.
    closing = direct[0, -1] - direct[-1, 0]
    is_whole = (first == 0) & (last == len(order) - 1)
    return turned - turned[:, None] + jnp.where(is_whole, closing, ends)


def insertion_changes(lengths: Array, order: Array) -> Array:
    """Take the city at the row's place to the column's place; those between close up."""
    direct, before, after, enter, leave = ByPlace.of(lengths, order)
    start, end = np.indices(direct.shape)
    closed_up = jnp.diagonal(jnp.roll(before, -1, axis=1)) - enter - leave
    behind = direct.T + after - leave  # between the column's place and the next one
    ahead = before.T + direct - enter  # between the column's place and the one ahead of it
    put_in = jnp.where(start < end, behind, ahead)
    turns_the_cycle = np.abs(start - end) == len(order) - 1
    return jnp.where(turns_the_cycle, 0, closed_up[:, None] + put_in)


CHANGES = {"swap": swap_changes, "two_opt": reversal_changes, "insert": insertion_changes}
