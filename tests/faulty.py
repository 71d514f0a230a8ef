"""Pieces of kernels with faults built in, each a subclass of the real piece.

Faults are numbers. With the defaults a faulty piece is the real one, so a broken kernel differs from a
correct one by the fault it is named after and nothing else, and all faults of one composition share one
compiled program.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.kernel import noise
from steppe.kernel.accept import Metropolis
from steppe.kernel.block import Draw, ProposeAndDecide, decide
from steppe.kernel.conditional import BlockConditional
from steppe.kernel.landscape import Landscape, difference_of_sums
from steppe.kernel.noise import Keys
from steppe.kernel.proposal.center import CenterRefresh
from steppe.kernel.proposal.discrete_langevin import DiscreteLangevin
from steppe.kernel.proposal.sites import Levels
from steppe.kernel.proposal.together import Together
from steppe.kernel.state import Info, State
from steppe.pytree import piece
from steppe.target import Target


def mixed(right: Any, wrong: Any, fault: Array | float) -> Any:
    """`right` without a fault, `wrong` with one."""
    return jax.tree.map(lambda a, b: jnp.where(fault > 0, b, a), right, wrong)


class Mismatched(NamedTuple):
    """Draws in one way and claims the probabilities of another."""

    sample: Callable[[Keys], Any]
    terms: Callable[[Any], list[Array]]


@piece
class FaultyMetropolis(Metropolis):
    """Forgets or miscounts terms of the ratio, or looks back from a state that mixes old and new."""

    coupling_weight: float = 1.0  # weight of the coupling in the ratio
    position_terms: float = 1.0  # weight of the proposal of the position, both ways
    center_terms: float = 1.0  # weight of the proposal of the center, both ways
    reverse_terms: float = 1.0  # weight of the way back of the position
    power: float = 1.0  # ratio raised to this power
    stale_center: float = 0.0  # way back of the position at the old center
    stale_gradient: float = 0.0  # way back of the position with the old gradient
    stale_position: float = 0.0  # way back of the center with the drift of the old position
    reverse_step: float = 1.0  # step size of the way back, relative
    no_log: float = 0.0  # compares u with the logarithm of the ratio
    forced: float = 0.0  # takes every proposal

    def log_ratio(
        self, landscape: Landscape, proposal: Any, forward: Any, value: Any, old: State, new: State
    ) -> Array:
        back = proposal.reverse(old, value)
        seen = new._replace(
            center=mixed(new.center, old.center, self.stale_center),
            gradient=mixed(new.gradient, old.gradient, self.stale_gradient),
        )
        loosened = _with_step(proposal, self.reverse_step)
        position_back, *_ = loosened.distribution(landscape, seen).terms(back)
        seen = new._replace(position=mixed(new.position, old.position, self.stale_position))
        _, *center_back = proposal.distribution(landscape, seen).terms(back)
        position_there, *center_there = forward.terms(value)
        gained = [
            self.coupling_weight * landscape.coupling_terms(new),
            self.position_terms * self.reverse_terms * position_back,
            *[self.center_terms * terms for terms in center_back],
        ]
        paid = [
            self.coupling_weight * landscape.coupling_terms(old),
            self.position_terms * position_there,
            *[self.center_terms * terms for terms in center_there],
        ]
        log_ratio = self.power * (landscape.gain(new, old) + difference_of_sums(gained, paid))
        log_ratio = mixed(log_ratio, jnp.log(jnp.maximum(log_ratio, 0.0)), self.no_log)
        return mixed(log_ratio, jnp.inf, self.forced)


def _with_step(proposal: Any, factor: Array | float) -> Any:
    if isinstance(proposal, Together):
        return dataclasses.replace(proposal, position=_with_step(proposal.position, factor))
    if isinstance(proposal, DiscreteLangevin):
        return dataclasses.replace(proposal, step_size=proposal.step_size * factor)
    return proposal


@piece
class FaultyDecision(ProposeAndDecide):
    """Keeps parts of a rejected proposal, or decides with the random numbers of the proposal."""

    keeps_position: float = 0.0
    keeps_center: float = 0.0
    keeps_log_density: float = 0.0
    keeps_gradient: float = 0.0
    reuses_key: float = 0.0

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        forward = self.proposal.distribution(landscape, state)
        value = forward.sample(keys)
        proposed = self.proposal.move(landscape, state, value)
        log_ratio = self.accept.log_ratio(landscape, self.proposal, forward, value, state, proposed)
        key = jnp.where(self.reuses_key > 0, keys.position, keys.accept)
        kept, info = decide(key, landscape.domain, log_ratio, state, proposed)
        faults = {
            "position": self.keeps_position,
            "center": self.keeps_center,
            "log_density": self.keeps_log_density,
            "gradient": self.keeps_gradient,
        }
        leaks = {name: mixed(getattr(kept, name), getattr(proposed, name), f) for name, f in faults.items()}
        return kept._replace(**leaks), info


@piece
class FaultyLangevin(DiscreteLangevin):
    """Draws with another slope than the one it claims, or claims padded levels."""

    sampled_drift: float = 1.0  # factor of the whole slope
    sampled_pull: float = 1.0  # factor of the pull of the center
    claims_padding: float = 0.0  # counts levels that do not exist in the normaliser

    def distribution(self, landscape: Landscape, state: State) -> Mismatched:
        claimed = super().distribution(landscape, state)
        pull = landscape.coupling.pull(state.position, state.center)
        excess = self.sampled_drift * (state.gradient + self.sampled_pull * pull) - (state.gradient + pull)
        sampled = super().distribution(landscape, state._replace(gradient=state.gradient + excess))
        if isinstance(claimed, Levels):
            padded = jnp.where(jnp.isfinite(claimed.logits), claimed.logits, 0.0)
            claimed = claimed._replace(logits=mixed(claimed.logits, padded, self.claims_padding))
        return Mismatched(sampled.sample, claimed.terms)


@piece
class FaultyTogether(Together):
    """Draws position and center in the wrong order, or the center with other numbers than it claims."""

    center_drift: float = 1.0  # factor of the drift of the center
    center_noise: float = 1.0  # factor of the variance of its noise
    center_sees_new_position: float = 0.0
    position_sees_new_center: float = 0.0

    def distribution(self, landscape: Landscape, state: State) -> Mismatched:
        def sample(keys: Keys) -> tuple[Array, Array]:
            own = keys.shared(state.center.size)
            position = self.position.distribution(landscape, state).sample(own)
            seen = state._replace(position=mixed(state.position, position, self.center_sees_new_position))
            claimed = self.center.distribution(landscape, seen)
            center = claimed._replace(
                mean=claimed.mean + (self.center_drift - 1) * (claimed.mean - state.center),
                variance=self.center_noise * claimed.variance,
            ).sample(own)
            seen = state._replace(center=mixed(state.center, center, self.position_sees_new_center))
            return self.position.distribution(landscape, seen).sample(own), center

        return Mismatched(sample, super().distribution(landscape, state).terms)


@piece
class FaultyRefresh(CenterRefresh):
    """Refreshes the center with the wrong variance."""

    variance_factor: float = 1.0

    def distribution(self, landscape: Landscape, state: State) -> Any:
        right = super().distribution(landscape, state)
        return right._replace(variance=self.variance_factor * right.variance)


@piece
class OneSidedCenter(ProposeAndDecide):
    """Refreshes the center for the proposal and looks back with the center from before."""

    moves = ("position", "center")

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        refreshed, _ = Draw(CenterRefresh()).step(landscape, keys, state)
        forward = self.proposal.distribution(landscape, refreshed)
        value = forward.sample(keys)
        new = self.proposal.move(landscape, refreshed, value)
        backward = self.proposal.distribution(landscape, new._replace(center=state.center))
        gained = [landscape.coupling_terms(new), *backward.terms(refreshed.position)]
        paid = [landscape.coupling_terms(refreshed), *forward.terms(value)]
        log_ratio = landscape.gain(new, refreshed) + difference_of_sums(gained, paid)
        return decide(keys.accept, landscape.domain, log_ratio, refreshed, new)


@piece
class DecisionPerSite(ProposeAndDecide):
    """Decides site by site, with the site's own terms of the proposal and the whole difference of U."""

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        forward = self.proposal.distribution(landscape, state)
        value = forward.sample(keys)
        new = self.proposal.move(landscape, state, value)
        (there,) = forward.terms(value)
        (back,) = self.proposal.distribution(landscape, new).terms(state.position)
        log_ratios = landscape.gain(new, state) + back - there
        accepted = jnp.log(noise.uniform(keys.accept, log_ratios.shape)) < log_ratios
        position = jnp.where(accepted, new.position, state.position)
        _, info = decide(keys.accept, landscape.domain, jnp.inf, state, new)
        return landscape.at(position, state.center), info


