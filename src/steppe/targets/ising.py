"""Ising models: spins that prefer to agree (or not) with their neighbours.

`U = Σ_<ij> J_ij s_i s_j + Σ_i h_i s_i`, every pair counted once, `s = ±1`. Positive couplings favour
agreement. The inverse temperature is part of `J` and `h`. On bits, `s = 2·position − 1`.
"""

import math
from collections.abc import Sequence

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary, Domain, Spin
from steppe.domain.base import MAX_SITES
from steppe.errors import TargetError
from steppe.targets.bonds import Bonds, DenseBonds, LatticeBonds, graph_bonds
from steppe.targets.checks import array_of_shape, count, number, symmetric_matrix
from steppe.targets.graphs import read_edges
from steppe.targets.pairwise import Pairwise


@checked(TargetError)
def ising_lattice(
    shape: int | Sequence[int],
    coupling: ArrayLike,
    field: ArrayLike = 0.0,
    periodic: bool = True,
    spins: bool = True,
) -> Pairwise:
    """Ising model on a rectangular lattice of any dimension, evaluated by a stencil.

    Parameters
    ----------
    shape
        Length along each axis, `(25, 25)`. Sites are numbered with the last axis fastest.
    coupling
        `J`, the strength of every bond. Raising it makes neighbours agree more.
    field
        `h`: one number, or one per site (flat or of the lattice's shape).
    periodic
        Whether the last site of an axis is bound to the first. Every site is bound to the next one
        along every axis, so a periodic axis of length 2 carries two bonds per pair.
    spins
        Positions in ±1 (`Spin`) or, if false, in 0/1 (`Binary`).

    Notes
    -----
    One evaluation costs a few operations per site; single-site samplers look at the neighbours of a
    site only.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import ising_lattice
    >>> target = ising_lattice((4, 4), coupling=0.5)
    >>> float(target.log_density(jnp.ones(16)))  # 32 bonds of 0.5
    16.0
    """
    lengths = lattice_shape("ising_lattice", shape)
    num_sites = int(np.prod(lengths))
    bonds = LatticeBonds(number("ising_lattice(coupling=...)", coupling), lengths, bool(periodic))
    fields = array_of_shape("ising_lattice(field=...)", field, (num_sites,), lengths)
    return _ising(bonds, fields, num_sites, spins)


@checked(TargetError)
def ising(J: ArrayLike, h: ArrayLike = 0.0, spins: bool = True) -> Pairwise:
    """Ising model with a full coupling matrix: one matrix product gives value and gradient.

    Parameters
    ----------
    J
        Symmetric matrix with a zero diagonal; `U` has `½ sᵀJs`, that is every pair once.
    h
        One number, or one per site.
    spins
        Positions in ±1 (`Spin`) or, if false, in 0/1 (`Binary`).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import ising
    >>> target = ising([[0.0, 1.0], [1.0, 0.0]], h=0.5)
    >>> float(target.log_density(jnp.ones(2)))  # J + 2 h
    2.0
    """
    matrix = symmetric_matrix("ising(J=...)", J)
    num_sites = len(matrix)
    return _ising(DenseBonds(matrix), array_of_shape("ising(h=...)", h, (num_sites,)), num_sites, spins)


@checked(TargetError)
def ising_graph(
    edges: ArrayLike,
    weights: ArrayLike = 1.0,
    num_sites: int | None = None,
    field: ArrayLike = 0.0,
    spins: bool = True,
) -> Pairwise:
    """Ising model on a sparse graph: the cost of an evaluation is the number of edges.

    Parameters
    ----------
    edges
        Pairs of site indices from 0, each pair once; parallel edges add up.
    weights
        `J` of every edge: one number, or one per edge.
    num_sites
        Number of sites, by default one more than the largest index. Isolated sites are fine.
    field
        One number, or one per site.
    spins
        Positions in ±1 (`Spin`) or, if false, in 0/1 (`Binary`).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import ising_graph
    >>> target = ising_graph([[0, 1], [1, 2]], weights=[1.0, -2.0])
    >>> float(target.log_density(jnp.asarray([1.0, 1.0, -1.0])))  # both bonds are satisfied
    3.0
    """
    graph = read_edges("ising_graph", edges, weights, num_sites)
    fields = array_of_shape("ising_graph(field=...)", field, (graph.num_sites,))
    return _ising(graph_bonds(*graph), fields, graph.num_sites, spins)


def lattice_shape(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    """Check the lengths of a lattice."""
    lengths = np.atleast_1d(np.asarray(shape, object)).tolist()
    if not lengths:
        raise TargetError(f"`{name}(shape=...)` must have at least one axis; got {shape!r}.")
    checked_lengths = tuple(count(f"{name}(shape=...)", length) for length in lengths)
    if math.prod(checked_lengths) > MAX_SITES:
        raise TargetError(f"`{name}(shape=...)` must have at most {MAX_SITES} sites; got {shape!r}.")
    return checked_lengths


def spin_domain(num_sites: int, spins: bool) -> Domain:
    """Spins, or the bits that stand for them."""
    return Spin(num_sites) if spins else Binary(num_sites)


def _ising(bonds: Bonds, field: Array, num_sites: int, spins: bool) -> Pairwise:
    return Pairwise(spin_domain(num_sites, spins), bonds, field, reads_bits_as_spins=not spins)
