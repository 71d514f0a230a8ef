"""Updates of all sites of one colour, by what is known of a target.

Each says how chains enter and leave a sweep, what the log-weights of a colour's sites are, and how they move.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.compiling import materialize
from steppe.kernel.blocks.coloring import Color, Coloring, PaddedColor
from steppe.kernel.density import JointDensity
from steppe.random import draws
from steppe.target.interactions import PairForm

# Neighbours that are added up in one loop; more of them take several.
UNROLLED = 8


class Products(NamedTuple):
    """Sites of two levels whose pairs count with the product of their values."""

    coloring: Coloring
    density: JointDensity
    form: PairForm

    def enter(self, position: Array) -> Array:
        """Return the values of the sites sorted by colour, and 0 behind the last."""
        is_high = position[self.coloring.order] > self.density.domain.points(0).mean()
        return jnp.pad(jnp.where(is_high, *self._levels(position)), ((0, self.coloring.num_behind), (0, 0)))

    def log_weights(self, values: Array, color: Color | PaddedColor) -> Array:
        """Return log-weights of the levels, an axis in front, up to a constant per site."""
        early, late = self._sums(values, color)
        upper = self._slope * (early + late + self._field(color))
        return jnp.stack([jnp.zeros_like(upper), upper])

    def update(
        self, values: Array, color: Color | PaddedColor, uniforms: Array, overrelaxation: Array
    ) -> tuple[Array, Array, int]:
        """Move the sites of one colour; return what they add to the sum over sites and pairs."""
        high, low = self._levels(values)

        def draw(
            uniforms: Array, old: Array, early: Array, late: Array, field: Array, slope: Array, over: Array
        ) -> Array:
            is_high = draws.switch(uniforms, slope * (early + late + field), old == high, over)
            return jnp.where(is_high, high, low)

        early, late = self._sums(values, color)
        # As large as everything else: arrays of one shape are gone through as one long row.
        field = jnp.broadcast_to(self._field(color), uniforms.shape)
        old = color.slice(values)
        new = materialize(draw, uniforms, old, early, late, field, self._slope, overrelaxation)
        values = color.write(values, new)
        return values, _sum_columns(color.keep_own(new * (early + field))), 0

    def leave(self, values: Array, total: Array) -> tuple[Array, Array]:
        """Return positions and their log-densities."""
        low, high = self.density.domain.points(0)[:, 0]
        is_high = values[self.coloring.places] == self._levels(values)[0]
        return jnp.where(is_high, *_numbers(values, high, low)), self.form.scale * total + self.form.offset

    def count_changes(self, values: Array, start: Array) -> Array:
        """Count the sites that differ."""
        return jnp.sum(values != start, axis=0, dtype=jnp.int32)

    def _levels(self, like: Array) -> tuple[Array, Array]:
        """Values of the upper and the lower level."""
        assert self.form.values is not None
        low, high = self.form.values
        return _numbers(like, high, low)

    @property
    def _slope(self) -> Array:
        """What the logit of the upper level gains with the sum over a site's neighbours and its field."""
        assert self.form.values is not None
        low, high = self.form.values
        return (high - low) * self.density.inverse_temperature * self.form.scale

    def _field(self, color: Color | PaddedColor) -> Array:
        return self.form.field[color.sites][:, None]

    def _sums(self, values: Array, color: Color | PaddedColor) -> tuple[Array, Array]:
        """Sums over neighbours of earlier and of later colours."""
        zero = jnp.zeros((len(color.sites), values.shape[1]), values.dtype)
        return _split_sums(self.form, color, lambda own, strength: strength * values[own], zero)


class Agreements(NamedTuple):
    """Sites of several levels whose pairs count where their levels agree."""

    coloring: Coloring
    density: JointDensity
    form: PairForm

    def enter(self, position: Array) -> Array:
        """Return the levels of the sites sorted by colour, and −1 behind the last."""
        levels = materialize(_count_levels, position)
        sorted_levels = _gather(levels, self.coloring.order)
        return jnp.pad(sorted_levels, ((0, self.coloring.num_behind), (0, 0)), constant_values=-1)

    def log_weights(self, values: Array, color: Color | PaddedColor) -> Array:
        """Return log-weights of the levels, an axis in front."""
        early, late = self._sums(values, color)
        return self._scale * (early + late + self._field(color))

    def update(
        self, values: Array, color: Color | PaddedColor, uniforms: Array, overrelaxation: Array
    ) -> tuple[Array, Array, int]:
        """Move the sites of one colour; return what they add to the sum over sites and pairs."""
        early, late = self._sums(values, color)
        field = jnp.broadcast_to(self._field(color), early.shape)
        weights = materialize(
            lambda first, second, field, scale: scale * (first + second + field),
            *(table.reshape(len(table), -1) for table in (early, late, field)),
            self._scale,
        ).reshape(field.shape)
        new = draws.move(uniforms, weights, color.slice(values), overrelaxation)
        values = color.write(values, new)
        row, table = new.reshape(-1), (early + field).reshape(len(field), -1)
        chosen = sum(jnp.where(row == k, terms, 0) for k, terms in enumerate(table))
        return values, _sum_columns(color.keep_own(jnp.asarray(chosen).reshape(new.shape))), 0

    def leave(self, values: Array, total: Array) -> tuple[Array, Array]:
        """Return positions and their log-densities."""
        levels = materialize(_gather, values, self.coloring.places)
        is_at = levels[:, None] == jnp.arange(self._num_levels)[:, None]
        return is_at.astype(total.dtype), self.form.scale * total + self.form.offset

    def count_changes(self, values: Array, start: Array) -> Array:
        """Count the sites that differ."""
        return jnp.sum(values != start, axis=0, dtype=jnp.int32)

    @property
    def _num_levels(self) -> int:
        return self.density.domain.max_levels

    @property
    def _scale(self) -> Array:
        return self.density.inverse_temperature * self.form.scale

    def _is_at(self, levels: Array) -> Array:
        """Whether a site is at a level, an axis of levels in front."""
        return levels == jnp.arange(self._num_levels)[:, None]

    def _field(self, color: Color | PaddedColor) -> Array:
        return self.form.field[color.sites].T[..., None]

    def _sums(self, values: Array, color: Color | PaddedColor) -> tuple[Array, Array]:
        shape = len(color.sites), values.shape[1]

        def count(own: Array, strength: Array) -> Array:
            strength = jnp.broadcast_to(strength, shape).reshape(-1)
            # In one long row, as everything else: XLA vectorises the last axis of arrays with several.
            return strength * self._is_at(materialize(_gather, values, own).reshape(-1))

        zero = jnp.zeros((self._num_levels, math.prod(shape)), self.form.field.dtype)
        early, late = _split_sums(self.form, color, count, zero)

        def unfold(table: Array) -> Array:
            return jnp.broadcast_to(table, zero.shape).reshape(self._num_levels, *shape)

        return unfold(early), unfold(late)


