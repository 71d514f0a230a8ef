"""Chromatic Gibbs: all sites of one colour at once from their exact conditionals, colour after colour.

Sites of one colour do not interact, so given all others they are independent, and drawing them together is
drawing them one after another (Gonzalez et al. 2011). Chains stand on the last axis: what is looked up for
a site is then a row of numbers, one per chain. `jax.vmap` of a step reaches `step_many` by a rule of its own.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_batching import custom_vmap
from jaxtyping import PyTree

from steppe.compiling import materialize
from steppe.errors import RecipeError
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.site_proposal import check_sites
from steppe.kernel.types import POSITION, ChainState, StepInfo
from steppe.pytree import is_concrete
from steppe.random import draws
from steppe.target import Target
from steppe.target.interactions import Interactions, PairForm, check_interactions, color_sites

# Neighbours that are added up in one loop; more of them take several.
UNROLLED = 8


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


class Moved(NamedTuple):
    """Many chains after a sweep, chains on the last axis."""

    position: Array
    log_density: Array
    num_flips: Array
    num_nonfinite: Array


class ManyChainsBlock(eqx.Module):
    """What blocks share that remember nothing and step all chains in one call of `step_many`."""

    moves = POSITION
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False
    chains_last = True

    def init(self, density: JointDensity, state: ChainState, previous: tuple[()] | None = None) -> tuple[()]:
        """Nothing is remembered."""
        return ()

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """Step a chain; mapped over chains, all of them in one call."""
        moved = step_chain(self, density, keys.position, state.position)
        info = StepInfo(
            acceptance_rate=jnp.ones((), moved.log_density.dtype),
            is_accepted=jnp.ones((), bool),
            num_flips=moved.num_flips,
            num_nonfinite=moved.num_nonfinite,
        )
        return state._replace(position=moved.position, log_density=moved.log_density), own, info

    @abstractmethod
    def step_many(self, density: JointDensity, keys: Array, position: Array) -> Moved:
        """Step many chains once, which stand on the last axis; the inverse temperature may differ."""


class ChromaticBlock(ManyChainsBlock):
    """Resample every site once, all sites of a colour at a time.

    Attributes
    ----------
    coloring
        The colours of the sites of a target; made when the block is prepared for one.
    """

    component_id = "chromatic-block"

    coloring: Coloring | None = None

    def check(self, name: str, target: Target) -> None:
        """Refuse targets that do not say which sites interact, or whose log-density says otherwise."""
        check_sites(name, target, 1)
        if target.interactions is None:
            raise RecipeError(
                f"`{name}` moves sites that do not interact at once, and this target does not say which do. "
                "Give pairs of sites as `Target(..., interactions=pairs)`, or use `gibbs()`."
            )
        if target.has_constraint:
            raise RecipeError(
                f"`{name}` moves many sites at once and cannot see how a constraint (`is_valid`) ties them. "
                "Use `gibbs()`, or put −inf into the conditionals of levels that neighbours forbid."
            )
        if target.pair_form is None and is_concrete(target):
            with jax.ensure_compile_time_eval():
                check_interactions(target)

    def prepare(self, target: Target) -> "ChromaticBlock":
        """Colour the sites of a target."""
        assert target.interactions is not None
        return ChromaticBlock(make_coloring(target.interactions, target.domain.num_sites))

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: a sweep looks at every pair once, as an evaluation does."""
        if density.target.pair_form is not None:
            return 1
        return 1 + density.domain.num_sites * density.domain.max_levels

    def step_many(self, density: JointDensity, keys: Array, position: Array) -> Moved:
        """One sweep of many chains, which stand on the last axis; the inverse temperature may differ."""
        sites = self._conditionals(density)
        values = start = sites.enter(position)
        uniforms = draws.uniform_columns(keys, density.domain.num_sites)
        energy, num_nonfinite = jnp.zeros(keys.shape, position.dtype), jnp.zeros(keys.shape, jnp.int32)
        for color in sites.coloring.colors:
            own = uniforms[color.start : color.start + len(color.sites)]
            values, gained, broken = sites.update(values, color, own)
            energy, num_nonfinite = energy + gained, num_nonfinite + broken
        return Moved(*sites.leave(values, energy), sites.count_changes(values, start), num_nonfinite)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Product over colours of the matrices that draw its sites independently."""
        matrix = np.eye(density.domain.num_states)
        for probabilities, color in zip(*self._enumerate(density), strict=True):
            matrix = matrix @ _join(density, np.asarray(probabilities, float), np.asarray(color.sites))
        return matrix

    def _enumerate(self, density: JointDensity) -> tuple[list[Array], tuple[Color, ...]]:
        """Probabilities of the levels of the sites of every colour, given every position."""
        sites = self._conditionals(density)
        values = sites.enter(jnp.moveaxis(density.domain.enumerate(), 0, -1))
        colors = sites.coloring.colors
        return [jax.nn.softmax(sites.log_weights(values, color), axis=0) for color in colors], colors

    def _conditionals(self, density: JointDensity) -> "Agreements | Products | Conditionals":
        coloring, form = self.coloring, density.target.pair_form
        assert coloring is not None
        if form is None:
            return Conditionals(coloring, density)
        return (Agreements if form.values is None else Products)(coloring, density, form)


def _join(density: JointDensity, probabilities: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Matrix of independent draws at some sites: nothing else changes."""
    levels = np.asarray(density.domain.to_levels(density.domain.enumerate())).astype(int)
    others = np.delete(levels, sites, axis=1)
    matrix = (others[:, None] == others[None]).all(axis=2).astype(float)
    for place, site in enumerate(sites):
        matrix *= probabilities[levels[:, site], place].T
    return matrix


