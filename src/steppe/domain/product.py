"""Products of named domains: a log-density takes a dictionary of arrays, kernels one array of sites.

Every level of a site is a point: a number where all parts have real levels, else a row. A site with real
levels then uses the first entry of its row, a category has a one among the entries. The formulas of all other
domains are this one table of points, written out.

Real coordinates are no sites: they stand beside them in an array of their own, and whatever speaks here of
sites, levels or positions means the discrete parts.
"""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.domain.base import RESERVED, Domain, Variable, flatten_part
from steppe.domain.categorical import Categorical
from steppe.domain.coordinates import Real
from steppe.domain.real import Ordinal
from steppe.errors import DomainError

Part = Ordinal | Categorical
Coordinates = TypeVar("Coordinates", Array, np.ndarray)


class Product(Domain):
    """Named parts side by side: `Product(a=Binary(3), b=Ordinal((2, 2), 3), c=Categorical(4, 5))`.

    A log-density takes a dictionary with an array for every part, as it would take it of that domain alone;
    stored draws have a variable for every part. All samplers of single sites apply.

    Parameters
    ----------
    parts
        Domains by name: any of `Binary`, `Spin`, `Ordinal` and `Categorical`, with or without a shape; and
        `Real` for real coordinates, which `steppe.mixed` moves.

    Examples
    --------
    >>> import jax.numpy as jnp, steppe
    >>> domain = steppe.Product(on=steppe.Binary(3), size=steppe.Ordinal(3, 4))
    >>> target = steppe.Target(lambda x: jnp.sum(x["on"] * x["size"]), domain)
    """

    id = "product"

    def __init__(self, **parts: Domain | Real) -> None:
        checked = {name: _check_part(name, part) for name, part in parts.items()}
        self.parts = {name: part for name, part in checked.items() if not isinstance(part, Real)}
        self.real_parts = {name: part for name, part in checked.items() if isinstance(part, Real)}
        self._names = tuple(parts)
        if not parts:
            raise DomainError("`Product()` has no parts; give at least one, as `Product(a=Binary(3))`.")
        if not self.parts:
            raise DomainError(
                f"`Product` of {[*parts]} has real parts only; give a discrete one, as `z=Binary(3)`. For "
                "real coordinates alone use a package for them, such as BlackJAX."
            )
        counts = [count for part in self.parts.values() for count in part.num_levels]
        super().__init__((len(counts),), counts)
        widths = [part.max_levels for part in self.parts.values() if len(part.shape) == 2]
        self.shape = (self.num_sites, max(widths)) if widths else (self.num_sites,)
        self.variables = tuple(Variable(name, part.site_shape) for name, part in self.parts.items())

    # ---- names and shapes ----------------------------------------------------------------------

    @property
    def has_names(self) -> bool:
        """Always: parts have names."""
        return True

    @property
    def is_flat(self) -> bool:
        """Never: a log-density takes a dictionary."""
        return False

    def unflatten(self, position: Array) -> dict[str, Array]:
        """A position, or a batch of them, as a dictionary of arrays."""
        found, lead = {}, position.shape[: position.ndim - len(self.shape)]
        for name, part, sites in self._places:
            inside = (sites, slice(None)) if self._has_rows else (sites,)
            block = position[(..., *inside)]
            if self._has_rows:
                block = block[..., 0] if len(part.shape) == 1 else block[..., : part.max_levels]
            found[name] = block.reshape((*lead, *part.site_shape, *part.shape[1:]))
        return found

    def unflatten_levels(self, levels: Array) -> dict[str, Array]:
        """Levels of every part by name."""
        return {
            name: levels[..., sites].reshape((*levels.shape[:-1], *part.site_shape))
            for name, part, sites in self._places
        }

    def flatten(self, structured: Mapping[str, Any]) -> Array:
        """The inverse of `unflatten`."""
        is_mapping = isinstance(structured, Mapping)
        if not is_mapping or structured.keys() - self.real_parts.keys() != self.parts.keys():
            given = sorted(structured) if is_mapping else structured
            raise DomainError(
                f"A position is a dictionary with an array for each of {[*self.parts]}; got {given!r}."
            )
        blocks = [flatten_part(f"Part {name!r}", part, structured[name]) for name, part, _ in self._places]
        leads = {
            block.shape[: block.ndim - len(part.shape)]
            for block, (_, part, _) in zip(blocks, self._places, strict=True)
        }
        if len(leads) > 1:
            raise DomainError(f"Parts of a position must have the same leading axes; got {sorted(leads)}.")
        if self._has_rows:
            blocks = [
                self._to_rows(block, part) for block, (_, part, _) in zip(blocks, self._places, strict=True)
            ]
        return jnp.concatenate(blocks, axis=-2 if self._has_rows else -1)

    def _to_rows(self, block: Array, part: Part) -> Array:
        rows = block[..., None] if len(part.shape) == 1 else block
        missing = self.shape[1] - rows.shape[-1]
        return jnp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)])

    def values(self, levels: np.ndarray) -> dict[str, np.ndarray]:
        """Values of the parts by name, from levels of shape `(..., num_sites)`."""
        return {
            name: part.values(levels[..., sites].astype(part.level_dtype, copy=False))["position"]
            for name, part, sites in self._places
        }

    def value_table_of(self, variable: Variable) -> np.ndarray | None:
        return self.parts[variable.name].value_table

    @property
    def truncated_sites(self) -> np.ndarray:
        """Those of all parts."""
        return np.concatenate([sites.start + part.truncated_sites for _, part, sites in self._places])

    # ---- real coordinates ------------------------------------------------------------------------

    @property
    def num_reals(self) -> int:
        """Number of real coordinates beside the sites."""
        return sum(part.size for part in self.real_parts.values())

    @property
    def real_variables(self) -> tuple[Variable, ...]:
        """Under which names and in which shapes real coordinates are known."""
        return tuple(part.name(name) for name, part in self.real_parts.items())

    @property
    def real_scales(self) -> np.ndarray:
        """How large every real coordinate typically is."""
        parts = self.real_parts.values()
        return np.concatenate([np.zeros(0), *(np.full(part.size, part.scale) for part in parts)])

    @cached_property
    def discrete(self) -> "Product":
        """The product of the discrete parts."""
        return Product(**self.parts) if self.real_parts else self

    def draw_reals(self, key: Array) -> Array:
        """Real coordinates to start from: their scale times standard normals."""
        dtype = jnp.result_type(float)
        return jnp.asarray(self.real_scales, dtype) * jax.random.normal(key, (self.num_reals,), dtype)

    def unflatten_reals(self, reals: Coordinates) -> dict[str, Coordinates]:
        """Real coordinates on one axis, with any axes before it, as a dictionary of arrays."""
        ends = np.cumsum([part.size for part in self.real_parts.values()])
        blocks = np.split(np.arange(self.num_reals), ends[:-1])
        return {
            name: reals[..., block].reshape((*reals.shape[:-1], *part.shape))
            for (name, part), block in zip(self.real_parts.items(), blocks, strict=True)
        }

    def flatten_reals(self, structured: Mapping[str, ArrayLike]) -> Array:
        """The inverse of `unflatten_reals`; other names are left alone."""
        missing = self.real_parts.keys() - structured.keys()
        if missing:
            raise DomainError(
                f"The real parts are {[*self.real_parts]}; {sorted(missing)} is missing among "
                f"{sorted(structured)}."
            )
        blocks = []
        for name, part in self.real_parts.items():
            array = jnp.asarray(structured[name], jnp.result_type(float))
            lead = array.shape[: array.ndim - len(part.shape)]
            if array.shape != (*lead, *part.shape):
                raise DomainError(f"Part {name!r} must have shape {part.shape}; got {array.shape}.")
            blocks.append(array.reshape((*lead, part.size)))
        return jnp.concatenate(blocks, axis=-1)

    # ---- geometry ------------------------------------------------------------------------------

    @property
    def squared_unit(self) -> float:
        """That of the part with the shortest moves."""
        return min(part.squared_unit for part in self.parts.values())

    @property
    def coordinate_mask(self) -> np.ndarray | None:
        if not self._has_rows:
            return None
        widths = [1 if real else count for real, count in zip(self._is_real, self.num_levels, strict=True)]
        mask = np.arange(self.shape[1]) < np.asarray(widths)[:, None]
        return None if mask.all() else mask

    def is_member(self, position: np.ndarray) -> np.ndarray:
        points = self._points.astype(jnp.result_type(float))
        is_point = np.expand_dims(position.astype(points.dtype), -2 if self._has_rows else -1) == points
        is_level = is_point.all(axis=-1) if self._has_rows else is_point
        return (is_level & self.level_mask).any(axis=-1)

    def to_levels(self, position: Array) -> Array:
        return self._levels_of(position, np.arange(self.num_sites))

    def levels_at(self, position: Array, sites: Array) -> Array:
        return self._levels_of(position[sites], sites)

    def _levels_of(self, position: Array, sites: Any) -> Array:
        real = position[..., 0] if self._has_rows else position
        levels = jnp.sum(real[..., None] > jnp.asarray(self._midpoints, real.dtype)[sites], axis=-1)
        if self._has_rows:
            levels = jnp.where(jnp.asarray(self._is_real)[sites], levels, jnp.argmax(position, axis=-1))
        return levels.astype(self.level_dtype)

    def from_levels(self, levels: ArrayLike) -> Array:
        return self._at(np.arange(self.num_sites), self._check_levels(levels))

    def slopes(self, position: Array, gradient: Array) -> Array:
        change = self._changes(position)
        return jnp.sum(gradient[:, None] * change, axis=-1) if self._has_rows else gradient[:, None] * change

    def squared_jumps(self, position: Array) -> Array:
        squares = jnp.square(self._changes(position))
        return jnp.sum(squares, axis=-1) if self._has_rows else squares

    def points(self, site: int) -> np.ndarray:
        return self._points[site, : self.num_levels[site]].reshape(self.num_levels[site], -1)

    def differs(self, first: Array, second: Array) -> Array:
        return jnp.any(first != second, axis=-1) if self._has_rows else first != second

    def replace_sites(self, position: Array, sites: Array, levels: Array) -> Array:
        return position.at[sites].set(self._at(sites, jnp.asarray(levels, jnp.int32)))

    @property
    def squared_flip(self) -> Any:
        """One number, or one per site where parts differ."""
        squares = np.square(self._points[:, 1] - self._points[:, 0])
        lengths = squares.sum(axis=-1) if self._has_rows else squares
        if (lengths == lengths[0]).all():
            return float(lengths[0])
        return lengths.astype(jnp.result_type(float))

    def flip_slopes(self, position: Array, gradient: Array) -> Array:
        sums = (self._points[:, 0] + self._points[:, 1]).astype(position.dtype)
        terms = gradient * (sums - 2 * position)
        return jnp.sum(terms, axis=-1) if self._has_rows else terms

    def flip(self, position: Array, sites: Array) -> Array:
        low, high = (self._points[:, level].astype(position.dtype) for level in (0, 1))
        is_low, flips = position == low, sites
        if self._has_rows:
            is_low, flips = jnp.all(is_low, axis=-1, keepdims=True), sites[..., None]
        return jnp.where(flips, jnp.where(is_low, high, low), position)

    # ---- inside --------------------------------------------------------------------------------

    @property
    def _has_rows(self) -> bool:
        return len(self.shape) == 2

    @cached_property
    def _places(self) -> list[tuple[str, Part, slice]]:
        """Parts with the sites they take."""
        ends = np.cumsum([part.num_sites for part in self.parts.values()]).tolist()
        parts = zip(self.parts.items(), ends, strict=True)
        return [(name, part, slice(end - part.num_sites, end)) for (name, part), end in parts]

    @cached_property
    def _is_real(self) -> np.ndarray:
        return np.concatenate([np.full(part.num_sites, len(part.shape) == 1) for _, part, _ in self._places])

    @cached_property
    def _points(self) -> np.ndarray:
        """Every level of every site, (site, level) or (site, level, entry of the row).

        Levels a site does not have are points beyond its last one, so that they are never taken for another.
        """
        points = np.zeros((self.num_sites, self.max_levels, *self.shape[1:]))
        for _, part, sites in self._places:
            if isinstance(part, Categorical):
                points[sites, : part.max_levels, : part.max_levels] = np.eye(part.max_levels)
                points[sites, part.max_levels :, 0] = 2.0 + np.arange(self.max_levels - part.max_levels)
            else:
                beyond = part.levels[-1] + 1.0 + np.arange(self.max_levels - part.max_levels)
                numbers = points[..., 0] if self._has_rows else points
                numbers[sites] = np.concatenate([part.levels, beyond])
        return points

    @cached_property
    def _midpoints(self) -> np.ndarray:
        """Between neighbouring levels of real sites; infinite where there is no level above."""
        numbers = self._points[..., 0] if self._has_rows else self._points
        return np.where(self.level_mask[:, 1:], (numbers[:, 1:] + numbers[:, :-1]) / 2, math.inf)

    def _at(self, sites: Any, levels: Array) -> Array:
        return jnp.asarray(self._points, jnp.result_type(float))[sites, levels]

    def _changes(self, position: Array) -> Array:
        return jnp.asarray(self._points, position.dtype) - position[:, None]

    def to_json(self) -> dict[str, object]:
        """Id and parts, in order."""
        return {"id": self.id, "parts": [[name, part.to_json()] for name, part in self._in_order]}

    def _identity(self) -> tuple[Any, ...]:
        return (self.id, *self._in_order)

    @property
    def _in_order(self) -> list[tuple[str, Part | Real]]:
        """All parts as they were given."""
        every = {**self.parts, **self.real_parts}
        return [(name, every[name]) for name in self._names]

    def __repr__(self) -> str:
        return f"Product({', '.join(f'{name}={part!r}' for name, part in self._in_order)})"


def _check_part(name: str, part: Any) -> Part | Real:
    if not name.isidentifier() or name in RESERVED:
        raise DomainError(
            f"`Product` cannot call a part {name!r}: names are identifiers, and {', '.join(RESERVED)} are "
            "taken."
        )
    if isinstance(part, Real):
        return part
    if isinstance(part, Product):
        raise DomainError(f"`Product({name}=...)` is a product itself; give its parts side by side.")
    if not isinstance(part, Domain):
        raise DomainError(f"`Product({name}=...)` must be a domain such as `steppe.Binary(3)`; got {part!r}.")
    if not isinstance(part, Ordinal | Categorical):
        raise DomainError(
            f"`Product({name}={part!r})`: no sampler moves a permutation beside other sites yet. Use it "
            "alone, with `informed_permutation()` or `uniform_permutation()`."
        )
    return part.with_variables(Variable("position", part.site_shape))
