"""Means after random flips in closed form, for log-densities that are linear in every single site.

A site at level `k` is after a flip at the mean `(S − e_k)/(L − 1)` of its other levels, where `S` is the sum
of the embeddings of all levels: an affine function of where it was. Where sites flip independently, the mean
of a multilinear `U` is `U` at the mean position, `E U(θ′) = U(Aθ + B)`. A quadratic `U` stays quadratic under
any exchangeable flips, with damped couplings: all samplers that use its bonds work on it.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.domain import Domain
from steppe.target import Target
from steppe.target.interactions import Interactions
from steppe.targets.bonds import Bonds, DenseBonds, GraphBonds, LatticeBonds, graph_bonds
from steppe.targets.coupling_tables import TableBonds
from steppe.targets.pairwise import Pairwise


class _Mean(Target):
    """A mean of a multilinear base, which is multilinear itself."""

    base: Target

    @property
    def is_multilinear(self) -> bool:
        """Always: sites are mapped affinely, each on its own."""
        return True

    @property
    def interactions(self) -> Interactions | None:
        """Those of the base: flips tie no sites together."""
        return self.base.interactions

    def canonical(self, position: Array) -> Array:
        """As the base."""
        return self.base.canonical(position)

    def distance(self, first: Array, second: Array) -> Array:
        """As the base."""
        return self.base.distance(first, second)


class MeanAfterFlips(_Mean):
    """`U(Aθ + B)` of a multilinear `U`: its mean where every site flips on its own.

    Attributes
    ----------
    scale, shift
        `A` and `B`, of the shape of a position or broadcast to it.
    """

    scale: Array
    shift: Array

    def log_density(self, position: Array) -> Array:
        """The mean of `U` after the flips, at the cost of one evaluation."""
        return self.base.log_density(self.scale * position + self.shift)

    def value_and_grad(self, position: Array) -> tuple[Array, Array]:
        """The mean and its gradient, at the cost of one evaluation."""
        value, gradient = self.base.value_and_grad(self.scale * position + self.shift)
        return value, self.scale * gradient


class MeanAfterOneFlip(_Mean):
    """`U + (1/n) Σ_i ∇_i U · (mean of the other levels of i − θ_i)`: the mean after one site has flipped.

    Attributes
    ----------
    scale, shift
        `A` and `B` such that `Aθ + B` is the mean of the other levels of every site.
    """

    scale: Array
    shift: Array

    def log_density(self, position: Array) -> Array:
        """The mean of `U` after the flip, at the cost of one evaluation with its derivative."""
        towards = (self.scale * position + self.shift - position) / self.domain.num_sites
        value, change = jax.jvp(self.base.log_density, (position,), (towards,))
        return value + change


def find_mean(target: Target, rates: np.ndarray | None, flips: int | None) -> Target | None:
    """Mean of `U` after flips as a target, where it has a closed form; else `None`.

    Parameters
    ----------
    target
        What is disturbed.
    rates
        Probability with which each site flips, `(num_sites,)`; or
    flips
        how many sites flip, all choices equally likely.
    """
    if target.has_constraint or not target.domain.is_site_product:
        return None
    if isinstance(target, Pairwise):
        damped = _damp_pairs(target, rates, flips)
        if damped is not None:
            return damped
    is_linear = target.is_multilinear or isinstance(target, Pairwise)
    if not is_linear or (rates is None and flips != 1):
        return None
    domain = target.domain
    one_less = np.asarray(domain.num_levels) - 1
    sums = np.stack([domain.points(site).sum(axis=0) for site in range(domain.num_sites)]).reshape(
        domain.shape
    )
    as_column = (-1, *(1,) * (len(domain.shape) - 1))
    certain = np.ones(domain.num_sites) if rates is None else rates
    scale = (1 - certain - certain / one_less).reshape(as_column)
    shift = (certain / one_less).reshape(as_column) * sums
    made = MeanAfterOneFlip if rates is None else MeanAfterFlips
    dtype = jnp.result_type(float)
    return made(domain, target, jnp.asarray(scale, dtype), jnp.asarray(shift, dtype))


# ---- pairs -------------------------------------------------------------------------------------------------


class _Moments(NamedTuple):
    """How sites flip: probabilities that one of them does, and that two of them do."""

    one: float
    both: float


def _damp_pairs(target: Pairwise, rates: np.ndarray | None, flips: int | None) -> Pairwise | None:
    size = target.domain.num_sites
    if flips is not None:
        both = flips * (flips - 1) / (size * (size - 1)) if size > 1 else 0.0
        return _damp_evenly(target, _Moments(flips / size, both))
    assert rates is not None
    if (rates == rates[0]).all():
        return _damp_evenly(target, _Moments(float(rates[0]), float(rates[0]) ** 2))
    return _damp_by_site(target, rates)


def _damp_evenly(target: Pairwise, moments: _Moments) -> Pairwise | None:
    """`E s_i s_j = c s_i s_j + d (σ s_i + σ s_j) + both σ²`, with `σ − τ s` the mean of a flipped site."""
    mean, other = _mean_of_others(target), 1 / (target.domain.max_levels - 1)
    one, both = moments
    only = one - both  # the first of two and not the second
    factor = (1 - one - only) - 2 * other * only + other**2 * both
    bonds = _scale_bonds(target.bonds, jnp.asarray(factor, target.field.dtype))
    if bonds is None:
        return None
    pull = target.bonds.sums(mean)
    field = (1 - one * (1 + other)) * target.field + (only - other * both) * pull
    constant = one * jnp.sum(target.field * mean) + 0.5 * both * jnp.sum(mean * pull)
    return dataclasses.replace(target, bonds=bonds, field=field, offset=target.offset + constant)


def _damp_by_site(target: Pairwise, rates: np.ndarray) -> Pairwise | None:
    """`E s_i s_j = (A_i s_i + B_i)(A_j s_j + B_j)` where sites flip independently with rates of their own."""
    other = 1 / (target.domain.max_levels - 1)
    scale = jnp.asarray(1 - rates * (1 + other), jnp.result_type(float))
    bonds = _scale_bonds(target.bonds, scale)
    if bonds is None:
        return None
    column = (-1, *(1,) * (target.field.ndim - 1))
    mean = jnp.asarray(rates, scale.dtype).reshape(column) * _mean_of_others(target)
    pull = target.bonds.sums(mean)
    constant = jnp.sum(target.field * mean) + 0.5 * jnp.sum(mean * pull)
    field = scale.reshape(column) * (target.field + pull)
    return dataclasses.replace(target, bonds=bonds, field=field, offset=target.offset + constant)


def _mean_of_others(target: Pairwise) -> Array:
    """`σ = S/(L − 1)` of every site, in the values that the bonds multiply."""
    domain: Domain = target.domain
    total = domain.points(0).sum(axis=0).reshape(domain.shape[1:])
    if target.reads_bits_as_spins:
        total = 2 * total - domain.max_levels
    return jnp.broadcast_to(jnp.asarray(total / (domain.max_levels - 1), target.field.dtype), domain.shape)


def _scale_bonds(bonds: Bonds, factors: Array) -> Bonds | None:
    """Bonds times one factor, or, where every site has one, times the product of those of a pair."""

    def scale(strengths: Array, first: Array | np.ndarray, second: Array | np.ndarray) -> Array:
        return strengths * (factors[first] * factors[second] if factors.ndim else factors)

    if isinstance(bonds, DenseBonds):
        first, second = np.indices(bonds.matrix.shape)
        return DenseBonds(scale(bonds.matrix, first, second))
    if isinstance(bonds, LatticeBonds) and not factors.ndim:
        return dataclasses.replace(bonds, coupling=bonds.coupling * factors)
    if isinstance(bonds, LatticeBonds):
        pairs = bonds.pairs()
        edges = np.stack([pairs.sources, pairs.ends], axis=1)[: len(pairs.ends) // 2]
        return graph_bonds(edges, scale(bonds.coupling, *edges.T), len(factors))
    if isinstance(bonds, TableBonds):
        first, second = np.ogrid[: len(bonds.matrix), : len(bonds.matrix)]
        pairs = scale(jnp.ones((len(bonds.matrix),) * 2, bonds.matrix.dtype), first, second)
        return TableBonds(bonds.matrix * pairs[:, None, :, None])
    if not isinstance(bonds, GraphBonds):
        return None
    lists, arrows = bonds.lists, bonds.arrows
    if lists is not None:
        sites = np.arange(bonds.num_sites)
        lists = lists._replace(strengths=scale(lists.strengths, lists.neighbours, sites))
    if arrows is not None:
        arrows = arrows._replace(strengths=scale(arrows.strengths, arrows.sources, arrows.ends))
    return GraphBonds(lists, arrows, bonds.num_sites)
