"""Where a discrete variable lives: sites, each of which takes one of a few levels.

A domain is an embedding table. Level `k` of a site is a real number (`Binary`, `Spin`, `Ordinal`) or
a one-hot row (`Categorical`), so a log-density is an ordinary differentiable function of a position,
and one discrete Langevin formula serves all domains: it only asks for the inner product of a gradient
with the jump from the current level to another one, and for the squared length of that jump.
"""

import copy
import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.errors import DomainError
from steppe.pytree import is_concrete
from steppe.validation import count

MAX_ENUMERATED = 2**20
MAX_INDEXED = 2**31 - 1
# Any number may be asked for, or stand in a file; nothing larger is put into memory.
MAX_SITES = 2**27

# How many sites, or their shape.
SiteShape = int | Sequence[int]

# Names of dimensions and variables of every stored run.
RESERVED = ("chain", "draw", "replica", "site", "level", "center")


class Variable(NamedTuple):
    """Consecutive sites under one name.

    Attributes
    ----------
    name
        What tables and plots call it.
    shape
        Shape of its value; `()` for one site.
    low
        Smallest value of every site, if values are integers that count from there.
    labels
        What every site is called, if not by its number.
    """

    name: str
    shape: tuple[int, ...]
    low: tuple[int, ...] | None = None
    labels: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """Number of sites."""
        return math.prod(self.shape)

    @property
    def site_names(self) -> list[str]:
        """Every site, as `z[3]`; one site without a shape, as `z`."""
        if self.labels is not None:
            return [f"{self.name}[{label}]" for label in self.labels]
        places = [", ".join(map(str, index)) for index in np.ndindex(*self.shape)]
        return [f"{self.name}[{place}]" if place else self.name for place in places]

    def to_json(self) -> dict[str, object]:
        """The variable, as it stands in files."""
        low = None if self.low is None else list(self.low)
        labels = None if self.labels is None else list(self.labels)
        return {"name": self.name, "shape": list(self.shape), "low": low, "labels": labels}


def check_variables(variables: Sequence[Variable], num_sites: int) -> tuple[Variable, ...]:
    """Return variables that share out the sites of a domain, each name once."""
    names = [variable.name for variable in variables]
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise DomainError(f"Variables of a domain need different names; got {names}.")
    sizes = [variable.size for variable in variables]
    if sum(sizes) != num_sites:
        raise DomainError(f"Variables of {num_sites} sites must share them out; these have {sizes}.")
    for variable in variables:
        for listed in (variable.low, variable.labels):
            if listed is not None and len(listed) != variable.size:
                raise DomainError(f"{variable.name!r} has {variable.size} sites and {len(listed)} entries.")
    return tuple(variables)


def count_from(low: Sequence[int], levels: np.ndarray, max_levels: int) -> np.ndarray:
    """Return `low + level` of every site in the smallest type of integers."""
    ends = min(low), max(low) + max_levels - 1
    # A type that holds the largest value below zero holds it above zero too.
    kind = np.min_scalar_type(ends[1] if ends[0] >= 0 else min(ends[0], -1 - ends[1]))
    return (levels.astype(np.int64) + np.asarray(low, np.int64)).astype(kind)


