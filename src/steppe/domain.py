"""Where a discrete variable lives: sites, each of which takes one of a few levels.

A domain is an embedding table. Level `k` of a site is a real number (`Binary`, `Spin`, `Ordinal`) or
a one-hot row (`Categorical`), so a log-density is an ordinary differentiable function of a position,
and one discrete Langevin formula serves all domains: it only asks for the inner product of a gradient
with the jump from the current level to another one, and for the squared length of that jump.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.errors import DomainError
from steppe.pytree import is_concrete
from steppe.validation import count

MAX_ENUMERATED = 2**20
MAX_INDEXED = 2**31 - 1


class Domain:
    """Sites × levels. Use one of `Binary`, `Spin`, `Ordinal`, `Categorical`.

    Attributes
    ----------
    num_sites
        Number of discrete coordinates.
    num_levels
        Tuple with the number of levels of each site.
    shape
        Shape of one position.
    """

    num_sites: int
    num_levels: tuple[int, ...]
    shape: tuple[int, ...]

    # What the kind of domain is called in files; never changes, whatever the class is called.
    id: ClassVar[str]

    # Whether every site takes any level whatever the others do; orders are the exception.
    is_site_product = True

    def __init__(self, num_sites: int, num_levels: Sequence[int]) -> None:
        self.num_sites = num_sites
        self.num_levels = tuple(num_levels)

    # ---- sizes -------------------------------------------------------------------------------

    @property
    def max_levels(self) -> int:
        """Largest number of levels of any site: the width of every site × level table."""
        return max(self.num_levels)

    @property
    def is_two_level(self) -> bool:
        """Whether every site has two levels, so that a move is a flip and needs one logit."""
        return self.max_levels == 2 and min(self.num_levels) == 2

    @property
    def is_ragged(self) -> bool:
        """Whether sites differ in their number of levels."""
        return len(set(self.num_levels)) > 1

    @property
    def num_states(self) -> int:
        """Number of positions, an exact Python integer."""
        return math.prod(self.num_levels)

    @property
    def squared_unit(self) -> float:
        """Squared length of the shortest move of a site: the scale of step sizes and variances."""
        raise NotImplementedError

    @property
    def level_mask(self) -> np.ndarray:
        """Boolean site × level table of the levels that exist."""
        return np.arange(self.max_levels) < np.asarray(self.num_levels)[:, None]

    @property
    def level_dtype(self) -> np.dtype:
        """Smallest unsigned integer that holds a level; the type in which draws are stored."""
        return np.min_scalar_type(self.max_levels - 1)

    # ---- positions ---------------------------------------------------------------------------

    def enumerate(self) -> Array:
        """All positions, lexicographic in levels with the first site slowest.

        Raises
        ------
        DomainError
            If there are more than 2**20 of them.
        """
        if self.num_states > MAX_ENUMERATED:
            raise DomainError(
                f"`{self!r}.enumerate()` would list {self.num_states:.3g} positions; at most "
                f"{MAX_ENUMERATED} are listed. Sample instead, or use fewer sites."
            )
        levels = np.indices(self.num_levels).reshape(self.num_sites, -1).T
        return self.from_levels(levels)

    def index(self, position: Array) -> Array:
        """Row of `position` in `enumerate()`; leading axes are a batch."""
        if self.num_states > MAX_INDEXED:
            raise DomainError(
                f"`{self!r}.index(...)` numbers {self.num_states:.3g} positions; at most {MAX_INDEXED} "
                "fit an index. Compare levels instead."
            )
        sizes = np.asarray(self.num_levels)
        strides = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int32)
        return jnp.sum(self.to_levels(position).astype(jnp.int32) * strides, axis=-1)

    def draw(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Positions with independent uniform levels, of shape `shape + self.shape`."""
        levels = jax.random.randint(key, (*shape, self.num_sites), 0, np.asarray(self.num_levels, np.int32))
        return self.from_levels(levels)

    def contains(self, position: ArrayLike) -> bool:
        """Whether one position (or every one of a batch) has the right shape and exact levels."""
        try:
            array = np.asarray(position)
        except (TypeError, ValueError):  # rows of unequal length, a random key
            return False
        if array.dtype.kind not in "buif":
            return False
        if array.shape[array.ndim - len(self.shape) :] != self.shape or array.ndim < len(self.shape):
            return False
        return bool(np.all(self.is_member(array)))

    def is_member(self, position: np.ndarray) -> np.ndarray:
        """Boolean per site: whether the site holds one of its levels exactly."""
        raise NotImplementedError

    def to_levels(self, position: Array) -> Array:
        """Levels as small unsigned integers, shape `(..., num_sites)`."""
        raise NotImplementedError

    def from_levels(self, levels: ArrayLike) -> Array:
        """Positions with the given levels."""
        raise NotImplementedError

    def _checked_levels(self, levels: ArrayLike) -> Array:
        """Level indices as integers; out of range they are refused where they can be looked at."""
        if not is_concrete(levels):
            return jnp.asarray(levels, jnp.int32)
        given = np.asarray(levels)
        is_whole = given.dtype.kind in "bui" or (given.dtype.kind == "f" and (given == np.round(given)).all())
        if not is_whole or (given < 0).any() or (given >= self._bounds(given)).any():
            raise DomainError(
                f"Levels of {self!r} are whole numbers from 0 to the number of levels of the site less one; "
                f"got {levels!r}."
            )
        return jnp.asarray(given, jnp.int32)

    def _bounds(self, given: np.ndarray) -> Any:
        """Number of levels per site, where the last axis counts sites; else the largest of them."""
        is_by_site = given.ndim > 0 and given.shape[-1] == self.num_sites
        return np.asarray(self.num_levels) if is_by_site else self.max_levels

    # ---- geometry of one-site moves ------------------------------------------------------------

    def slopes(self, position: Array, gradient: Array) -> Array:
        """Table `gradient_i · (level_k − position_i)`, site × level."""
        raise NotImplementedError

    def squared_jumps(self, position: Array) -> Array:
        """Table `|level_k − position_i|²`, site × level."""
        raise NotImplementedError

    def differs(self, first: Array, second: Array) -> Array:
        """Boolean per site: whether two positions have different levels there."""
        raise NotImplementedError

    def replace_sites(self, position: Array, sites: Array, levels: Array) -> Array:
        """`position` with the given sites set to the given levels."""
        raise NotImplementedError

    # Two-level domains only.

    @property
    def squared_flip(self) -> float:
        """`|other − current|²`, the same for both directions."""
        raise NotImplementedError

    def flip_slopes(self, position: Array, gradient: Array) -> Array:
        """`gradient_i · (other_i − position_i)` per site."""
        raise NotImplementedError

    def flip(self, position: Array, sites: Array) -> Array:
        """`position` with the sites where the mask is true moved to their other level."""
        raise NotImplementedError

    # ---- identity ------------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """Id and parameters of the domain, as they stand in files."""
        return {"id": self.id, "shape": [self.num_sites]}

    def _identity(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.num_levels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


class Ordinal(Domain):
    """Sites that take one of the same increasing real levels.

    Parameters
    ----------
    num_sites
        Number of sites, at least 1.
    levels
        At least two strictly increasing finite reals, or an integer `K` for `0, 1, …, K − 1`.
    """

    id = "ordinal"

    def __init__(self, num_sites: int, levels: int | Sequence[float]) -> None:
        values = _levels(levels)
        super().__init__(
            count("num_sites", num_sites, error=DomainError, remedy=""), [len(values)] * num_sites
        )
        self.levels = values
        self.shape = (self.num_sites,)

    @property
    def _table(self) -> np.ndarray:
        return np.asarray(self.levels, dtype=jnp.result_type(float))

    @property
    def squared_unit(self) -> float:
        return float(np.diff(self.levels).min() ** 2)

    def is_member(self, position: np.ndarray) -> np.ndarray:
        return np.isin(position.astype(self._table.dtype), self._table)

    def to_levels(self, position: Array) -> Array:
        return jnp.searchsorted(self._midpoints, position).astype(self.level_dtype)

    def from_levels(self, levels: ArrayLike) -> Array:
        return jnp.asarray(self._table)[self._checked_levels(levels)]

    def slopes(self, position: Array, gradient: Array) -> Array:
        return gradient[:, None] * (self._table - position[:, None])

    def squared_jumps(self, position: Array) -> Array:
        return jnp.square(self._table - position[:, None])

    def differs(self, first: Array, second: Array) -> Array:
        return first != second

    def replace_sites(self, position: Array, sites: Array, levels: Array) -> Array:
        return position.at[sites].set(self.from_levels(levels))

    @property
    def squared_flip(self) -> float:
        return (self.levels[1] - self.levels[0]) ** 2

    def flip_slopes(self, position: Array, gradient: Array) -> Array:
        return gradient * (self._level_sum - 2 * position)

    def flip(self, position: Array, sites: Array) -> Array:
        # A select rather than arithmetic: levels such as 0.1 and 0.7 must come back bit for bit.
        low, high = self._table
        return jnp.where(sites, jnp.where(position == low, high, low), position)

    @property
    def _midpoints(self) -> np.ndarray:
        return (self._table[1:] + self._table[:-1]) / 2

    @property
    def _level_sum(self) -> float:
        return self.levels[0] + self.levels[1]

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "levels": list(self.levels)}

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self.levels)

    def __repr__(self) -> str:
        return f"Ordinal({self.num_sites}, levels={list(self.levels)})"