class Conditionals(NamedTuple):
    """Sites of a target that gives its conditionals itself, or a table of differences."""

    coloring: Coloring
    density: JointDensity

    def enter(self, position: Array) -> Array:
        """Take positions as they are."""
        return position

    def log_weights(self, values: Array, color: Color | PaddedColor) -> Array:
        """Return log-weights of the levels, an axis in front, up to a constant per site."""
        target = self.density.target

        def of_chain(position: Array) -> Array:
            if target.has_differences and "conditional" not in target.offers:
                return target.differences(position)[color.sites].T
            return jax.vmap(target.conditional, (None, 0), 1)(position, color.sites)

        weights = jax.vmap(of_chain, -1, -1)(values)
        largest = jnp.max(jnp.where(self._is_broken(weights), -jnp.inf, weights), axis=0)
        return self.density.inverse_temperature * (weights - largest)

    def update(
        self, values: Array, color: Color | PaddedColor, uniforms: Array, overrelaxation: Array
    ) -> tuple[Array, int, Array]:
        """Move the sites of one colour; broken log-weights are left out, and counted."""
        domain, weights = self.density.domain, self.log_weights(values, color)
        is_broken = self._is_broken(weights)
        weights = jnp.where(is_broken, -jnp.inf, weights)
        current = jax.vmap(domain.to_levels, -1, -1)(values)[color.sites].astype(jnp.int32)
        levels = draws.move(uniforms, weights, current, overrelaxation)
        replace = jax.vmap(domain.replace_sites, (-1, None, -1), -1)
        return replace(values, color.sites, levels), 0, jnp.sum(is_broken, axis=(0, 1), dtype=jnp.int32)

    def leave(self, values: Array, total: Array) -> tuple[Array, Array]:
        """Evaluate the positions."""
        return values, jax.vmap(self.density.target.log_density, -1)(values)

    def count_changes(self, values: Array, start: Array) -> Array:
        """Count the sites that differ."""
        differs = jax.vmap(self.density.domain.differs, -1, -1)(values, start)
        return jnp.sum(differs, axis=0, dtype=jnp.int32)

    def _is_broken(self, weights: Array) -> Array:
        return jnp.isnan(weights) | (weights == jnp.inf)


def _gather(values: Array, places: Array) -> Array:
    return values[places]


def _count_levels(position: Array) -> Array:
    """Levels of one-hot sites, whose levels stand on the second axis."""
    levels = sum(level * position[:, level] for level in range(position.shape[1]))
    return jnp.asarray(levels).astype(jnp.int32)


def _numbers(like: Array, first: float, second: float) -> tuple[Array, Array]:
    return jnp.asarray(first, like.dtype), jnp.asarray(second, like.dtype)


def _split_sums(
    form: PairForm, color: Color | PaddedColor, term: Callable[[Array, Array], Array], zero: Array
) -> tuple[Array, Array]:
    """Sums of terms over neighbours of earlier and of later colours."""
    split, num_slots = color.num_earlier, len(color.neighbours)
    if color.strengths is None:
        strengths = jnp.broadcast_to(form.strengths, num_slots)
    else:
        strengths = form.strengths[color.strengths][..., None]

    def add(total: Array, slot: tuple[Array, Array]) -> tuple[Array, None]:
        return total + term(*slot), None

    def add_all(first: int, last: int) -> Array:
        slots = color.neighbours[first:last], strengths[first:last]
        if last - first > UNROLLED:
            return jax.lax.scan(add, zero, slots, unroll=UNROLLED)[0]
        return sum((term(*slot) for slot in zip(*slots, strict=True)), jnp.zeros((1,) * zero.ndim))

    return add_all(0, split), add_all(split, num_slots)


def _sum_columns(terms: Array) -> Array:
    """Sum over the first axis, as a product with ones; see `steppe.numerics.total`."""
    return materialize(
        lambda terms: jnp.matmul(jnp.ones(len(terms), terms.dtype), terms, precision="highest"), terms
    )