@piece
class FaultyConditional(BlockConditional):
    """Offers the wrong candidates, or draws sites that it should not draw now."""

    excludes_current: float = 0.0  # the current levels are no candidate
    skips_intermediate: float = 0.0  # the ball is about the current levels
    picks_by_gain: float = 0.0  # takes the sites that can gain most, without correcting for it
    draws_all_at_once: float = 0.0  # every site given the old values of all others

    def step(self, landscape: Landscape, keys: Keys, state: State) -> tuple[State, Info]:
        new, info = super().step(landscape, keys, state)
        levels = noise.categorical(keys.position, landscape.target.differences(state.position))
        position = landscape.domain.from_levels(levels)
        moved = new._replace(position=position, log_density=landscape.target.log_density(position))
        return mixed(new, moved, self.draws_all_at_once), info

    def bases(self, target: Target, state: State, sites: Array) -> tuple[Array, Array]:
        bases, exists = super().bases(target, state, sites)
        return mixed(bases, jnp.broadcast_to(bases[0], bases.shape), self.skips_intermediate), exists

    def candidates(
        self, target: Target, state: State, sites: Array, base: Array
    ) -> tuple[Array, Array, Array]:
        levels, values, num_broken = super().candidates(target, state, sites, base)
        is_current = jnp.all(levels == target.domain.to_levels(state.position[sites]), axis=1)
        return levels, jnp.where(is_current & (self.excludes_current > 0), -jnp.inf, values), num_broken

    def _next_sites(self, key: Array, landscape: Landscape, state: State) -> tuple[Array, State]:
        sites, state = super()._next_sites(key, landscape, state)
        gains = jnp.max(landscape.target.differences(state.position), axis=1)
        best = jnp.argsort(-gains)[: self.block_size]
        return mixed(sites, best, self.picks_by_gain), state