# What of a step is mapped where chains are: everything.
EVERY_ONE: PyTree[bool] = Moved(True, True, True, True)  # pyright: ignore[reportArgumentType]


# ---- one step under `vmap` ---------------------------------------------------------------------------------


@custom_vmap
def step_chain(block: ManyChainsBlock, density: JointDensity, key: Array, position: Array) -> Moved:
    """Step one chain by `step_many`; under `vmap`, all chains by one call of it."""
    moved = block.step_many(density, key[None], position[..., None])
    return jax.tree.map(lambda array: array[..., 0], moved)


@step_chain.def_vmap
def _map_step(
    axis_size: int,
    is_mapped: tuple[PyTree, ...],
    block: ManyChainsBlock,
    density: JointDensity,
    key: Array,
    position: Array,
) -> tuple[Moved, PyTree[bool]]:
    of_density = is_mapped[1]
    if any(jax.tree.leaves((is_mapped[0], of_density.target, of_density.coupling, of_density.penalty))):
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, tuple(is_mapped))
        moved = jax.vmap(step_chain.fun, axes, axis_size=axis_size)(block, density, key, position)
        return moved, EVERY_ONE
    keys = key if is_mapped[2] else jnp.broadcast_to(key, (axis_size,))
    positions = position if is_mapped[3] else jnp.broadcast_to(position, (axis_size, *position.shape))
    moved = block.step_many(density, keys, jnp.moveaxis(positions, 0, -1))
    return jax.tree.map(lambda array: jnp.moveaxis(array, -1, 0), moved), EVERY_ONE


# ---- conditionals of the sites of a colour -----------------------------------------------------------------


