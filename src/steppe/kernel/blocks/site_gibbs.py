"""Gibbs sampling of single sites, driven by events: from one table to the first site that changes.

A site that keeps its level leaves the conditionals of all others as they were. So one table of differences
serves all sites up to the first that changes; only then is the state written, the target's cache updated
and a new table made. Sites, order and random numbers are those of a loop over sites, and so is the chain.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_batching import custom_vmap
from jaxtyping import PyTree

from steppe.compiling import materialize
from steppe.errors import RecipeError
from steppe.kernel.blocks.site_scan import (
    Due,
    Event,
    Scan,
    ScanMemory,
    apply_event,
    choose_levels,
    make_event,
    refresh_cache,
    set_site,
    start_scan,
)
from steppe.kernel.blocks.table_size import cheapest_table, count_operations
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.site_proposal import check_sites
from steppe.kernel.types import POSITION, ChainState, StepInfo, Unprepared
from steppe.mapped import any_mapped, max_mapped
from steppe.random import draws
from steppe.target.log_density import Target
from steppe.target.pair_derivatives import FollowedPairs, find_pair_derivatives

# Updates whose random numbers are drawn together: they fit the cache beside the state.
MAX_DRAWN = 4096
# Rows of a table of all sites that are made in the time of one that is looked up.
MAX_ROWS = 8
# Operations of an update of the cache that cost chains side by side less than looking their sites up.
CHEAP_UPDATE = 2048


class SiteGibbsBlock(Unprepared, eqx.Module):
    """Resample single sites from their conditionals, `num_updates` of them one after another.

    Attributes
    ----------
    num_updates
        Number of sites resampled in a step.
    scan
        `"systematic"`: sites in order, wrapping around; stationary but not reversible. `"random"`: every site
        drawn uniformly, with replacement.
    num_swaps
        Number of swaps after the updates, on two-level sites: one of the sites at level 1 goes to 0, and one
        of the sites at level 0, perhaps the same, takes its place with probability in proportion to `exp U`.
    table_size
        How many updates are decided from one table; `None` for what the target's forms make cheapest. It
        changes the time a step takes, not where it leads.
    pairs
        Second derivatives of a target whose sites interact in pairs only and that has no incremental form of
        its own: single changes are then followed by them. Made when the block is prepared for one.
    """

    component_id = "site-gibbs-block"

    num_updates: int = eqx.field(static=True, default=1)
    scan: Literal["random", "systematic"] = eqx.field(static=True, default="systematic")
    num_swaps: int = eqx.field(static=True, default=0)
    table_size: int | None = eqx.field(static=True, default=None)
    pairs: Array | None = None

    moves = POSITION
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False

    def init(
        self, density: JointDensity, state: ChainState, previous: ScanMemory | None = None
    ) -> ScanMemory:
        """Fill the target's cache; a systematic scan begins at the first site, or goes on."""
        return start_scan(self.scan, self.see(density), state, previous)

    def prepare(self, target: Target) -> Self:
        """Differentiate a target of pairs twice."""
        return dataclasses.replace(self, pairs=find_pair_derivatives(target))

    def see(self, density: JointDensity) -> JointDensity:
        """Return the density with a target that follows changes by second derivatives, if there are any."""
        return dataclasses.replace(density, target=self._follow(density.target))

    def _follow(self, target: Target) -> Target:
        return target if self.pairs is None else FollowedPairs(target.domain, target, self.pairs)

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step at most: a table per update, or one log-density per level."""
        target, num_sites = self.see(density).target, density.domain.num_sites
        if target.incremental is not None:
            return self.num_updates / num_sites + self.num_swaps
        if target.has_differences:
            return self.num_updates + self.num_swaps
        return (self.num_updates + self.num_swaps * num_sites) * target.domain.max_levels

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: ScanMemory
    ) -> tuple[ChainState, ScanMemory, StepInfo]:
        """Make the updates of one step, some thousands at a time."""
        density = self.see(density)
        own = refresh_cache(density, state, own)
        num_parts = -(-self.num_updates // MAX_DRAWN)
        size = -(-self.num_updates // num_parts)
        start = Scan(jnp.zeros((), jnp.int32), state, own.cache, jnp.zeros((), jnp.int32))

        def make_part(part: Array | int, scan: Scan) -> Scan:
            due = self.draw(keys, density, own, part, size)
            return self.update(density, due, scan._replace(place=jnp.zeros((), jnp.int32)))

        scan = make_part(0, start) if num_parts == 1 else jax.lax.fori_loop(0, num_parts, make_part, start)
        for index in range(self.num_swaps):
            scan = self.swap(jax.random.fold_in(keys.center, index), density, scan)
        new = scan.state
        if own.next_site is not None:
            own = own._replace(next_site=(own.next_site + self.num_updates) % density.domain.num_sites)
        info = StepInfo(
            acceptance_rate=jnp.ones((), new.log_density.dtype),
            is_accepted=jnp.ones((), bool),
            num_flips=jnp.sum(density.domain.differs(new.position, state.position)),
            num_nonfinite=scan.num_broken,
        )
        return new, own._replace(cache=scan.cache), info

    def check(self, name: str, target: Target) -> None:
        """Refuse domains whose sites cannot be changed one by one, or not be swapped."""
        check_sites(name, target, 1)
        if self.num_swaps and not target.domain.is_two_level:
            raise RecipeError(
                f"`{name}(num_swaps={self.num_swaps})` swaps sites of two levels, and {target.domain!r} has "
                "more. Leave it out."
            )

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Average over all sites, or of a systematic scan over the site it begins with."""
        density = self.see(density)
        sites = np.asarray(enumerate_sites(self, density))
        scans = np.broadcast_to(np.eye(sites.shape[-1]), sites.shape)
        for shift in range(self.num_updates):
            scans = scans @ (sites.mean(axis=0) if self.scan == "random" else np.roll(sites, -shift, axis=0))
        swaps = np.asarray(enumerate_swaps(self, density)) if self.num_swaps else np.eye(sites.shape[-1])
        return scans.mean(axis=0) @ np.linalg.matrix_power(swaps, self.num_swaps)

    def tabulate(self, target: Target, state: ChainState, cache: PyTree, sites: Array | None) -> Array:
        """Change of the log-density when some sites, or all, take each of their levels, site × level.

        States that are not valid have `−inf`; levels that a site does not have may hold anything.
        """
        incremental, domain = target.incremental, target.domain
        if sites is None:
            assert incremental is not None
            assert incremental.all_differences is not None
            table = incremental.all_differences(cache, state.position)
            sites = jnp.arange(domain.num_sites)
            current = domain.to_levels(state.position)
        elif incremental is not None or target.has_differences:
            if incremental is None:
                table = target.differences(state.position)[sites]
            else:
                table = incremental.differences(cache, state.position, sites)
            current = domain.levels_at(state.position, sites)
        else:
            return self._map_candidates(target.log_density, target, state, sites) - state.log_density
        # The level that a site has is in the table and its log-density is known: it fixes the zero.
        if domain.max_levels == 2:
            zero = jnp.where(current == 0, table[:, 0], table[:, 1])
        else:
            zero = table[jnp.arange(len(sites)), current]
        table = table - zero[:, None]
        if incremental is None or not target.has_constraint:
            return table
        return jnp.where(self._map_candidates(target.is_valid, target, state, sites), table, -jnp.inf)

    def _map_candidates(
        self, function: Callable[[Array], Array], target: Target, state: ChainState, sites: Array
    ) -> Array:
        """Values of a function after each of some sites takes each of its levels."""

        def at(site: Array, level: Array) -> Array:
            return function(target.domain.replace_sites(state.position, site, level))

        every_level = jnp.arange(target.domain.max_levels)
        return jax.vmap(jax.vmap(at, (None, 0)), (0, None))(sites, every_level)

    def decide(self, density: JointDensity, due: Due, scan: Scan, size: int) -> Event:
        """Decide the next `size` updates from one table, up to the first that changes its site."""
        domain, state, sites, noise = density.domain, scan.state, due.sites, due.noise
        if sites is not None:
            sites, noise = (jax.lax.dynamic_slice_in_dim(a, scan.place, size) for a in (sites, noise))
        # Made before the state is written: what reads it later would keep a copy of it alive.
        table = materialize(partial(self.tabulate, density.target), state, scan.cache, sites)
        is_broken = jnp.isnan(table) | (table == jnp.inf)
        if domain.is_ragged:
            num_levels = jnp.asarray(domain.num_levels)
            num_levels = num_levels if sites is None else num_levels[sites]
            exists = jnp.arange(domain.max_levels) < num_levels[:, None]
            table, is_broken = jnp.where(exists, table, -jnp.inf), is_broken & exists
        weights = jnp.where(is_broken, -jnp.inf, density.inverse_temperature * table)
        levels = choose_levels(weights + noise)
        if size == 1:
            assert sites is not None
            return make_event(sites[0], 0, levels, table, jnp.asarray(True), is_broken, 1)
        if sites is None:
            order, first, current = due.order, due.first, domain.to_levels(state.position)
        else:
            order, first = scan.place + jnp.arange(size), -scan.place
            current = materialize(domain.levels_at, state.position, sites)
        assert order is not None
        assert first is not None
        is_due = (order >= scan.place) & (order < due.number)
        changes = (levels != current) & is_due
        is_change = jnp.any(changes)
        turn = jnp.min(jnp.where(changes, order, scan.place + size - 1))
        place = (turn + first) % size
        made = jnp.minimum(turn + 1, due.number)
        # Chains that are done before others change nothing.
        levels, table = jnp.where(is_change, levels, current), jnp.where(is_change, table, 0)
        is_broken = is_broken & (is_due & (order < made))[:, None]
        site = place if sites is None else sites[place]
        return make_event(site, place, levels, table, is_change, is_broken, made - scan.place)

    def steps_together(self, target: Target) -> bool:
        """Whether chains side by side wait for one another no longer than what they share saves."""
        target = self._follow(target)
        incremental, is_systematic = target.incremental, self.scan == "systematic"
        if incremental is None or not is_systematic:
            return False
        return incremental.all_differences is not None or self._visits_every_site(target)

    def _visits_every_site(self, target: Target) -> bool:
        """Whether chains side by side had better stop at every site than at their own next change.

        Sites they have in common are no lookups, and an update of the cache costs no more than finding them.
        """
        if self.table_size is not None or self.scan != "systematic" or target.incremental is None:
            return False
        if target.incremental.table_size is not None:
            return target.incremental.table_size == 1
        return cheapest_table(target) > 1 and count_operations(target)[0] <= CHEAP_UPDATE

    def update(self, density: JointDensity, due: Due, scan: Scan) -> Scan:
        """Make all updates that are due."""
        if due.sites is not None and self._visits_every_site(density.target):
            return make_updates(self, density, due, scan)
        return self.update_by_tables(density, due, scan)

    def update_by_tables(self, density: JointDensity, due: Due, scan: Scan) -> Scan:
        """Make all updates that are due, from change to change."""
        size = len(due.noise)
        if due.sites is not None:
            size = self._choose_table_size(density.target, size)
            due = due._replace(
                sites=jnp.pad(due.sites, (0, size - 1)), noise=jnp.pad(due.noise, ((0, size - 1), (0, 0)))
            )
        if size == 1:
            return self.update_every_site(density, due, scan)

        def decide_and_apply(scan: Scan) -> Scan:
            return apply_event(density.target, scan, self.decide(density, due, scan, size))

        if density.target.incremental is None:
            return jax.lax.while_loop(lambda scan: scan.place < due.number, decide_and_apply, scan)

        # The cache is dear: it is updated only where there is a change, or more to decide.
        def is_pending(carry: tuple[Scan, Event]) -> Array:
            scan, event = carry
            return any_mapped(event.is_change | (scan.place + size < due.number))

        def apply_and_decide(carry: tuple[Scan, Event]) -> tuple[Scan, Event]:
            scan = apply_event(density.target, *carry)
            return scan, self.decide(density, due, scan, size)

        last, event = jax.lax.while_loop(
            is_pending, apply_and_decide, (scan, self.decide(density, due, scan, size))
        )
        return last._replace(num_broken=last.num_broken + event.num_broken)

    def update_every_site(self, density: JointDensity, due: Due, scan: Scan) -> Scan:
        """Make all updates that are due, one by one: a loop of a known length."""

        def make_update(place: Array, scan: Scan) -> Scan:
            scan = scan._replace(place=place)
            return apply_event(density.target, scan, self.decide(density, due, scan, 1))

        return jax.lax.fori_loop(0, due.number, make_update, scan)

    def swap(self, key: Array, density: JointDensity, scan: Scan) -> Scan:
        """Take one site from level 1 to 0 and let the conditional distribution say which takes its place."""
        target, state = density.target, scan.state
        key_from, key_to = jax.random.split(key)
        is_up = target.domain.to_levels(state.position) == 1
        source = draws.categorical(key_from, jnp.where(is_up, 0.0, -jnp.inf))
        lowered = set_site(target, scan, source, jnp.zeros((), jnp.int32))
        gains = self.weigh_places(density, lowered, source)
        goal = draws.categorical(key_to, density.inverse_temperature * gains)
        # Where no site is up there is nothing to swap.
        goal, level = jnp.where(jnp.any(is_up), goal, source), jnp.any(is_up).astype(jnp.int32)
        swapped = set_site(target, lowered, goal, level)
        gain = jnp.where(jnp.any(is_up), gains[goal], 0)
        return swapped._replace(state=swapped.state._replace(log_density=state.log_density + gain))

    def weigh_places(self, density: JointDensity, lowered: Scan, source: Array) -> Array:
        """Log-density with each site that is at 0 raised to 1, less that with the site it was taken from."""
        target, every_site = density.target, jnp.arange(density.domain.num_sites)
        table = self.tabulate(target, lowered.state, lowered.cache, every_site)[:, 1]
        gains = table - table[source]
        is_free = target.domain.to_levels(lowered.state.position) == 0
        gains = jnp.where(is_free & (gains < jnp.inf), gains, -jnp.inf)
        return gains.at[source].set(0.0)

    def draw(self, keys: Keys, density: JointDensity, own: ScanMemory, part: Array | int, size: int) -> Due:
        """Sites and noise of one part of a step."""
        domain, key = density.domain, jax.random.fold_in(keys.position, part)
        if own.next_site is None:
            sites = jax.random.randint(jax.random.fold_in(key, 1), (size,), 0, domain.num_sites)
        else:
            # Chains side by side have made as many updates: said so that what is at a site is no lookup.
            next_site = max_mapped(own.next_site)
            sites = (next_site + part * size + jnp.arange(size)) % domain.num_sites
        # Made in one long row: XLA vectorises the last axis only, and there are few levels.
        noise = materialize(partial(draws.gumbel, shape=(size * domain.max_levels,)), key).reshape(size, -1)
        number = jnp.minimum(size, self.num_updates - part * size)
        if own.next_site is None or not self._decides_all(density.target, size):
            return Due(sites, noise, number)
        order = (jnp.arange(domain.num_sites) - own.next_site) % domain.num_sites
        return Due(None, noise[jnp.minimum(order, size - 1)], number, order, own.next_site)

    def _decides_all(self, target: Target, num_due: int) -> bool:
        """Whether tables have all sites, in their own order: none is due twice, and none looked up."""
        incremental, num_sites = target.incremental, target.domain.num_sites
        if incremental is None or incremental.all_differences is None or self.table_size is not None:
            return False
        return 1 < num_due <= num_sites <= MAX_ROWS * cheapest_table(target)

    def _choose_table_size(self, target: Target, num_due: int) -> int:
        size = self.table_size or cheapest_table(target)
        return min(size, num_due, target.domain.num_sites)