class Domain:
    """Sites × levels. Use one of `Binary`, `Spin`, `Ordinal`, `Categorical`, `Permutation`, `Product`.

    Kernels hold a position as one array of sites, whatever the shape and the names of the sites; `unflatten`
    makes of it what a log-density takes.

    Attributes
    ----------
    num_sites
        Number of discrete coordinates.
    num_levels
        Tuple with the number of levels of each site.
    shape
        Shape of one position as kernels hold it; the first axis counts sites.
    site_shape
        Shape in which a log-density sees the sites.
    variables
        Under which names and in which shapes sites are known in stored draws.

    Examples
    --------
    >>> import jax, steppe
    >>> domain: steppe.Domain = steppe.Ordinal(3, 4)
    >>> states = domain.draw(jax.random.key(0), (5,))
    >>> states.shape, domain.contains(states)
    ((5, 3), True)
    >>> domain.num_states, domain.enumerate().shape
    (64, (64, 3))
    """

    num_sites: int
    num_levels: tuple[int, ...]
    shape: tuple[int, ...]
    site_shape: tuple[int, ...]
    variables: tuple[Variable, ...]

    # What the kind of domain is called in files; never changes, whatever the class is called.
    id: ClassVar[str]

    # Whether every site takes any level whatever the others do; orders are the exception.
    is_site_product = True

    def __init__(self, site_shape: tuple[int, ...], num_levels: Sequence[int]) -> None:
        self.site_shape = site_shape
        self.num_sites = math.prod(site_shape)
        self.num_levels = tuple(num_levels)
        self.variables = (Variable("position", site_shape),)

    # ---- sizes -------------------------------------------------------------------------------

    @cached_property
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
        # Powers, not a product site by site: that takes seconds for a million sites.
        return math.prod(levels**number for levels, number in Counter(self.num_levels).items())

    @property
    def squared_unit(self) -> float:
        """Squared length of the shortest move of a site: the scale of step sizes and variances."""
        raise NotImplementedError

    @property
    def level_mask(self) -> np.ndarray:
        """Boolean site × level table of the levels that exist."""
        return np.arange(self.max_levels) < np.asarray(self.num_levels)[:, None]

    @property
    def coordinate_mask(self) -> np.ndarray | None:
        """Which numbers of a position stand for something, of shape `shape`; `None` where all do."""
        return None

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
                f"`{self!r}.enumerate()` would list {show_count(self.num_states)} positions; at most "
                f"{MAX_ENUMERATED} are listed. Sample instead, or use fewer sites."
            )
        levels = np.indices(self.num_levels).reshape(self.num_sites, -1).T
        return self.from_levels(levels)

    def index(self, position: Array) -> Array:
        """Row of `position` in `enumerate()`; leading axes are a batch."""
        if self.num_states > MAX_INDEXED:
            raise DomainError(
                f"`{self!r}.index(...)` numbers {show_count(self.num_states)} positions; at most "
                f"{MAX_INDEXED} fit an index. Compare levels instead."
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

    def levels_at(self, position: Array, sites: Array) -> Array:
        """Levels of some sites of one position, at the cost of those."""
        return self.to_levels(position[sites])

    def from_levels(self, levels: ArrayLike) -> Array:
        """Positions with the given levels."""
        raise NotImplementedError

    def _check_levels(self, levels: ArrayLike) -> Array:
        """Level indices as integers; out of range they are refused where they can be looked at."""
        if not is_concrete(levels):
            return jnp.asarray(levels, jnp.int32)
        given = np.asarray(levels)
        is_whole = given.dtype.kind in "bui" or (given.dtype.kind == "f" and (given == np.round(given)).all())
        if not is_whole or (given < 0).any() or (given >= self._bounds(given)).any():
            raise DomainError(
                f"Levels of {self!r} are integers from 0 to the number of levels of the site less one; "
                f"got {levels!r}."
            )
        return jnp.asarray(given, jnp.int32)

    def _bounds(self, given: np.ndarray) -> Any:
        """Number of levels per site, where the last axis counts sites; else the largest of them."""
        is_by_site = given.ndim > 0 and given.shape[-1] == self.num_sites
        return np.asarray(self.num_levels) if is_by_site else self.max_levels

    @property
    def truncated_sites(self) -> np.ndarray:
        """Sites whose levels go on beyond the last one, which is a cut."""
        return np.zeros(0, int)

    @property
    def num_reals(self) -> int:
        """Number of real coordinates beside the sites; only a `Product` has any."""
        return 0

    @property
    def real_variables(self) -> tuple[Variable, ...]:
        """Under which names and in which shapes real coordinates are known."""
        return ()

    @property
    def real_scales(self) -> np.ndarray:
        """How large every real coordinate typically is."""
        return np.zeros(0)

    def draw_reals(self, key: Array) -> Array:
        """Real coordinates to start from: none."""
        return jnp.zeros(0)

    # ---- names, shapes and values ----------------------------------------------------------------

    @property
    def has_names(self) -> bool:
        """Whether sites have names of their own."""
        return self.variables != (Variable("position", self.site_shape),)

    def with_variables(self, *variables: Variable) -> Self:
        """Return this domain with sites known under other names; nothing else changes."""
        named = copy.copy(self)
        named.variables = check_variables(variables, self.num_sites)
        return named

    @property
    def is_flat(self) -> bool:
        """Whether a log-density takes positions as kernels hold them."""
        return len(self.site_shape) == 1

    def unflatten(self, position: Array) -> Any:
        """A position, or a batch of them, as the log-density takes it."""
        lead = position.shape[: position.ndim - len(self.shape)]
        return position.reshape((*lead, *self.site_shape, *self.shape[1:]))

    def unflatten_levels(self, levels: Array) -> PyTree:
        """Levels of shape `(..., num_sites)` in the shape of the sites, or by name on a `Product`."""
        return levels.reshape((*levels.shape[:-1], *self.site_shape))

    def flatten(self, structured: Any) -> Array:
        """The inverse of `unflatten`: positions, or gradients, as kernels hold them."""
        return flatten_part("A position", self, structured)

    @property
    def value_table(self) -> np.ndarray | None:
        """Values by level, where they are not the levels themselves."""
        return None

    def values(self, levels: np.ndarray) -> dict[str, np.ndarray]:
        """Values of the variables by name, from levels of shape `(..., num_sites)`.

        They are what a site stands for: −1 or +1 of a spin, the real number of an ordered level, the number
        of a category or item.
        """
        ends = np.cumsum([variable.size for variable in self.variables])
        parts = zip(self.variables, np.split(levels, ends[:-1], axis=-1), strict=True)
        return {
            variable.name: self._evaluate(variable, part).reshape((*part.shape[:-1], *variable.shape))
            for variable, part in parts
        }

    def value_table_of(self, variable: Variable) -> np.ndarray | None:
        """Values by level of the sites of one variable, where they are not the levels themselves."""
        return None if variable.low is not None else self.value_table

    def _evaluate(self, variable: Variable, levels: np.ndarray) -> np.ndarray:
        if variable.low is not None:
            return count_from(variable.low, levels, self.max_levels)
        return levels if self.value_table is None else self.value_table[levels]

    @property
    def site_names(self) -> list[str]:
        """Every site by the name of its variable and its place in it."""
        return [name for variable in self.variables for name in variable.site_names]

    # ---- geometry of one-site moves ------------------------------------------------------------

    def slopes(self, position: Array, gradient: Array) -> Array:
        """Table `gradient_i · (level_k − position_i)`, site × level."""
        raise NotImplementedError

    def squared_jumps(self, position: Array) -> Array:
        """Table `|level_k − position_i|²`, site × level."""
        raise NotImplementedError

    def points(self, site: int) -> np.ndarray:
        """Embedding of the levels of one site, level × coordinate."""
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
        described: dict[str, object] = {"id": self.id, "shape": list(self.site_shape)}
        if self.has_names:
            described["variables"] = [variable.to_json() for variable in self.variables]
        return described

    def _identity(self) -> tuple[Any, ...]:
        # Names are labels: they change nothing that is computed.
        return (self.id, self.site_shape, self.num_levels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def to_site_shape(given: Any) -> tuple[int, ...]:
    """Return a number of sites, or a shape of them, as a shape."""
    if not isinstance(given, tuple | list):
        shape = (count("num_sites", given, error=DomainError, remedy=""),)
    elif not given:
        raise DomainError(f"`num_sites` must be an integer of at least 1, or a shape of them; got {given!r}.")
    else:
        shape = tuple(
            count(f"num_sites[{axis}]", size, error=DomainError, remedy="") for axis, size in enumerate(given)
        )
    if math.prod(shape) > MAX_SITES:  # before anything is made of that size
        raise DomainError(f"`num_sites` must be at most {MAX_SITES}; got {show_count(math.prod(shape))}.")
    return shape


def show_count(number: int) -> str:
    """Return a whole number of any size to three digits."""
    exponent = math.floor(number.bit_length() * math.log10(2))
    return f"{number:.3g}" if exponent < 300 else f"about 1e{exponent}"


def show_sites(site_shape: tuple[int, ...]) -> str:
    """Return a shape as it is written in the call that made the domain."""
    return str(site_shape[0]) if len(site_shape) == 1 else str(site_shape)


def flatten_part(name: str, domain: Domain, structured: Any) -> Array:
    """Return an array with the sites of a domain on one axis, or say which shape was wanted."""
    wanted = (*domain.site_shape, *domain.shape[1:])
    try:
        array = jnp.asarray(structured, jnp.result_type(float))
    except (TypeError, ValueError) as error:
        raise DomainError(f"{name} must be an array of shape {wanted}; got {structured!r}.") from error
    lead = array.shape[: array.ndim - len(wanted)]
    if array.shape != (*lead, *wanted):
        raise DomainError(f"{name} must have shape {wanted}; got {array.shape}.")
    return array.reshape((*lead, *domain.shape))
