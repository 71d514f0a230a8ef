"""Chromatic Gibbs: all sites of one colour at once by their exact conditionals, colour after colour.

Sites of one colour do not interact, so given all others they are independent, and moving them together is
moving them one after another (Gonzalez et al. 2011). A site moves away from its level where its conditional
allows it, which decorrelates faster than a fresh draw and leaves the same distribution invariant.
"""

import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import RecipeError, SlowSamplerWarning
from steppe.kernel.blocks.color_updates import Agreements, Conditionals, Products
from steppe.kernel.blocks.coloring import Color, Coloring, PaddedColor, make_coloring
from steppe.kernel.blocks.many_chains import ManyChainsBlock, Moved
from steppe.kernel.blocks.spin_planes import SpinBonds, find_spin_bonds, sweep_spins
from steppe.kernel.density import JointDensity
from steppe.kernel.parameters import FRACTION, Number, parameter
from steppe.kernel.proposals.site_proposal import check_sites
from steppe.pytree import is_concrete
from steppe.random import draws
from steppe.target.interactions import check_interactions, is_crowded
from steppe.target.log_density import Target

Prepared = tuple[Coloring, SpinBonds | None]
# Values, their sums over sites and pairs, and broken log-weights that were left out.
Carry = tuple[Array, Array, Array]


# What is made of a target, as long as there is one: on a million sites it takes a second.
_PREPARED: "weakref.WeakKeyDictionary[Target, Prepared]" = weakref.WeakKeyDictionary()


class ChromaticBlock(ManyChainsBlock):
    """Resample every site once, all sites of a colour at a time.

    Attributes
    ----------
    overrelaxation
        Probability with which a site moves away from its level as far as its conditional allows, by a
        Metropolis decision (two levels) or the move of Suwa and Todo (several). Otherwise it is drawn afresh
        from its conditional: at 0 a sweep is Gibbs.
    coloring, spins
        The colours of the sites of a target, and the signs of its bonds where they have one strength; made
        when the block is prepared for one.
    """

    component_id = "chromatic-block"

    overrelaxation: Number = parameter(FRACTION)
    coloring: Coloring | None = None
    spins: SpinBonds | None = None

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
        """Colour the sites of a target, once for all recipes."""
        if target not in _PREPARED:
            prepared = _prepare(target)
            if not is_concrete(target):
                return ChromaticBlock(self.overrelaxation, *prepared)
            _PREPARED[target] = prepared
        prepared = _PREPARED[target]
        if is_crowded(len(prepared[0].colors), target.domain.num_sites):
            warnings.warn(
                f"All {target.domain.num_sites} sites interact with one another and need a colour each, so "
                "no two of them move at once. Use `gibbs(num_updates=...)`, which makes the same sweep with "
                "less work.",
                SlowSamplerWarning,
                stacklevel=4,
            )
        return ChromaticBlock(self.overrelaxation, *prepared)

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: a sweep looks at every pair once, as an evaluation does.

        Where the target makes tables of all differences, one is made for every colour.
        """
        target = density.target
        if target.pair_form is not None:
            return 1
        if self.coloring is not None and target.has_differences and "conditional" not in target.offers:
            return 1 + len(self.coloring.colors)
        return 1 + density.domain.num_sites * density.domain.max_levels

    def step_many(self, density: JointDensity, keys: Array, position: Array) -> Moved:
        """One sweep of many chains, which stand on the last axis; the inverse temperature may differ."""
        over = jnp.asarray(self.overrelaxation)
        if self.spins is not None and self.coloring is not None:
            return sweep_spins(density, self.coloring, self.spins, over, keys, position)
        sites = self._conditionals(density)
        values = start = sites.enter(position)
        uniforms = draws.uniform_columns(keys, density.domain.num_sites)
        energy, num_nonfinite = jnp.zeros(keys.shape, position.dtype), jnp.zeros(keys.shape, jnp.int32)
        carry: Carry = values, energy, num_nonfinite
        if density.target.pair_form is None or not sites.coloring.stacks:
            for color in sites.coloring.colors:
                carry = _add(carry, sites.update(carry[0], color, color.slice(uniforms), over))
        else:
            uniforms = jnp.pad(uniforms, ((0, sites.coloring.num_behind), (0, 0)))

            def update(carry: Carry, color: PaddedColor) -> tuple[Carry, None]:
                return _add(carry, sites.update(carry[0], color, color.slice(uniforms), over)), None

            for stack in sites.coloring.stacks:
                carry, _ = jax.lax.scan(update, carry, stack)
        values, energy, num_nonfinite = carry
        return Moved(*sites.leave(values, energy), sites.count_changes(values, start), num_nonfinite)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Product over colours of the matrices that move its sites independently."""
        matrix = np.eye(density.domain.num_states)
        for probabilities, color in zip(*self._enumerate(density), strict=True):
            kernels = _overrelax(np.asarray(probabilities, float), float(self.overrelaxation))
            matrix = matrix @ _join(density, kernels, np.asarray(color.sites))
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


def _prepare(target: Target) -> Prepared:
    """Colours, and the signs of bonds where they have one strength."""
    interactions = target.interactions
    assert interactions is not None
    coloring = make_coloring(interactions, target.domain.num_sites)
    return coloring, find_spin_bonds(target, coloring)


def _add(carry: Carry, moved: tuple[Array, Array | int, Array | int]) -> Carry:
    """Take the new values, and add to what was counted."""
    return moved[0], carry[1] + moved[1], carry[2] + moved[2]


def _overrelax(probabilities: np.ndarray, overrelaxation: float) -> np.ndarray:
    """Probabilities of new levels after every old one, (old, new, …), from those of the conditional.

    Stretches of the circle: the largest is turned onto the one behind it, in front of all others.
    """
    last = probabilities.argmax(axis=0)
    is_last = np.arange(len(probabilities)).reshape(-1, *[1] * last.ndim) == last
    lengths = probabilities / probabilities.max(axis=0)
    ends = np.cumsum(np.where(is_last, 0, lengths), axis=0)
    starts = ends - np.where(is_last, 0, lengths)
    first = np.where(is_last, 0, 1 + starts)[:, None]
    overlaps = np.minimum(first + lengths[:, None], ends) - np.maximum(first, starts)
    with np.errstate(invalid="ignore"):
        moved = np.where(is_last, 0, np.maximum(overlaps, 0)) / lengths[:, None]
    moved += np.where(is_last, 1 - moved.sum(axis=1, keepdims=True), 0)
    moved = np.where(lengths[:, None] > 0, moved, probabilities)
    return overrelaxation * moved + (1 - overrelaxation) * probabilities


def _join(density: JointDensity, kernels: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Matrix of independent moves at some sites: nothing else changes."""
    levels = np.asarray(density.domain.to_levels(density.domain.enumerate())).astype(int)
    others = np.delete(levels, sites, axis=1)
    matrix = (others[:, None] == others[None]).all(axis=2).astype(float)
    states = np.arange(len(levels))[:, None]
    for place, site in enumerate(sites):
        old, new = levels[:, None, site], levels[None, :, site]
        matrix *= kernels[old, new, place, states]
    return matrix
