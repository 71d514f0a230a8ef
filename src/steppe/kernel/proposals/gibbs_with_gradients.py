"""Gibbs with gradients (GWG): a few sites, picked where the gradient promises most."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain.base import Domain
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import DrawKeys
from steppe.kernel.proposals.site_proposal import (
    WeighedChanges,
    check_sites,
    flip_changes,
    level_changes,
    log_balance,
)
from steppe.kernel.types import ChainState
from steppe.numerics import first_maximum, log_sum_exp
from steppe.random import draws
from steppe.target.log_density import Target


class Path(NamedTuple):
    """An ordered list of one-site changes on distinct sites, and the levels they replace."""

    sites: Array
    levels: Array
    old_levels: Array


class Picks(NamedTuple):
    """Changes picked one after another without replacement, all weighted at the same state.

    `scores` is site × choice: one column (the flip) on two-level sites, one per level otherwise.
    """

    domain: Domain
    levels: Array
    scores: Array
    num_flips: int

    def sample(self, keys: DrawKeys) -> Path:
        """Pick by Gumbel maxima; a picked site is out of the race."""
        # In one long row: XLA vectorises the last axis only, and there are few choices.
        perturbed = self.scores.reshape(-1) + draws.gumbel(keys.position, (self.scores.size,))

        def pick(remaining: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
            site, choice = jnp.unravel_index(first_maximum(remaining), self.scores.shape)
            table = remaining.reshape(self.scores.shape).at[site].set(-jnp.inf)
            return table.reshape(-1), (site, choice)

        _, (sites, choices) = jax.lax.scan(pick, perturbed, length=self.num_flips)
        old_levels = self.levels[sites]
        levels = 1 - old_levels if self.domain.is_two_level else choices
        return Path(sites, levels, old_levels)

    def log_prob_terms(self, value: Path) -> list[Array]:
        """Log-probability of the picks, one term each."""

        def pick(remaining: Array, change: tuple[Array, Array]) -> tuple[Array, Array]:
            site, choice = change
            term = remaining[site, choice] - log_sum_exp(remaining.reshape(-1))
            return remaining.at[site].set(-jnp.inf), term

        choices = jnp.zeros_like(value.levels) if self.domain.is_two_level else value.levels
        _, terms = jax.lax.scan(pick, self.scores, (value.sites, choices))
        return [terms]


class GibbsWithGradients(WeighedChanges):
    """Change `num_flips` sites, each change with weight `exp(½ g·(e_k − θ_i))`.

    Other balancing functions and exact changes may take the place of the square root and the gradient.

    For more than one flip the ordered path is part of the move, and the reverse move walks it
    backwards with weights taken at the new state, so Metropolis stays exact with one gradient a step.
    """

    component_id = "gibbs-with-gradients"

    num_flips: int = eqx.field(static=True)

    def at(self, density: JointDensity, state: ChainState) -> Picks:
        """Softmax over all one-site changes, without replacement of sites."""
        domain = density.domain
        levels = domain.to_levels(state.position).astype(jnp.int32)
        if domain.is_two_level:
            scores = log_balance(self.balancing, flip_changes(density, state, self.differences))[:, None]
        else:
            stays = jnp.arange(domain.max_levels) == levels[:, None]
            scores = log_balance(self.balancing, level_changes(density, state, self.differences))
            scores = jnp.where(domain.level_mask & ~stays, scores, -jnp.inf)
        return Picks(domain, levels, scores, self.num_flips)

    def apply(self, density: JointDensity, state: ChainState, value: Path) -> ChainState:
        """Evaluate the end of the path."""
        position = density.domain.replace_sites(state.position, value.sites, value.levels)
        return density.evaluate(position, state.center, with_gradient=self.uses_gradient)

    def inverse(self, state: ChainState, value: Path) -> Path:
        """Walk the path backwards."""
        return Path(value.sites[::-1], value.old_levels[::-1], value.levels[::-1])

    def support(self, density: JointDensity, state: ChainState) -> Path:
        """All paths from a state, for exact enumeration on small domains."""
        domain = density.domain
        sites = np.indices((domain.num_sites,) * self.num_flips).reshape(self.num_flips, -1).T
        sites = sites[[len(set(row)) == self.num_flips for row in sites.tolist()]]
        shifts = np.indices((domain.max_levels - 1,) * self.num_flips).reshape(self.num_flips, -1).T
        sites, shifts = np.repeat(sites, len(shifts), axis=0), np.tile(shifts + 1, (len(sites), 1))
        old_levels = domain.to_levels(state.position).astype(jnp.int32)[sites]
        return Path(jnp.asarray(sites), (old_levels + shifts) % domain.max_levels, old_levels)

    def check(self, name: str, target: Target) -> None:
        """Refuse fewer sites than are changed."""
        check_sites(name, target, self.num_flips)