class Products(NamedTuple):
    """Sites of two levels whose pairs count with the product of their values."""

    coloring: Coloring
    density: JointDensity
    form: PairForm

    def enter(self, position: Array) -> Array:
        """Return the values of the sites sorted by colour, and 0 behind the last."""
        is_high = position[self.coloring.order] > self.density.domain.points(0).mean()
        return jnp.pad(jnp.where(is_high, *self._levels(position)), ((0, 1), (0, 0)))

    def log_weights(self, values: Array, color: Color) -> Array:
        """Return log-weights of the levels, an axis in front, up to a constant per site."""
        early, late = self._sums(values, color)
        upper = self._slope * (early + late + self._field(color))
        return jnp.stack([jnp.zeros_like(upper), upper])

    def update(self, values: Array, color: Color, uniforms: Array) -> tuple[Array, Array, int]:
        """Resample the sites of one colour; return what they add to the sum over sites and pairs."""
        high, low = self._levels(values)

        def draw(uniforms: Array, early: Array, late: Array, field: Array, slope: Array) -> Array:
            return jnp.where(draws.compare(uniforms, slope * (early + late + field)), high, low)

        early, late = self._sums(values, color)
        # As large as everything else: arrays of one shape are gone through as one long row.
        field = jnp.broadcast_to(self._field(color), uniforms.shape)
        new = materialize(draw, uniforms, early, late, field, self._slope)
        values = jax.lax.dynamic_update_slice(values, new, (color.start, 0))
        return values, _sum_columns(new * (early + field)), 0

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

    def _field(self, color: Color) -> Array:
        return self.form.field[color.sites][:, None]

    def _sums(self, values: Array, color: Color) -> tuple[Array, Array]:
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
        return jnp.pad(sorted_levels, ((0, 1), (0, 0)), constant_values=-1)

    def log_weights(self, values: Array, color: Color) -> Array:
        """Return log-weights of the levels, an axis in front."""
        early, late = self._sums(values, color)
        return self._scale * (early + late + self._field(color))

    def update(self, values: Array, color: Color, uniforms: Array) -> tuple[Array, Array, int]:
        """Resample the sites of one colour; return what they add to the sum over sites and pairs."""
        early, late = self._sums(values, color)
        field = self._field(color)
        weights = materialize(
            lambda first, second, field, scale: scale * (first + second + field),
            early,
            late,
            field,
            self._scale,
        )
        new = draws.choose(uniforms, weights)
        values = jax.lax.dynamic_update_slice(values, new, (color.start, 0))
        table = jnp.broadcast_to(early + field, weights.shape)
        return (
            values,
            _sum_columns(jnp.asarray(sum(jnp.where(new == k, row, 0) for k, row in enumerate(table)))),
            0,
        )

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
        return levels == jnp.arange(self._num_levels)[:, None, None]

    def _field(self, color: Color) -> Array:
        return self.form.field[color.sites].T[..., None]

    def _sums(self, values: Array, color: Color) -> tuple[Array, Array]:
        def count(own: Array, strength: Array) -> Array:
            return strength * self._is_at(materialize(_gather, values, own))

        shape = self._num_levels, len(color.sites), values.shape[1]
        return _split_sums(self.form, color, count, jnp.zeros(shape, self.form.field.dtype))


class Conditionals(NamedTuple):
    """Sites of a target that gives its conditionals itself, or a table of differences."""

    coloring: Coloring
    density: JointDensity

    def enter(self, position: Array) -> Array:
        """Take positions as they are."""
        return position

    def log_weights(self, values: Array, color: Color) -> Array:
        """Return log-weights of the levels, an axis in front, up to a constant per site."""
        target = self.density.target

        def of_chain(position: Array) -> Array:
            if target.has_differences and "conditional" not in target.offers:
                return target.differences(position)[color.sites].T
            return jax.vmap(target.conditional, (None, 0), 1)(position, color.sites)

        weights = jax.vmap(of_chain, -1, -1)(values)
        largest = jnp.max(jnp.where(self._is_broken(weights), -jnp.inf, weights), axis=0)
        return self.density.inverse_temperature * (weights - largest)

    def update(self, values: Array, color: Color, uniforms: Array) -> tuple[Array, int, Array]:
        """Resample the sites of one colour; broken log-weights are left out, and counted."""
        weights = self.log_weights(values, color)
        is_broken = self._is_broken(weights)
        levels = draws.choose(uniforms, jnp.where(is_broken, -jnp.inf, weights))
        replace = jax.vmap(self.density.domain.replace_sites, (-1, None, -1), -1)
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
    form: PairForm, color: Color, term: Callable[[Array, Array], Array], zero: Array
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
