"""Flat-histogram moves: visit all pairs of log-density and roughness equally often, and learn their numbers.

Notation: `g_b` is the number of states in bin `b` of `(U, R)`, where the roughness `R` is the mean of `|ΔU|`
over one-site changes. A walk with weights `1 / g_b` visits every bin equally often. Stochastic approximation
learns `log g` while it walks (Wang and Landau 2001; Liang, Liu, Carroll 2007): every step adds
`t₀ / max(t₀, t)` to the bin it ends in. With `learning = 0` the weights stay, and visits correct them.
"""

from typing import NamedTuple, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.errors import DomainError
from steppe.kernel.density import JointDensity, evaluations_per_site_table, mean_roughness
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.site_proposal import check_sites
from steppe.kernel.types import POSITION, ChainState, StepInfo, Unprepared
from steppe.random import draws
from steppe.target.log_density import Target


class Histogram(NamedTuple):
    """What a walk remembers.

    Attributes
    ----------
    log_weights
        Estimate of `log g` by bin, up to a constant; axes (bin of U, bin of R).
    visits
        Steps that ended in every bin.
    bin
        Bin of the state, flattened.
    num_steps
        Steps so far.
    """

    log_weights: Array
    visits: Array
    bin: Array
    num_steps: Array


class FlatHistogramBlock(Unprepared, eqx.Module):
    """Change one random site, and decide by how often the bins have been visited.

    Attributes
    ----------
    log_density_edges, roughness_edges
        Inner edges of the bins; states beyond the outermost fall into the outermost bins.
    learning
        `t₀`, or 0 to leave the weights alone.
    """

    component_id = "flat-histogram-block"

    log_density_edges: Array
    roughness_edges: Array
    learning: Array

    moves = POSITION
    is_adjusted = False
    uses_gradient = False
    moves_replicas = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of bins of `U` and of `R`."""
        return len(self.log_density_edges) + 1, len(self.roughness_edges) + 1

    def init(self, density: JointDensity, state: ChainState, previous: Histogram | None = None) -> Histogram:
        """Nothing is known yet."""
        zeros = jnp.zeros(self.shape)
        place = self.find_bin(density.target, state.position, state.log_density)
        return Histogram(zeros, zeros.astype(jnp.int32), place, jnp.zeros((), jnp.int32))

    def find_bin(self, target: Target, position: Array, log_density: Array) -> Array:
        """Bin of a state, flattened."""
        roughness = mean_roughness(target.domain, position, target.differences(position))
        row = jnp.searchsorted(self.log_density_edges, log_density, side="right")
        column = jnp.searchsorted(self.roughness_edges, roughness, side="right")
        return row * self.shape[1] + column

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Histogram
    ) -> tuple[ChainState, Histogram, StepInfo]:
        """Propose one change, evaluate it, decide, and count the bin."""
        target = density.target
        position = self._change(target, keys.position, state.position)
        log_density = target.log_density(position)
        there = self.find_bin(target, position, log_density)
        weights = own.log_weights.reshape(-1)
        is_allowed = jnp.isfinite(log_density)
        log_ratio = jnp.where(is_allowed, weights[own.bin] - weights[there], -jnp.inf)
        is_accepted = draws.log_uniform(keys.accept) < log_ratio
        place = jnp.where(is_accepted, there, own.bin)
        num_steps = own.num_steps + 1
        gain = self.learning / jnp.maximum(jnp.maximum(self.learning, num_steps), 1)
        new = state._replace(
            position=jnp.where(is_accepted, position, state.position),
            log_density=jnp.where(is_accepted, log_density, state.log_density),
        )
        histogram = Histogram(
            log_weights=weights.at[place].add(gain).reshape(self.shape),
            visits=own.visits.reshape(-1).at[place].add(1).reshape(self.shape),
            bin=place,
            num_steps=num_steps,
        )
        return (
            new,
            histogram,
            StepInfo(
                acceptance_rate=jnp.exp(jnp.minimum(log_ratio, 0.0)),
                is_accepted=is_accepted,
                num_flips=is_accepted.astype(jnp.int32),
                num_nonfinite=(jnp.isnan(log_density) | (log_density == jnp.inf)).astype(jnp.int32),
            ),
        )

    def _change(self, target: Target, key: Array, position: Array) -> Array:
        """Give one uniform random site one of its other levels, all equally likely."""
        domain = target.domain
        site_key, level_key = jax.random.split(key)
        site = jax.random.randint(site_key, (), 0, domain.num_sites)
        levels = domain.to_levels(position).astype(jnp.int32)
        sizes = jnp.asarray(domain.num_levels)
        jump = jax.random.randint(level_key, (), 1, sizes[site])
        return domain.from_levels(levels.at[site].set((levels[site] + jump) % sizes[site]))

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: the proposed state and its table of differences."""
        return 1 + evaluations_per_site_table(density.target)

    def check(self, name: str, target: Target) -> None:
        """Refuse domains without single sites."""
        check_sites(name, target, 1)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: the weights change while the chain walks."""
        raise DomainError("A flat-histogram walk learns while it moves, so it has no transition matrix.")
