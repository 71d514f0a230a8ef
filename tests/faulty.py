"""Components of kernels with faults built in, each a subclass of the real one.

Faults are numbers. With the defaults a faulty component is the real one, so a broken kernel differs from a
correct one by the fault it is named after and nothing else, and all faults of one composition share one
compiled program.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.kernel.acceptance import Metropolis
from steppe.kernel.blocks.gibbs import GibbsBlock
from steppe.kernel.blocks.metropolis import ConditionalDraw, ProposalBlock, decide
from steppe.kernel.blocks.site_gibbs import SiteGibbsBlock
from steppe.kernel.blocks.site_scan import Due, Event, Scan
from steppe.kernel.density import JointDensity, subtract_sums
from steppe.kernel.distributions import Levels
from steppe.kernel.keys import Keys
from steppe.kernel.parameters import Number, parameter
from steppe.kernel.proposals.center import CenterRefresh
from steppe.kernel.proposals.discrete_langevin import DiscreteFlow, DiscreteLangevin, JointProposal
from steppe.kernel.types import ChainState, StepInfo
from steppe.random import draws
from steppe.target import Target


def mixed(right: Any, wrong: Any, fault: Array | float) -> Any:
    """`right` without a fault, `wrong` with one."""
    return jax.tree.map(lambda a, b: jnp.where(fault > 0, b, a), right, wrong)


class Mismatched(NamedTuple):
    """Draws in one way and claims the probabilities of another."""

    sample: Callable[[Keys], Any]
    log_prob_terms: Callable[[Any], list[Array]]


class FaultyMetropolis(Metropolis):
    """Forgets or miscounts terms of the ratio, or looks back from a state that mixes old and new."""

    coupling_weight: Number = parameter(default=1.0)  # weight of the coupling in the ratio
    position_terms: Number = parameter(default=1.0)  # weight of the proposal of the position, both ways
    center_terms: Number = parameter(default=1.0)  # weight of the proposal of the center, both ways
    reverse_terms: Number = parameter(default=1.0)  # weight of the way back of the position
    power: Number = parameter(default=1.0)  # ratio raised to this power
    stale_center: Number = parameter(default=0.0)  # way back of the position at the old center
    stale_gradient: Number = parameter(default=0.0)  # way back of the position with the old gradient
    stale_position: Number = parameter(default=0.0)  # way back of the center: drift of the old position
    reverse_step: Number = parameter(default=1.0)  # step size of the way back, relative
    no_log: Number = parameter(default=0.0)  # compares u with the logarithm of the ratio
    forced: Number = parameter(default=0.0)  # takes every proposal

    def log_ratio(
        self, density: JointDensity, proposal: Any, forward: Any, value: Any, old: ChainState, new: ChainState
    ) -> Array:
        back = proposal.inverse(old, value)
        seen = new._replace(
            center=mixed(new.center, old.center, self.stale_center),
            gradient=mixed(new.gradient, old.gradient, self.stale_gradient),
        )
        loosened = _with_step(proposal, self.reverse_step)
        position_back, *_ = loosened.at(density, seen).log_prob_terms(back)
        seen = new._replace(position=mixed(new.position, old.position, self.stale_position))
        _, *center_back = proposal.at(density, seen).log_prob_terms(back)
        position_there, *center_there = forward.log_prob_terms(value)
        gained = [
            self.coupling_weight * density.coupling_terms(new),
            self.position_terms * self.reverse_terms * position_back,
            *[self.center_terms * terms for terms in center_back],
        ]
        paid = [
            self.coupling_weight * density.coupling_terms(old),
            self.position_terms * position_there,
            *[self.center_terms * terms for terms in center_there],
        ]
        log_ratio = self.power * (density.change(new, old) + subtract_sums(gained, paid))
        log_ratio = mixed(log_ratio, jnp.log(jnp.maximum(log_ratio, 0.0)), self.no_log)
        return mixed(log_ratio, jnp.inf, self.forced)


def _with_step(proposal: Any, factor: Array | float) -> Any:
    if isinstance(proposal, JointProposal):
        return dataclasses.replace(proposal, position=_with_step(proposal.position, factor))
    if isinstance(proposal, DiscreteLangevin | DiscreteFlow):
        return dataclasses.replace(proposal, step_size=proposal.step_size * factor)
    return proposal


class FaultyDecision(ProposalBlock):
    """Keeps parts of a rejected proposal, or decides with the random numbers of the proposal."""

    keeps_position: Number = parameter(default=0.0)
    keeps_center: Number = parameter(default=0.0)
    keeps_log_density: Number = parameter(default=0.0)
    keeps_gradient: Number = parameter(default=0.0)
    reuses_key: Number = parameter(default=0.0)

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Any
    ) -> tuple[ChainState, Any, StepInfo]:
        forward = self.proposal.at(density, state)
        value = forward.sample(keys)
        proposed = self.proposal.apply(density, state, value)
        log_ratio = self.acceptance.log_ratio(density, self.proposal, forward, value, state, proposed)
        key = jnp.where(self.reuses_key > 0, keys.position, keys.accept)
        kept, info = decide(key, density.domain, log_ratio, state, proposed)
        faults = {
            "position": self.keeps_position,
            "center": self.keeps_center,
            "log_density": self.keeps_log_density,
            "gradient": self.keeps_gradient,
        }
        leaks = {name: mixed(getattr(kept, name), getattr(proposed, name), f) for name, f in faults.items()}
        return kept._replace(**leaks), own, info


class FaultyLangevin(DiscreteLangevin):
    """Draws with another slope than the one it claims, or claims padded levels."""

    sampled_drift: Number = parameter(default=1.0)  # factor of the whole slope
    sampled_pull: Number = parameter(default=1.0)  # factor of the pull of the center
    claims_padding: Number = parameter(default=0.0)  # counts levels that do not exist in the normaliser

    def at(self, density: JointDensity, state: ChainState) -> Mismatched:
        claimed = super().at(density, state)
        pull = density.coupling.pull(state.position, state.center)
        excess = self.sampled_drift * (state.gradient + self.sampled_pull * pull) - (state.gradient + pull)
        sampled = super().at(density, state._replace(gradient=state.gradient + excess))
        if isinstance(claimed, Levels):
            padded = jnp.where(jnp.isfinite(claimed.logits), claimed.logits, 0.0)
            claimed = claimed._replace(logits=mixed(claimed.logits, padded, self.claims_padding))
        return Mismatched(sampled.sample, claimed.log_prob_terms)


class FaultyTogether(JointProposal):
    """Draws position and center in the wrong order, or the center with other numbers than it claims."""

    center_drift: Number = parameter(default=1.0)  # factor of the drift of the center
    center_noise: Number = parameter(default=1.0)  # factor of the variance of its noise
    center_sees_new_position: Number = parameter(default=0.0)
    position_sees_new_center: Number = parameter(default=0.0)

    def at(self, density: JointDensity, state: ChainState) -> Mismatched:
        def sample(keys: Keys) -> tuple[Array, Array]:
            assert state.center is not None
            own = keys.share_words(state.center.size)
            position = self.position.at(density, state).sample(own)
            seen = state._replace(position=mixed(state.position, position, self.center_sees_new_position))
            claimed: Any = self.center.at(density, seen)
            center = claimed._replace(
                mean=claimed.mean + (self.center_drift - 1) * (claimed.mean - state.center),
                variance=self.center_noise * claimed.variance,
            ).sample(own)
            seen = state._replace(center=mixed(state.center, center, self.position_sees_new_center))
            return self.position.at(density, seen).sample(own), center

        return Mismatched(sample, super().at(density, state).log_prob_terms)


class FaultyRefresh(CenterRefresh):
    """Refreshes the center with the wrong variance."""

    variance_factor: Number = parameter(default=1.0)

    def at(self, density: JointDensity, state: ChainState) -> Any:
        right: Any = super().at(density, state)
        return right._replace(variance=self.variance_factor * right.variance)


class OneSidedCenter(ProposalBlock):
    """Refreshes the center for the proposal and looks back with the center from before."""

    @property
    def moves(self):
        return ("position", "center")

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Any
    ) -> tuple[ChainState, Any, StepInfo]:
        refreshed, *_ = ConditionalDraw(CenterRefresh()).step(keys, density, state, ())
        forward = self.proposal.at(density, refreshed)
        value = forward.sample(keys)
        new = self.proposal.apply(density, refreshed, value)
        backward = self.proposal.at(density, new._replace(center=state.center))
        gained = [density.coupling_terms(new), *backward.log_prob_terms(refreshed.position)]
        paid = [density.coupling_terms(refreshed), *forward.log_prob_terms(value)]
        log_ratio = density.change(new, refreshed) + subtract_sums(gained, paid)
        kept, info = decide(keys.accept, density.domain, log_ratio, refreshed, new)
        return kept, own, info


class DecisionPerSite(ProposalBlock):
    """Decides site by site, with the site's own terms of the proposal and the whole difference of U."""

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Any
    ) -> tuple[ChainState, Any, StepInfo]:
        forward = self.proposal.at(density, state)
        value = forward.sample(keys)
        new = self.proposal.apply(density, state, value)
        (there,) = forward.log_prob_terms(value)
        (back,) = self.proposal.at(density, new).log_prob_terms(state.position)
        log_ratios = density.change(new, state) + back - there
        accepted = jnp.log(draws.uniform(keys.accept, log_ratios.shape)) < log_ratios
        position = jnp.where(accepted, new.position, state.position)
        _, info = decide(keys.accept, density.domain, jnp.asarray(jnp.inf), state, new)
        return density.evaluate(position, state.center), own, info