class Binary(Ordinal):
    """Bits: every site is 0 or 1."""

    id = "binary"

    def __init__(self, num_sites: int) -> None:
        super().__init__(num_sites, (0.0, 1.0))

    def to_json(self) -> dict[str, object]:
        return Domain.to_json(self)

    def __repr__(self) -> str:
        return f"Binary({self.num_sites})"


class Spin(Ordinal):
    """Spins: every site is −1 or +1. A flip is a jump of length 2, which the step size feels."""

    id = "spin"

    def __init__(self, num_sites: int) -> None:
        super().__init__(num_sites, (-1.0, 1.0))

    def to_json(self) -> dict[str, object]:
        return Domain.to_json(self)

    def __repr__(self) -> str:
        return f"Spin({self.num_sites})"


class Categorical(Domain):
    """Unordered levels as one-hot rows; a position has shape `(num_sites, max_levels)`.

    Parameters
    ----------
    num_sites
        Number of sites, at least 1.
    num_levels
        Number of levels, at least 2: one integer for all sites or one per site. With one per site,
        rows are padded with zeros to the largest number; a padded column is never chosen.
    """

    id = "categorical"

    def __init__(self, num_sites: int, num_levels: int | Sequence[int]) -> None:
        num_sites = count("num_sites", num_sites, error=DomainError, remedy="")
        super().__init__(num_sites, _level_counts(num_sites, num_levels))
        self.shape = (self.num_sites, self.max_levels)

    @property
    def squared_unit(self) -> float:
        return 2.0

    def is_member(self, position: np.ndarray) -> np.ndarray:
        one_hot = np.isin(position, (0, 1)).all(axis=-1) & (position.sum(axis=-1) == 1)
        return one_hot & (position * ~self.level_mask == 0).all(axis=-1)

    def to_levels(self, position: Array) -> Array:
        return jnp.argmax(position, axis=-1).astype(self.level_dtype)

    def from_levels(self, levels: ArrayLike) -> Array:
        levels = self._checked_levels(levels)
        return jax.nn.one_hot(levels, self.max_levels, dtype=jnp.result_type(float))

    def slopes(self, position: Array, gradient: Array) -> Array:
        return gradient - jnp.sum(gradient * position, axis=-1, keepdims=True)

    def squared_jumps(self, position: Array) -> Array:
        return 2 * (1 - position)

    def differs(self, first: Array, second: Array) -> Array:
        return jnp.any(first != second, axis=-1)

    def replace_sites(self, position: Array, sites: Array, levels: Array) -> Array:
        return position.at[sites].set(self.from_levels(levels))

    @property
    def squared_flip(self) -> float:
        return 2.0

    def flip_slopes(self, position: Array, gradient: Array) -> Array:
        return jnp.sum(gradient * (1 - 2 * position), axis=-1)

    def flip(self, position: Array, sites: Array) -> Array:
        return jnp.where(sites[..., None], 1 - position, position)

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "num_levels": list(self.num_levels)}

    def __repr__(self) -> str:
        levels = list(self.num_levels) if self.is_ragged else self.max_levels
        return f"Categorical({self.num_sites}, {levels})"


