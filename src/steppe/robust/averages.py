"""Targets that summarise what a position is worth after each of a fixed set of disturbances.

Random disturbances are drawn once and stay: the same ones meet every position (common random numbers), so the
log-density is a function of the position and every sampler applies. One evaluation costs one of the base per
disturbance.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from steppe.kernel.proposals.permutation_moves import TABLED, Move, apply_move, differences, is_move
from steppe.robust.risk import Risk
from steppe.robust.site_flips import flip_level, flip_position, pull_gradient, pull_table
from steppe.target import Incremental, Target

# `repair(position, scenario) → position`, of positions as kernels hold them.
Repair = Callable[[Array, Target], Array]


class Average(Target):
    """The risk of `U` over disturbances; a subclass says what they are.

    Attributes
    ----------
    base
        The target that is disturbed.
    risk
        Which number is made of the values.
    """

    base: Target
    risk: Risk = eqx.field(static=True)

    def outcomes(self, position: Array) -> tuple[Array, Array]:
        """Values after every disturbance and their weights, 0 for those that do not count.

        A disturbance that breaks the constraint has the value `−inf`, whether it counts or not.
        """
        raise NotImplementedError

    @property
    def num_disturbances(self) -> int:
        """How many disturbances there are: what an evaluation costs in evaluations of the base."""
        raise NotImplementedError

    @property
    def has_tables(self) -> bool:
        """Whether tables of differences of the base give those of the risk."""
        return False

    def log_density(self, position: Array) -> Array:
        """The risk of `U` after the disturbances."""
        return self.risk.summarize(*self.outcomes(position))

    def standard_error(self, position: Array) -> Array:
        """Standard error of the mean, as an estimate of that over all disturbances there could be."""
        values, weights = self.outcomes(position)
        is_counted = weights > 0
        size = jnp.maximum(jnp.sum(is_counted), 2)
        mean = Risk("mean").summarize(values, weights)
        squares = jnp.where(is_counted, jnp.square(values - mean), 0)
        return jnp.sqrt(jnp.sum(squares) / (size - 1) / size)

    def is_valid(self, position: Array) -> Array:
        """As the base, before the disturbance."""
        return self.base.is_valid(position)

    @property
    def offers(self) -> tuple[str, ...]:
        """What can be derived from the base."""
        hidden = set() if self.base.has_constraint else {"is_valid"}
        hidden |= set() if self.has_tables else {"differences"}
        return tuple(name for name in super().offers if name not in hidden)

    def canonical(self, position: Array) -> Array:
        """As the base."""
        return self.base.canonical(position)

    def distance(self, first: Array, second: Array) -> Array:
        """As the base."""
        return self.base.distance(first, second)

    def _weigh(self, values: Array, gradients: Array) -> tuple[Array, Array]:
        """Risk of equally weighted values, and its gradient from theirs."""
        value, pull = jax.vjp(lambda v: self.risk.summarize(v, jnp.ones(v.shape[:1])), values)
        return value, jnp.tensordot(pull(jnp.ones_like(value))[0], gradients, axes=1)

    def _compare(self, values: Array, tables: Array) -> Array:
        """Differences of the risk from values and their tables of differences, disturbances first."""
        ones = jnp.ones((len(values), *(1,) * (tables.ndim - 1)))
        if self.risk.kind == "mean":  # large values would round small differences away
            return self.risk.summarize(tables, ones)
        after = values.reshape(ones.shape) + tables
        return self.risk.summarize(after, ones) - self.risk.summarize(values, ones.reshape(-1))


# ---- flips -------------------------------------------------------------------------------------------------


class _FlippedCache(NamedTuple):
    """What is remembered for every map: the flipped position, the cache of the base, the value."""

    positions: Array
    caches: PyTree
    values: Array


class FlippedAverage(Average):
    """Risk over random flips of sites; those that break the constraint of the base do not count.

    Attributes
    ----------
    shifts
        Maps × sites; see `site_flips`.
    """

    shifts: Array

    _is_to_be_checked = False

    @property
    def num_disturbances(self) -> int:
        """How many maps."""
        return self.shifts.shape[0]

    @property
    def has_tables(self) -> bool:
        """Where the base makes tables and every state is valid."""
        return self.base.has_differences and not self.base.has_constraint

    def outcomes(self, position: Array) -> tuple[Array, Array]:
        """Values after every map; weight 0 where the constraint is broken."""
        values = jax.vmap(self.base.log_density)(self._flip(position))
        return values, (values > -jnp.inf).astype(values.dtype)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """The risk and its gradient, pulled back through the flips."""
        values, gradients = jax.vmap(self.base.value_and_grad)(self._flip(position))
        pull = jax.vmap(lambda shifts, gradient: pull_gradient(self.domain, shifts, gradient))
        if not self.base.has_constraint:
            return self._weigh(values, pull(self.shifts, gradients))
        weights = (values > -jnp.inf).astype(values.dtype)
        finite = jnp.where(weights > 0, values, 0)
        value, weigh = jax.vjp(lambda v: self.risk.summarize(v, weights), finite)
        return value, jnp.tensordot(weigh(jnp.ones_like(value))[0], pull(self.shifts, gradients), axes=1)

    def differences(self, position: Array) -> Array:
        """Exact differences of the risk, from a table of the base per map."""
        if not self.has_tables:
            return Target.differences(self, position)
        flipped, sites = self._flip(position), np.arange(self.domain.num_sites)
        tables = jax.vmap(self.base.differences)(flipped)
        tables = jax.vmap(lambda shifts, table: pull_table(self.domain, shifts, sites, table))(
            self.shifts, jnp.where(jnp.asarray(self.domain.level_mask), tables, 0)
        )
        values = jnp.zeros(len(flipped)) if self._is_mean else jax.vmap(self.base.log_density)(flipped)
        return self._compare(values, tables)

    @property
    def incremental(self) -> Incremental[_FlippedCache] | None:
        """A cache of the base per map."""
        if self.base.incremental is None or self.base.has_constraint:
            return None
        return Incremental(self._init_cache, self._differences_at, self._update_cache)

    def _init_cache(self, position: Array) -> _FlippedCache:
        assert self.base.incremental is not None
        flipped = self._flip(position)
        values = jax.vmap(self.base.log_density)(flipped)
        return _FlippedCache(flipped, jax.vmap(self.base.incremental.init)(flipped), values)

    def _differences_at(self, cache: _FlippedCache, position: Array, sites: Array) -> Array:
        assert self.base.incremental is not None
        differences_at = self.base.incremental.differences

        def one(flipped: Array, own: PyTree, shifts: Array) -> Array:
            return pull_table(self.domain, shifts, sites, differences_at(own, flipped, sites))

        return self._compare(cache.values, jax.vmap(one)(cache.positions, cache.caches, self.shifts))

    def _update_cache(
        self, cache: _FlippedCache, position: Array, site: Array, level: Array
    ) -> _FlippedCache:
        assert self.base.incremental is not None
        _, differences_at, update, *_ = self.base.incremental

        def one(flipped: Array, own: PyTree, value: Array, shifts: Array) -> _FlippedCache:
            moved = flip_level(self.domain, shifts, site, level)
            value += 0 if self._is_mean else differences_at(own, flipped, site[None])[0, moved]
            new = self.domain.replace_sites(flipped, site, moved)
            return _FlippedCache(new, update(own, flipped, site, moved), value)

        return jax.vmap(one)(*cache, self.shifts)

    @property
    def _is_mean(self) -> bool:
        return self.risk.kind == "mean"

    def _flip(self, position: Array) -> Array:
        return jax.vmap(lambda shifts: flip_position(self.domain, shifts, position))(self.shifts)


class SingleChangeAverage(Average):
    """Risk over all changes of one site, or all moves of a permutation: exact, from tables of differences."""

    _is_to_be_checked = False

    @property
    def num_disturbances(self) -> int:
        """How many changes there are."""
        return int((self._weights() > 0).sum())

    def outcomes(self, position: Array) -> tuple[Array, Array]:
        """Values after every change; those that are not allowed have weight 0."""
        if self.domain.is_site_product:
            table = self.base.differences(position)
            is_here = self.domain.squared_jumps(position) == 0
        else:
            table = jnp.stack([differences(self.base, kind, position) for kind in TABLED])
            is_here = jnp.zeros(table.shape, bool)
        exists = ~is_here & (self._weights() > 0)
        is_allowed = exists & (table > -jnp.inf)
        # Selected before the sum, so that a derivative meets no infinity.
        values = self.base.log_density(position) + jnp.where(is_allowed, table, 0)
        values = jnp.where(exists & ~is_allowed, -jnp.inf, values)
        return values.reshape(-1), jnp.where(is_allowed, self._weights(), 0).reshape(-1)

    def _weights(self) -> np.ndarray:
        """Every site, then every other level; every kind of move, then every move."""
        domain = self.domain
        if domain.is_site_product:
            others = np.asarray(domain.num_levels)[:, None] - 1
            weights = domain.level_mask / others
        else:
            masks = np.stack([is_move(kind, domain.num_sites) for kind in TABLED])
            weights = masks / masks.sum(axis=(1, 2), keepdims=True)
        return weights.astype(jnp.result_type(float))


class MovedAverage(Average):
    """Risk over random moves of a permutation, several in a row.

    Attributes
    ----------
    moves
        Disturbances × moves in a row.
    """

    moves: Move

    _is_to_be_checked = False

    @property
    def num_disturbances(self) -> int:
        """How many sequences of moves."""
        return self.moves.first.shape[0]

    def outcomes(self, position: Array) -> tuple[Array, Array]:
        """Values after every sequence of moves; weight 0 where the constraint is broken."""

        def one(moves: Move) -> Array:
            moved, _ = jax.lax.scan(lambda x, move: (apply_move(TABLED, x, move), None), position, moves)
            return self.base.log_density(moved)

        values = jax.vmap(one)(self.moves)
        return values, (values > -jnp.inf).astype(values.dtype)


# ---- scenarios and functions of the user -------------------------------------------------------------------


class ScenarioAverage(Average):
    """Risk over targets that could be the true one, with what the user would do about it.

    Attributes
    ----------
    scenarios
        One target whose arrays have an axis of scenarios in front.
    repair
        What is done once the scenario is known, or `None`.
    num_scenarios
        How many.
    """

    scenarios: Target
    repair: Repair | None
    num_scenarios: int = eqx.field(static=True)

    @property
    def num_disturbances(self) -> int:
        """How many scenarios."""
        return self.num_scenarios

    @property
    def has_tables(self) -> bool:
        """Where scenarios make tables, every state is valid and nothing is repaired."""
        is_free = not (self.scenarios.has_constraint or self.base.has_constraint)
        return self.repair is None and is_free and self.scenarios.has_differences

    def outcomes(self, position: Array) -> tuple[Array, Array]:
        """Values in every scenario; one in which the position is not valid counts as `−inf`."""

        def one(scenario: Target) -> Array:
            return scenario.log_density(position if self.repair is None else self.repair(position, scenario))

        values = self._map(one)
        return values, jnp.ones_like(values)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """The risk and its gradient, from those of every scenario."""
        if self.repair is not None:
            return Target.value_and_grad(self, position)
        return self._weigh(*self._map(lambda scenario: scenario.value_and_grad(position)))

    def differences(self, position: Array) -> Array:
        """Exact differences of the risk, from a table of every scenario."""
        if not self.has_tables:
            return Target.differences(self, position)
        tables = self._map(lambda scenario: scenario.differences(position))
        tables = jnp.where(jnp.asarray(self.domain.level_mask), tables, 0)
        return self._compare(self.outcomes(position)[0], tables)

    @property
    def incremental(self) -> Incremental[tuple[PyTree, Array]] | None:
        """A cache of every scenario."""
        is_free = not (self.scenarios.has_constraint or self.base.has_constraint)
        if self.scenarios.incremental is None or self.repair is not None or not is_free:
            return None
        return Incremental(self._init_cache, self._differences_at, self._update_cache)

    def _init_cache(self, position: Array) -> tuple[PyTree, Array]:
        caches = self._map(lambda scenario: _incremental(scenario).init(position))
        return caches, self.outcomes(position)[0]

    def _differences_at(self, cache: tuple[PyTree, Array], position: Array, sites: Array) -> Array:
        tables = self._map(lambda s, own: _incremental(s).differences(own, position, sites), cache[0])
        return self._compare(cache[1], tables)

    def _update_cache(
        self, cache: tuple[PyTree, Array], position: Array, site: Array, level: Array
    ) -> tuple[PyTree, Array]:
        def one(scenario: Target, own: PyTree, value: Array) -> tuple[PyTree, Array]:
            _, differences_at, update, *_ = _incremental(scenario)
            change = differences_at(own, position, site[None])[0, level]
            return update(own, position, site, level), value + change

        return self._map(one, *cache)

    def _map(self, function: Callable[..., PyTree], *more: PyTree) -> PyTree:
        """What a function makes of every scenario and of what goes with it."""
        return jax.vmap(function, axis_size=self.num_scenarios)(self.scenarios, *more)


def _incremental(scenario: Target) -> Incremental[PyTree]:
    assert scenario.incremental is not None
    return scenario.incremental


class DisturbedAverage(Average):
    """Risk over the user's own disturbance of positions, repaired if the user says how.

    Attributes
    ----------
    disturb
        `disturb(key, position) → position`, of positions as kernels hold them.
    repair
        What is done afterwards, or `None`.
    keys
        One per disturbance.
    """

    disturb: Callable[[Array, Array], Array]
    repair: Repair | None
    keys: Array

    @property
    def num_disturbances(self) -> int:
        """How many keys."""
        return self.keys.shape[0]

    def outcomes(self, position: Array) -> tuple[Array, Array]:
        """Values after every disturbance; one that leads out of the constraint counts as `−inf`."""

        def one(key: Array) -> Array:
            moved = self.disturb(key, position)
            moved = moved if self.repair is None else self.repair(moved, self.base)
            return self.base.log_density(moved)

        values = jax.vmap(one)(self.keys)
        return values, jnp.ones_like(values)
