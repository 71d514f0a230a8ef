"""Where an order lives: every item at exactly one place.

A position lists the item at each place, as integers in the default float type. Levels cannot be changed
one site at a time, so samplers of single sites do not apply; `informed_permutation` and
`uniform_permutation` move by whole swaps, reversals and insertions. In the one-hot embedding, where a
center lives, a position is the n × n matrix with a one at (place, item).
"""

import itertools
import math
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain.base import MAX_ENUMERATED, MAX_INDEXED, Domain, show_count, to_site_shape
from steppe.errors import DomainError
from steppe.validation import count


class Permutation(Domain):
    """Orders of `num_sites` items, numbered from 0; a position has shape `(num_sites,)`.

    Parameters
    ----------
    num_sites
        Number of items, which is also the number of places; at least 2.

    Examples
    --------
    >>> import jax, steppe
    >>> domain = steppe.Permutation(5)
    >>> sorted(domain.draw(jax.random.key(0)).astype(int).tolist())
    [0, 1, 2, 3, 4]
    >>> domain.num_states
    120
    """

    id = "permutation"
    is_site_product = False

    @checked(DomainError)
    def __init__(self, num_sites: int) -> None:
        num_sites = count("Permutation(num_sites)", num_sites, 2, error=DomainError, remedy="")
        super().__init__(to_site_shape(num_sites), [num_sites] * num_sites)
        self.shape = (self.num_sites,)

    @property
    def is_two_level(self) -> bool:
        """No: even two items do not flip one by one."""
        return False

    @property
    def num_states(self) -> int:
        """Number of permutations, `n!`."""
        return math.factorial(self.num_sites)

    @property
    def squared_unit(self) -> float:
        """A swap changes two one-hot rows, each by a squared length of 2."""
        return 4.0

    def enumerate(self) -> Array:
        """All permutations, lexicographic; at most 2**20 of them (nine items)."""
        if self.num_states > MAX_ENUMERATED:
            raise DomainError(
                f"`{self!r}.enumerate()` would list {show_count(self.num_states)} permutations; at most "
                f"{MAX_ENUMERATED} are listed. Sample instead, or use at most 9 items."
            )
        return self.from_levels(np.asarray(list(itertools.permutations(range(self.num_sites)))))

    def index(self, position: Array) -> Array:
        """Row of `position` in `enumerate()` (its Lehmer code); leading axes are a batch."""
        if self.num_states > MAX_INDEXED:
            raise DomainError(
                f"`{self!r}.index(...)` numbers {show_count(self.num_states)} permutations; at most "
                f"{MAX_INDEXED} fit an index. Compare levels instead."
            )
        is_later = np.triu(np.ones((self.num_sites, self.num_sites), bool), 1)
        is_smaller = position[..., None, :] < position[..., :, None]
        code = jnp.sum(is_smaller & is_later, axis=-1, dtype=jnp.int32)
        sizes = np.asarray([math.factorial(rest) for rest in range(self.num_sites)][::-1], np.int32)
        return jnp.sum(code * sizes, axis=-1)

    def draw(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Independent uniform permutations, of shape `shape + self.shape`."""
        rows = jnp.broadcast_to(jnp.arange(self.num_sites), (*shape, self.num_sites))
        return self.from_levels(jax.random.permutation(key, rows, axis=-1, independent=True))

    def is_member(self, position: np.ndarray) -> np.ndarray:
        """Boolean per place: whether it holds an item that no other place holds."""
        is_item = np.isin(position, np.arange(self.num_sites))
        counts = (position[..., :, None] == position[..., None, :]).sum(axis=-1)
        return is_item & (counts == 1)

    def to_levels(self, position: Array) -> Array:
        """Items as small unsigned integers."""
        return jnp.asarray(position).astype(self.level_dtype)

    def from_levels(self, levels: ArrayLike) -> Array:
        """Positions from integers."""
        return self._check_levels(levels).astype(jnp.result_type(float))

    def differs(self, first: Array, second: Array) -> Array:
        """Boolean per place: whether two permutations have different items there."""
        return first != second

    def replace_sites(self, position: Array, sites: Array, levels: Array) -> Array:
        """Refused: an order has no one-site changes."""
        self._refuse_sites()

    def slopes(self, position: Array, gradient: Array) -> Array:
        """Refused: an order has no one-site changes."""
        self._refuse_sites()

    def squared_jumps(self, position: Array) -> Array:
        """Refused: an order has no one-site changes."""
        self._refuse_sites()

    def _refuse_sites(self) -> NoReturn:
        raise DomainError(
            f"{self!r} has no one-site changes: an item at two places is not an order. Use "
            "`informed_permutation()` or `uniform_permutation()`, which move whole items."
        )

    def __repr__(self) -> str:
        return f"Permutation({self.num_sites})"


def check_permutation(name: str, order: Any, num_items: int) -> np.ndarray:
    """Return an order as integers, or say which item is missing, doubled or unknown."""
    try:
        array = np.asarray(order)
    except (TypeError, ValueError):
        array = np.asarray(None)
    is_whole = array.dtype.kind in "uif" and array.ndim == 1 and (array == np.round(array)).all()
    if not is_whole or len(array) != num_items:
        raise DomainError(f"`{name}` must list {num_items} items, each once; got {order!r}.")
    items = array.astype(np.int64)
    outside = items[(items < 0) | (items >= num_items)]
    if outside.size:
        raise DomainError(f"`{name}` must hold items from 0 to {num_items - 1}; got {int(outside[0])}.")
    counts = np.bincount(items, minlength=num_items)
    if (counts != 1).any():
        raise DomainError(
            f"`{name}` is not a permutation: item {int(np.argmax(counts > 1))} is there "
            f"{int(counts.max())} times and item {int(np.argmin(counts))} not at all."
        )
    return items
