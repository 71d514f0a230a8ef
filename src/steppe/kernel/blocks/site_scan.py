"""Scan over the sites of a chain: what is due, what the next updates lead to, and the cache beside it."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from steppe.kernel.density import JointDensity
from steppe.kernel.types import ChainState
from steppe.numerics import first_maximum
from steppe.target.log_density import Target


class ScanMemory(NamedTuple):
    """What a scan remembers from step to step.

    Attributes
    ----------
    cache
        The target's incremental cache, or `None` where it has no incremental form.
    next_site
        The next site of a systematic scan, or `None` for a random one.
    """

    cache: PyTree
    next_site: Array | None


def start_scan(
    scan: str, density: JointDensity, state: ChainState, previous: ScanMemory | None
) -> ScanMemory:
    """Fill the target's cache; a systematic scan begins at the first site, or goes on."""
    incremental = density.target.incremental
    cache = None if incremental is None else incremental.init(state.position)
    if scan == "random":
        return ScanMemory(cache, None)
    return ScanMemory(cache, jnp.zeros((), jnp.int32) if previous is None else previous.next_site)


def refresh_cache(density: JointDensity, state: ChainState, own: ScanMemory) -> ScanMemory:
    """Repair what rounding did to the cache, where the target knows how to."""
    incremental = density.target.incremental
    if incremental is None or incremental.refresh is None:
        return own
    return own._replace(cache=incremental.refresh(own.cache, state.position))


class Due(NamedTuple):
    """Updates to make.

    Attributes
    ----------
    sites, noise
        Their sites and random numbers in the order in which they are made; without `sites`, the random
        numbers of all sites of the domain.
    number
        How many of them are made.
    order, first
        Without `sites`, the turn of every site and the site whose turn is first.
    """

    sites: Array | None
    noise: Array
    number: Array
    order: Array | None = None
    first: Array | None = None


class Event(NamedTuple):
    """What the next updates lead to: a site takes a level, `num_made` updates are made by then."""

    site: Array
    level: Array
    gain: Array
    num_made: Array
    is_change: Array
    num_broken: Array


class Scan(NamedTuple):
    """Where a chain is within the updates of a step."""

    place: Array
    state: ChainState
    cache: PyTree
    num_broken: Array


def choose_levels(values: Array) -> Array:
    """Index of the largest value of every row; of two, by one comparison."""
    if values.shape[-1] != 2:
        return first_maximum(values)
    return (values[..., 1] > values[..., 0]).astype(jnp.int32)


def make_event(
    site: Array,
    place: Array | int,
    levels: Array,
    table: Array,
    is_change: Array,
    is_broken: Array,
    num_made: Array | int,
) -> Event:
    """What the row of a table at a place leads to, for its site."""
    level = levels[place]
    num_broken, number = jnp.sum(is_broken).astype(jnp.int32), jnp.asarray(num_made, jnp.int32)
    return Event(site, level, table[place, level], number, is_change, num_broken)


def apply_event(target: Target, scan: Scan, event: Event) -> Scan:
    """Make the updates of an event; a site that keeps its level changes nothing."""
    scan = set_site(target, scan, event.site, event.level)
    state = scan.state._replace(log_density=scan.state.log_density + event.gain)
    return Scan(scan.place + event.num_made, state, scan.cache, scan.num_broken + event.num_broken)


def set_site(target: Target, scan: Scan, site: Array, level: Array) -> Scan:
    """Set one site, keeping the cache in step; the log-density is left as it was."""
    state, cache = scan.state, scan.cache
    if target.incremental is not None:
        cache = target.incremental.update(cache, state.position, site, level)
    position = target.domain.replace_sites(state.position, site, level)
    return scan._replace(state=state._replace(position=position), cache=cache)
