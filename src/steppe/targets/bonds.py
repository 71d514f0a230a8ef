"""Bonds: which sites are bound to which, and how strongly; a symmetric matrix `J` in three forms.

All three answer the same questions. `sums(values)` is `J @ values` for values of shape
`(num_sites, ...)`; `batched_sums` the same for a stack of them. For moves of single sites, `init_cache`
makes what must be remembered, `sums_at(cache, read, sites)` gives a few rows of `J @ values`, where
`read(sites)` looks values up, and `update_cache(cache, site, value)` keeps the cache in step.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import materialize
from steppe.errors import TargetError
from steppe.pytree import is_concrete
from steppe.target.interactions import Interactions

Read = Callable[[Array], Array]


class Remembered(NamedTuple):
    """`J @ values`, and the values: a position is not read while it is written, which would copy it."""

    sums: Array
    values: Array

    def replace(self, site: Array, value: Array) -> tuple[Array, Array]:
        """Return the values with a new one at a site, and the difference there."""
        # Looked up by itself, and what is written depends on it: otherwise XLA would copy all values.
        old = materialize(lambda values, site: values[site], self.values, site)
        change = value - old
        return self.values.at[site].set(old + change), change


# What is remembered of `J @ values`: all of it, or nothing.
Sums = Remembered | tuple[()]

# A padded neighbour list holds `num_sites · largest degree` entries. On one core with 100 chains, adding its
# columns one after another was 6 times as fast as a sum by segments while about half of it was in use, and
# half as fast where a quarter was.
MAX_PADDING_OF_SUMS = 2
# For single sites the list only has to fit in memory; a graph with a hub would not.
MAX_PADDING_OF_LISTS = 16
# Neighbours that are too many to be added up again for every site, if half as many are usual: with fewer,
# sites change so often that colours are faster (G1 has 48 on average, G14 12 and at most 132).
MANY_NEIGHBOURS = 128


class Bonds(eqx.Module):
    """A symmetric matrix `J` without diagonal."""

    @property
    def has_memory(self) -> bool:
        """Whether `J @ values` is remembered and kept in step with single changes."""
        return False

    @property
    def lists_neighbours(self) -> bool:
        """Whether the neighbours of one site can be had without looking at all bonds."""
        return True

    @property
    def strengths(self) -> Array:
        """The strengths of all bonds: one number, or an array in which `pairs` finds that of each."""
        raise NotImplementedError

    def pairs(self) -> Interactions:
        """Return the bonds one by one, in both directions."""
        if not is_concrete(self):
            raise TargetError(
                "The bonds of this target are being traced, so that it cannot be seen which sites interact. "
                "Build the sampler outside of `jax.jit` and pass it in."
            )
        return self._pairs()

    def _pairs(self) -> Interactions:
        raise NotImplementedError

    def sums(self, values: Array) -> Array:
        """`J @ values`."""
        raise NotImplementedError

    def sum_batch(self, stack: Array) -> Array:
        """`J @ values` for every position of a stack."""
        return jax.vmap(self.sums)(stack)

    def init_cache(self, values: Array) -> Sums:
        """Remember nothing: sums at a site are cheap to make anew from its few neighbours."""
        return ()

    def sums_at(self, cache: Sums, read: Read, sites: Array) -> Array:
        """`J @ values` at a few sites."""
        raise NotImplementedError

    def update_cache(self, cache: Sums, site: Array, value: Array) -> Sums:
        """Remember nothing."""
        return cache


class DenseBonds(Bonds):
    """A full matrix. Remembers `J @ values`, so that one row is added per change."""

    matrix: Array

    @property
    def has_memory(self) -> bool:
        """Yes."""
        return True

    @property
    def strengths(self) -> Array:
        """The matrix, row after row."""
        return self.matrix.reshape(-1)

    def _pairs(self) -> Interactions:
        ends, sources = np.nonzero(np.asarray(self.matrix))
        return Interactions(sources, ends, ends * len(self.matrix) + sources)

    def sums(self, values: Array) -> Array:
        """`J @ values`."""
        return jnp.matmul(self.matrix, values, precision="highest")

    def init_cache(self, values: Array) -> Sums:
        """Remember all sums."""
        return Remembered(self.sums(values), values)

    def sums_at(self, cache: Sums, read: Read, sites: Array) -> Array:
        """Look the sums up."""
        assert isinstance(cache, Remembered)
        return cache.sums[sites]

    def update_cache(self, cache: Sums, site: Array, value: Array) -> Sums:
        """Add the row of the changed site."""
        assert isinstance(cache, Remembered)
        values, change = cache.replace(site, value)
        return Remembered(cache.sums + _as_column(self.matrix[site], cache.sums.ndim) * change, values)


class LatticeBonds(Bonds):
    """A rectangular lattice of any dimension with one coupling, as a stencil.

    Every site is bound to the next one along every axis of length two or more.

    Attributes
    ----------
    coupling
        The strength of every bond.
    shape
        Length along each axis; sites are numbered with the last axis fastest.
    periodic
        Whether the last site of an axis is bound to the first.
    """

    coupling: Array
    shape: tuple[int, ...] = eqx.field(static=True)
    periodic: bool = eqx.field(static=True)

    @property
    def strengths(self) -> Array:
        """One for all bonds."""
        return self.coupling

    def pairs(self) -> Interactions:
        """Return the bonds one by one, in both directions; the shape says all about them."""
        size = int(np.prod(self.shape))
        pairs = [np.zeros((2, 0), int)]
        for _, length, stride in self._axes(size):
            sites = np.arange(size)
            place = (sites // stride) % length
            following = sites + stride * ((place + 1) % length - place)
            pairs.append(np.stack([sites, following])[:, self.periodic | (place < length - 1)])
        first, second = np.concatenate(pairs, axis=1)
        return Interactions(np.concatenate([first, second]), np.concatenate([second, first]))

    def sums(self, values: Array) -> Array:
        """Sum over the neighbours of every site."""
        return materialize(partial(LatticeBonds._sums, self), values)

    def _sums(self, values: Array) -> Array:
        # One wrapped copy of the flattened array, read at shifted offsets: long contiguous runs, which
        # is what vectorises. Only the ends of an axis need another offset, chosen by a constant mask.
        size, width = values.size, values.size // self.shape[0]
        flat = values.reshape(-1)
        padded = jnp.concatenate([flat[size - width :], flat, flat[:width]])
        total = jnp.zeros_like(flat)
        for axis, length, stride in self._axes(size):
            place = (np.arange(size) // stride) % length
            for shift, is_end in ((stride, place == length - 1), (-stride, place == 0)):
                neighbour = padded[width + shift : width + shift + size]
                if not self.periodic:
                    neighbour = jnp.where(is_end, 0, neighbour)
                elif axis > 0:
                    back = width - shift * (length - 1)
                    neighbour = jnp.where(is_end, padded[back : back + size], neighbour)
                total += neighbour
        return self.coupling * total.reshape(values.shape)

    def sums_at(self, cache: Sums, read: Read, sites: Array) -> Array:
        """Sum over the neighbours of a few sites."""
        total = jnp.zeros_like(read(sites))
        for _, length, stride in self._axes(int(np.prod(self.shape))):
            place = (sites // stride) % length
            for step, is_end in ((1, place == length - 1), (-1, place == 0)):
                wrapped = sites + stride * ((place + step) % length - place)
                values = read(wrapped)
                is_open = jnp.logical_and(not self.periodic, is_end)
                total += jnp.where(_as_column(is_open, values.ndim), 0, values)
        return self.coupling * total

    def _axes(self, size: int) -> Iterator[tuple[int, int, int]]:
        """Axis, length and stride in a flat array of the given size, of every axis that has bonds."""
        stride = size
        for axis, length in enumerate(self.shape):
            stride //= length
            if length > 1:
                yield axis, length, stride


class Lists(NamedTuple):
    """Neighbours and strengths of shape `(largest degree, num_sites)`.

    A site with fewer neighbours has itself in their place, with strength 0.
    """

    neighbours: Array
    strengths: Array


class Arrows(NamedTuple):
    """Every bond in both directions, sorted by the site it ends at."""

    sources: Array
    ends: Array
    strengths: Array


class GraphBonds(Bonds):
    """A sparse graph, made by `graph_bonds`.

    Attributes
    ----------
    lists
        Padded lists of neighbours; `None` if a site with very many would make them too long.
    arrows
        All bonds one by one; `None` where lists are hardly padded and sums are made from them.
    num_sites
        Number of sites.
    rows
        The lists with a row per site, where sites have so many neighbours that sums are remembered: what is
        far apart in memory would be looked up for every change.
    """

    lists: Lists | None
    arrows: Arrows | None
    num_sites: int = eqx.field(static=True)
    rows: Lists | None = None

    @property
    def lists_neighbours(self) -> bool:
        """Whether the neighbours of one site can be had without looking at all bonds."""
        return self.lists is not None

    @property
    def has_memory(self) -> bool:
        """Where sites have many neighbours."""
        return self.rows is not None

    @property
    def strengths(self) -> Array:
        """Those of the lists, slot after slot; without lists, those of the arrows."""
        if self.lists is not None:
            return self.lists.strengths.reshape(-1)
        assert self.arrows is not None
        return self.arrows.strengths

    def _pairs(self) -> Interactions:
        if self.lists is None:
            assert self.arrows is not None
            sources, ends = np.asarray(self.arrows.sources), np.asarray(self.arrows.ends)
            return Interactions(sources, ends, np.arange(len(ends)))
        neighbours = np.asarray(self.lists.neighbours)
        slots, ends = np.nonzero(neighbours != np.arange(self.num_sites))
        return Interactions(neighbours[slots, ends], ends, slots * self.num_sites + ends)

    def sums(self, values: Array) -> Array:
        """Sum over the neighbours of every site."""
        if self.arrows is None:
            return self._sums_of_lists(values)
        sources, ends, strengths = self.arrows
        flows = _as_column(strengths, values.ndim) * values[sources]
        return jax.ops.segment_sum(flows, ends, self.num_sites, indices_are_sorted=True)

    def sum_batch(self, stack: Array) -> Array:
        """The same for every position of a stack, with the stack as the fastest axis: rows vectorise."""
        if self.arrows is not None:
            return jax.vmap(self.sums)(stack)
        return jnp.moveaxis(self.sums(jnp.moveaxis(stack, 0, -1)), -1, 0)

    def _sums_of_lists(self, values: Array) -> Array:
        values = jnp.asarray(values)  # a NumPy position cannot be indexed by what is being traced

        def add(total: Array, column: Lists) -> tuple[Array, None]:
            return total + _as_column(column.strengths, values.ndim) * values[column.neighbours], None

        return jax.lax.scan(add, jnp.zeros_like(values), self.lists)[0]

    def init_cache(self, values: Array) -> Sums:
        """Remember all sums where sites have many neighbours."""
        return Remembered(self.sums(values), values) if self.has_memory else ()

    def update_cache(self, cache: Sums, site: Array, value: Array) -> Sums:
        """Let the neighbours of the changed site know."""
        if not isinstance(cache, Remembered):
            return cache
        assert self.rows is not None
        neighbours, strengths = (array[site] for array in self.rows)
        values, change = cache.replace(site, value)
        return Remembered(
            cache.sums.at[neighbours].add(_as_column(strengths, cache.sums.ndim) * change), values
        )

    def sums_at(self, cache: Sums, read: Read, sites: Array) -> Array:
        """Sum over the neighbours of a few sites."""
        if isinstance(cache, Remembered):
            return cache.sums[sites]
        assert self.lists is not None
        values = read(self.lists.neighbours[:, sites])
        return jnp.sum(_as_column(self.lists.strengths[:, sites], values.ndim) * values, axis=0)


def graph_bonds(edges: np.ndarray, weights: Array, num_sites: int) -> GraphBonds:
    """Bonds from checked edges of shape `(num_edges, 2)`; parallel edges add up."""
    sources, ends = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.argsort(ends, kind="stable")
    sources, ends = sources[order], ends[order]
    strengths = weights[order % max(len(edges), 1)]
    degrees = np.bincount(ends, minlength=num_sites)
    padding = num_sites * max(int(degrees.max()), 1) / max(len(ends), num_sites)
    lists = arrows = rows = None
    if padding <= MAX_PADDING_OF_LISTS:
        lists = _pad_lists(sources, ends, degrees, strengths)
        if len(lists.neighbours) > MANY_NEIGHBOURS and degrees.mean() > MANY_NEIGHBOURS / 2:
            rows = Lists(*(cast("Array", array.T.copy()) for array in lists))
    if padding > MAX_PADDING_OF_SUMS:
        arrows = Arrows(_indices(sources), _indices(ends), strengths)
    return GraphBonds(lists, arrows, num_sites, rows)


def _pad_lists(sources: np.ndarray, ends: np.ndarray, degrees: np.ndarray, strengths: Array) -> Lists:
    first = np.cumsum(degrees) - degrees
    slots = np.arange(len(ends)) - first[ends]
    shape = (max(int(degrees.max()), 1), len(degrees))
    neighbours = np.tile(np.arange(len(degrees)), (shape[0], 1))  # padded with the site itself
    neighbours[slots, ends] = sources
    return Lists(_indices(neighbours), scatter(shape, (slots, ends), strengths))


def _indices(places: np.ndarray) -> Array:
    return cast("Array", places.astype(np.int32))


def scatter(shape: tuple[int, ...], where: tuple[np.ndarray, ...], values: Array) -> Array:
    """An array of zeros with values added at some places; of NumPy unless the values are traced."""
    if not isinstance(values, np.ndarray):
        return jnp.zeros(shape, values.dtype).at[where].add(values)
    array = np.zeros(shape, values.dtype)
    np.add.at(array, where, values)
    return cast("Array", array)


def _as_column(array: Array, ndim: int) -> Array:
    """Add axes at the end, to stand beside values that have more of them."""
    return array.reshape(array.shape + (1,) * (ndim - array.ndim))