class FaultyConditional(GibbsBlock):
    """Offers the wrong candidates."""

    skips_intermediate: Number = parameter(default=0.0)  # the ball is about the current levels

    def bases(self, target: Target, state: ChainState, sites: Array) -> tuple[Array, Array]:
        bases, exists = super().bases(target, state, sites)
        return mixed(bases, jnp.broadcast_to(bases[0], bases.shape), self.skips_intermediate), exists


class FaultySites(SiteGibbsBlock):
    """Weighs levels wrongly, or resamples sites that it should not resample now."""

    excludes_current: Number = parameter(default=0.0)  # the current level is no candidate
    picks_by_gain: Number = parameter(default=0.0)  # takes the site that can gain most, uncorrected
    draws_all_at_once: Number = parameter(default=0.0)  # every site given the old values of all others
    swaps_blindly: Number = parameter(default=0.0)  # whatever the place it swaps to is worth
    rests_after_change: Number = parameter(default=0.0)  # a change ends the table, and all updates decided

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Any
    ) -> tuple[ChainState, Any, StepInfo]:
        new, own, info = super().step(keys, density, state, own)
        levels = draws.categorical(keys.position, density.target.differences(state.position))
        position = density.domain.from_levels(levels)
        moved = new._replace(position=position, log_density=density.target.log_density(position))
        return mixed(new, moved, self.draws_all_at_once), own, info

    def tabulate(self, target: Target, state: ChainState, cache: Any, sites: Array) -> Array:
        table = super().tabulate(target, state, cache, sites)
        levels = target.domain.levels_at(state.position, sites)
        is_current = jnp.arange(target.domain.max_levels) == levels[:, None]
        return jnp.where(is_current & (self.excludes_current > 0), -jnp.inf, table)

    def weigh_places(self, density: JointDensity, lowered: Scan, source: Array) -> Array:
        gains = super().weigh_places(density, lowered, source)
        return mixed(gains, jnp.where(jnp.isfinite(gains), 0.0, -jnp.inf), self.swaps_blindly)

    def decide(self, density: JointDensity, due: Due, scan: Scan, size: int) -> Event:
        changes = jnp.max(density.target.differences(scan.state.position), axis=1)
        best = jnp.broadcast_to(jnp.argmax(changes), due.sites.shape)
        due = due._replace(sites=mixed(due.sites, best, self.picks_by_gain))
        event = super().decide(density, due, scan, size)
        return event._replace(num_made=mixed(event.num_made, jnp.asarray(size), self.rests_after_change))
