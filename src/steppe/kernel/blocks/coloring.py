"""Colouring of sites: those of one colour stand side by side, with lists of their neighbours."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.target.interactions import Interactions, color_sites


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


class Coloring(eqx.Module):
    """Sites sorted by colour: `order[place]` is a site, `places[site]` its place."""

    order: Array
    places: Array
    colors: tuple[Color, ...]


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
    return Coloring(jnp.asarray(order, jnp.int32), jnp.asarray(places, jnp.int32), tuple(made))