@custom_vmap
def make_updates(block: SiteGibbsBlock, density: JointDensity, due: Due, scan: Scan) -> Scan:
    """Make the updates of one chain from change to change; of chains side by side, site after site."""
    return block.update_by_tables(density, due, scan)


@make_updates.def_vmap
def _map_updates(
    axis_size: int,
    is_mapped: tuple[PyTree, ...],
    block: SiteGibbsBlock,
    density: JointDensity,
    due: Due,
    scan: Scan,
) -> tuple[Scan, PyTree[bool]]:
    axes = jax.tree.map(lambda mapped: 0 if mapped else None, tuple(is_mapped))
    update = jax.vmap(SiteGibbsBlock.update_every_site, axes, axis_size=axis_size)
    made = update(block, density, due, scan)
    return made, jax.tree.map(lambda _: True, made)


@jax.jit
def enumerate_sites(block: SiteGibbsBlock, density: JointDensity) -> Array:
    """Transition matrices of a small domain, one for every site that may be resampled."""
    target, domain = density.target, density.domain
    positions, every_site = domain.enumerate(), jnp.arange(domain.num_sites)

    def row(position: Array, site: Array) -> Array:
        cache = None if target.incremental is None else target.incremental.init(position)
        state = ChainState(position, None, target.log_density(position))
        table = block.tabulate(target, state, cache, site[None])
        exists = jnp.arange(domain.max_levels) < jnp.asarray(domain.num_levels)[site]
        weights = jax.nn.softmax(jnp.where(exists, density.inverse_temperature * table[0], -jnp.inf))
        is_current = jnp.arange(domain.max_levels) == domain.levels_at(position, site)
        weights = jnp.where(jnp.isfinite(state.log_density), weights, is_current)  # from outside the support
        at = jax.vmap(domain.replace_sites, (None, None, 0))
        # A level that does not exist has no weight; it is counted where the chain is.
        levels = jnp.where(exists, jnp.arange(domain.max_levels), 0)
        return jnp.zeros(len(positions)).at[domain.index(at(position, site, levels))].add(weights)

    return jax.vmap(jax.vmap(row, (0, None)), (None, 0))(positions, every_site)


