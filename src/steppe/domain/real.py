"""Sites whose levels are real numbers: bits, spins, ordered levels."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain.base import Domain, SiteShape, show_sites, to_site_shape
from steppe.errors import DomainError
from steppe.validation import count


class Ordinal(Domain):
    """Sites that take one of the same increasing real levels.

    Parameters
    ----------
    num_sites
        Number of sites, at least 1, or their shape: a log-density then takes an array of that shape.
    levels
        At least two strictly increasing finite reals, or an integer `K` for `0, 1, …, K − 1`.

    Examples
    --------
    >>> import steppe
    >>> domain = steppe.Ordinal(2, [0, 0.5, 2])
    >>> domain.from_levels([2, 1]).tolist()
    [2.0, 0.5]
    >>> steppe.Ordinal(2, 5).num_states
    25
    """

    id = "ordinal"

    @checked(DomainError)
    def __init__(self, num_sites: SiteShape, levels: int | Sequence[float]) -> None:
        values, site_shape = _levels(levels), to_site_shape(num_sites)
        super().__init__(site_shape, [len(values)] * math.prod(site_shape))
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
        return jnp.asarray(self._table)[self._check_levels(levels)]

    def slopes(self, position: Array, gradient: Array) -> Array:
        return gradient[:, None] * (self._table - position[:, None])

    def squared_jumps(self, position: Array) -> Array:
        return jnp.square(self._table - position[:, None])

    def points(self, site: int) -> np.ndarray:
        return np.asarray(self.levels)[:, None]

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

    @property
    def value_table(self) -> np.ndarray | None:
        exact = np.asarray(self.levels)
        single = exact.astype(np.float32)
        return single if (single == exact).all() else exact

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "levels": list(self.levels)}

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self.levels)

    def __repr__(self) -> str:
        return f"Ordinal({show_sites(self.site_shape)}, levels={list(self.levels)})"


class Counts(Ordinal):
    """Counts 0, 1, 2, …, cut off at a largest one; a run says how much mass lies beyond it.

    Parameters
    ----------
    num_sites
        Number of sites, at least 1, or their shape.
    max_count
        Largest count, at least 1. Choose it so large that hardly a draw gets there.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> from jax.scipy.special import gammaln
    >>> poisson = lambda x: jnp.sum(x * jnp.log(3.0) - gammaln(x + 1))
    >>> target = steppe.Target(poisson, steppe.Counts(2, max_count=30))
    >>> run = steppe.sample(target, steppe.gibbs(), key=jax.random.key(0), num_draws=500)
    >>> "beyond" in str(run.summary())
    True
    """

    id = "counts"

    @checked(DomainError)
    def __init__(self, num_sites: SiteShape, max_count: int) -> None:
        self.max_count = count("Counts(max_count=...)", max_count, error=DomainError, remedy="")
        super().__init__(num_sites, self.max_count + 1)

    @property
    def truncated_sites(self) -> np.ndarray:
        return np.arange(self.num_sites)

    @property
    def value_table(self) -> np.ndarray | None:
        return None

    def to_json(self) -> dict[str, object]:
        return {**Domain.to_json(self), "max_count": self.max_count}

    def __repr__(self) -> str:
        return f"Counts({show_sites(self.site_shape)}, max_count={self.max_count})"


class Binary(Ordinal):
    """Bits: every site is 0 or 1.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe
    >>> domain = steppe.Binary((2, 3))  # a log-density takes a 2 × 3 array
    >>> domain.num_sites, domain.num_states
    (6, 64)
    >>> domain.contains(jnp.asarray([0.0, 1.0, 1.0, 0.0, 0.0, 2.0]))
    False
    """

    id = "binary"

    @checked(DomainError)
    def __init__(self, num_sites: SiteShape) -> None:
        super().__init__(num_sites, (0.0, 1.0))

    @property
    def value_table(self) -> np.ndarray | None:
        return None

    def to_json(self) -> dict[str, object]:
        return Domain.to_json(self)

    def __repr__(self) -> str:
        return f"Binary({show_sites(self.site_shape)})"


class Spin(Ordinal):
    """Spins: every site is −1 or +1. A flip is a jump of length 2, which the step size feels.

    Examples
    --------
    >>> import steppe
    >>> steppe.Spin(2).enumerate().astype(int).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    >>> steppe.Spin(2).squared_unit
    4.0
    """

    id = "spin"

    @checked(DomainError)
    def __init__(self, num_sites: SiteShape) -> None:
        super().__init__(num_sites, (-1.0, 1.0))

    @property
    def value_table(self) -> np.ndarray | None:
        return np.asarray([-1, 1], np.int8)

    def to_json(self) -> dict[str, object]:
        return Domain.to_json(self)

    def __repr__(self) -> str:
        return f"Spin({show_sites(self.site_shape)})"


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