def _levels(levels: int | Sequence[float]) -> tuple[float, ...]:
    sequence = np.arange(levels) if isinstance(levels, int | np.integer) else levels
    try:
        given = np.asarray(list(sequence))
        values = given.astype(float) if given.dtype.kind in "uif" else np.empty((0, 0))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    with np.errstate(over="ignore"):
        in_use = values.astype(jnp.result_type(float))  # levels must stay apart in this precision
    increasing = values.ndim == 1 and np.isfinite(in_use).all() and (np.diff(in_use) > 0).all()
    if not increasing or values.size < 2:
        raise DomainError(
            "`levels` must be at least two strictly increasing finite numbers, or an integer of at "
            f"least 2; got {levels!r}. A site with one level is a constant: leave it out."
        )
    return tuple(float(value) for value in values)


def _level_counts(num_sites: int, num_levels: int | Sequence[int]) -> list[int]:
    if isinstance(num_levels, int | np.integer):
        num_levels = [int(num_levels)] * num_sites
    counts = list(num_levels) if isinstance(num_levels, Iterable) else [num_levels]
    if len(counts) != num_sites:
        raise DomainError(
            f"`num_levels` must be one integer or one per site; got {num_levels!r} for {num_sites} sites."
        )
    remedy = "A site with one level is a constant: leave it out."
    return [
        count(f"num_levels[{site}]", value, 2, error=DomainError, remedy=remedy)
        for site, value in enumerate(counts)
    ]