@jax.jit
def enumerate_swaps(block: SiteGibbsBlock, density: JointDensity) -> Array:
    """Transition matrix of one swap on a small domain."""
    target, domain = density.target, density.domain
    positions, zero = domain.enumerate(), jnp.zeros((), jnp.int32)

    def row(position: Array) -> Array:
        cache = None if target.incremental is None else target.incremental.init(position)
        state = ChainState(position, None, target.log_density(position))
        is_up = domain.to_levels(position) == 1

        def take_from(source: Array) -> Array:
            lowered = set_site(target, Scan(zero, state, cache, zero), source, zero)
            gains = block.weigh_places(density, lowered, source)
            raised = jax.vmap(domain.replace_sites, (None, 0, None))
            ends = domain.index(raised(lowered.state.position, jnp.arange(domain.num_sites), zero + 1))
            weights = jax.nn.softmax(density.inverse_temperature * gains)
            return jnp.zeros(len(positions)).at[ends].add(weights)

        moves = jax.vmap(take_from)(jnp.arange(domain.num_sites))
        swapped = jnp.sum(jnp.where(is_up[:, None], moves, 0), axis=0) / jnp.sum(is_up)
        stays = jnp.arange(len(positions)) == domain.index(position)
        return jnp.where(jnp.any(is_up), swapped, stays)

    return jax.vmap(row)(positions)
