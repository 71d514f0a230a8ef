"""Colouring of sites: those of one colour stand side by side, with lists of their neighbours."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.target.interactions import Interactions, color_sites

# Colours above which several share one loop of the program: each that stands in it alone takes up to a second
# to compile.
MAX_UNROLLED = 12
# Places of a loop over colours, the empty ones included, per place that is filled.
MAX_PADDING = 1.3


class Color(eqx.Module):
    """Sites of one colour, which stand side by side.

    Attributes
    ----------
    sites
        Their numbers.
    neighbours
        Places of their neighbours, of shape `(slots, size)`, those of earlier colours first; where a site has
        fewer, the place behind the last site.
    strengths
        Where the strengths of these bonds stand, or `None` where there is one for all.
    start, num_earlier
        Their first place; slots with neighbours of earlier colours.
    """

    sites: Array
    neighbours: Array
    strengths: Array | None
    start: int = eqx.field(static=True)
    num_earlier: int = eqx.field(static=True)

    def slice(self, values: Array) -> Array:
        """What stands at these sites, of values sorted by colour."""
        return values[self.start : self.start + len(self.sites)]

    def write(self, values: Array, new: Array) -> Array:
        """Put new values at these sites."""
        return jax.lax.dynamic_update_slice(values, new, (self.start, 0))

    def keep_own(self, terms: Array) -> Array:
        """Terms of these sites: all there are."""
        return terms


class PaddedColor(eqx.Module):
    """A colour among several of one shape, all of which a loop goes through; with an axis in front, all.

    Attributes
    ----------
    sites, neighbours, strengths
        As of a `Color`; behind its last site anything.
    start, size
        Its first place and its number of sites.
    num_earlier
        Slots with neighbours of earlier colours.
    """

    sites: Array
    neighbours: Array
    strengths: Array | None
    start: Array
    size: Array
    num_earlier: int = eqx.field(static=True)

    def slice(self, values: Array) -> Array:
        """What stands at these sites and at as many behind as are missing."""
        return jax.lax.dynamic_slice_in_dim(values, self.start, len(self.sites))

    def write(self, values: Array, new: Array) -> Array:
        """Put new values at these sites, and leave those behind."""
        kept = jnp.where(self._is_own, new, self.slice(values))
        return jax.lax.dynamic_update_slice(values, kept, (self.start, jnp.zeros_like(self.start)))

    def keep_own(self, terms: Array) -> Array:
        """Terms of these sites, 0 behind."""
        return jnp.where(self._is_own, terms, 0)

    @property
    def _is_own(self) -> Array:
        return jnp.arange(len(self.sites))[:, None] < self.size


class Coloring(eqx.Module):
    """Sites sorted by colour.

    Attributes
    ----------
    order, places
        `order[place]` is a site, `places[site]` its place.
    colors
        The colours.
    stacks
        The same where they are many: colours in a row that share a loop, each stack with an axis in front.
    """

    order: Array
    places: Array
    colors: tuple[Color, ...]
    stacks: tuple[PaddedColor, ...] = ()

    @property
    def num_behind(self) -> int:
        """Places that are needed behind the last site."""
        return max((stack.sites.shape[1] for stack in self.stacks), default=1)


def make_coloring(interactions: Interactions, num_sites: int) -> Coloring:
    """Colour the sites and list their neighbours."""
    sources, ends = np.asarray(interactions.sources), np.asarray(interactions.ends)
    colors = color_sites(Interactions(sources, ends), num_sites)
    order = np.argsort(colors, kind="stable")
    places = np.argsort(order)
    is_later = colors[sources] > colors[ends]
    bonds = np.lexsort((is_later, places[ends]))
    sources, ends, is_later = sources[bonds], ends[bonds], is_later[bonds]
    counts = np.stack(
        [np.bincount(places[ends[mask]], minlength=num_sites) for mask in (~is_later, is_later)]
    )
    first = np.cumsum(counts.sum(0)) - counts.sum(0)
    slots = np.arange(len(ends)) - first[places[ends]]  # earlier ones first, then later ones
    made, start = [], 0
    for size in np.bincount(colors):
        here = slice(start, start + size)
        num_earlier, num_later = counts[:, here].max(axis=1)
        own = (places[ends] >= start) & (places[ends] < start + size)
        columns = places[ends[own]] - start
        rows = np.where(is_later[own], num_earlier + slots[own] - counts[0, places[ends[own]]], slots[own])
        shape = num_earlier + num_later, size
        neighbours, strengths = np.full(shape, num_sites), None
        neighbours[rows, columns] = places[sources[own]]
        if interactions.places is not None:
            strengths = np.zeros(shape, int)
            strengths[rows, columns] = np.asarray(interactions.places)[bonds][own]
            strengths = jnp.asarray(strengths, jnp.int32)
        sites = jnp.asarray(order[here], jnp.int32)
        neighbours = jnp.asarray(neighbours, jnp.int32)
        made.append(Color(sites, neighbours, strengths, start, int(num_earlier)))
        start += int(size)
    stacks = _stack(made, num_sites) if len(made) > MAX_UNROLLED else ()
    return Coloring(jnp.asarray(order, jnp.int32), jnp.asarray(places, jnp.int32), tuple(made), stacks)


def _stack(colors: list[Color], num_sites: int) -> tuple[PaddedColor, ...]:
    """Put colours in a row together while padding them to one shape costs little."""
    stacks, group = [], colors[:1]
    for color in colors[1:]:
        if _measure_padding([*group, color]) > MAX_PADDING:
            stacks.append(_pad(group, num_sites))
            group = []
        group.append(color)
    return (*stacks, _pad(group, num_sites))


def _measure_padding(colors: list[Color]) -> float:
    shape = np.max([color.neighbours.shape for color in colors], axis=0)
    return len(colors) * shape.prod() / max(sum(color.neighbours.size for color in colors), 1)


def _pad(colors: list[Color], num_sites: int) -> PaddedColor:
    size = max(len(color.sites) for color in colors)
    num_earlier = max(color.num_earlier for color in colors)
    num_later = max(len(color.neighbours) - color.num_earlier for color in colors)

    def pad(slots: Array, color: Color, fill: int) -> np.ndarray:
        padded = np.full((num_earlier + num_later, size), fill, np.int32)
        early, late = np.split(np.asarray(slots), [color.num_earlier])
        padded[: len(early), : len(color.sites)] = early
        padded[num_earlier : num_earlier + len(late), : len(color.sites)] = late
        return padded

    sites = [np.resize(np.asarray(color.sites), size) for color in colors]
    strengths = [pad(color.strengths, color, 0) for color in colors if color.strengths is not None]
    return PaddedColor(
        sites=jnp.asarray(np.stack(sites), jnp.int32),
        neighbours=jnp.asarray(np.stack([pad(color.neighbours, color, num_sites) for color in colors])),
        strengths=jnp.asarray(np.stack(strengths)) if strengths else None,
        start=jnp.asarray([color.start for color in colors], jnp.int32),
        size=jnp.asarray([len(color.sites) for color in colors], jnp.int32),
        num_earlier=num_earlier,
    )
