"""A center for permutations: a real n × n matrix tied to the one-hot matrix of the permutation.

Notation: `P` is the one-hot matrix (place × item) and `A` the center; the joint is
`exp{U(θ) − |P − A|² / (2η)}`. Integrating `A` out leaves `π` for every `η`. As `|P|² = n` is constant, the
coupling is `Σ_k A[k, θ_k] / η` up to terms of `A` alone, and the change by a move is a sum over the places it
changes, found for all moves at once from running sums.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.kernel.coupling import StarCoupling


class PermutationCoupling(StarCoupling):
    """`StarCoupling` in the one-hot embedding of a permutation."""

    component_id = "permutation-coupling"

    def anchor(self, position: Array) -> Array:
        """One-hot matrix of the permutation: what the center is tied to."""
        return jax.nn.one_hot(position.astype(jnp.int32), position.shape[0], dtype=position.dtype)

    def pull(self, position: Array, center: Array | None) -> Array:
        """Gradient with respect to the one-hot matrix."""
        return super().pull(self.anchor(position), center)

    def log_density_terms(self, position: Array, center: Array | None) -> Array:
        """Log-density of the coupling, one term per place: `−|P_k − A_k|² / (2η)`."""
        assert center is not None
        chosen = jnp.take_along_axis(center, position.astype(jnp.int32)[:, None], axis=1)[:, 0]
        return (chosen - 0.5 * (1 + jnp.sum(center**2, axis=1))) * self.inverse_variance

    def move_differences(self, kind: str, position: Array, center: Array | None) -> Array:
        """Change of the coupling by every move of a kind, a table over (first, last)."""
        assert center is not None
        held = center[:, position.astype(jnp.int32)]  # what place k gains from the item now at place l
        return CHANGES[kind](held) * self.inverse_variance


def swap_changes(held: Array) -> Array:
    """Exchange the items of two places."""
    stays = jnp.diagonal(held)
    return held + held.T - stays[:, None] - stays[None, :]


def reversal_changes(held: Array) -> Array:
    """Reverse a stretch: sums along anti-diagonals, grown outwards from the middle."""
    size = held.shape[0]
    middle, reach = np.indices((2 * size - 1, (size + 1) // 2))
    low, high = middle // 2 - reach, (middle + 1) // 2 + reach
    exists = (low >= 0) & (high < size)
    low, high = np.clip(low, 0, size - 1), np.clip(high, 0, size - 1)
    pairs = jnp.where(low == high, held[low, high], held[low, high] + held[high, low])
    grown = jnp.cumsum(jnp.where(exists, pairs, 0), axis=1)
    first, last = np.indices((size, size))
    return grown[first + last, np.abs(last - first) // 2] - _between(jnp.diagonal(held))


def insertion_changes(held: Array) -> Array:
    """Take the item of the row's place to the column's place; those between close up."""
    up, down = jnp.diagonal(held, 1), jnp.diagonal(held, -1)
    rows, columns = np.indices(held.shape)
    closing_up = _between(jnp.append(up, 0), last_included=False)
    closing_down = _between(jnp.append(down, 0), last_included=False)
    shifted = jnp.where(rows < columns, closing_up, closing_down)
    return held.T + shifted - _between(jnp.diagonal(held))


def _between(values: Array, *, last_included: bool = True) -> Array:
    """Sum of `values[a..b]` (or without `b`), with `a` the smaller and `b` the larger index of an entry."""
    size = values.shape[0]
    sums = jnp.concatenate([jnp.zeros(1, values.dtype), jnp.cumsum(values)])
    rows, columns = np.indices((size, size))
    return sums[np.maximum(rows, columns) + int(last_included)] - sums[np.minimum(rows, columns)]


CHANGES = {"swap": swap_changes, "two_opt": reversal_changes, "insert": insertion_changes}
