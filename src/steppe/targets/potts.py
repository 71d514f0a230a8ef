"""Potts models: sites of several unordered levels that prefer to agree with their neighbours."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Categorical
from steppe.errors import TargetError
from steppe.targets.bonds import Bonds, LatticeBonds, graph_bonds
from steppe.targets.checks import array_of_shape, count, number
from steppe.targets.graphs import read_edges
from steppe.targets.ising import lattice_shape
from steppe.targets.pairwise import Pairwise


@checked(TargetError, num_sites="[1, inf)")
def potts(
    shape_or_edges: Sequence[int] | ArrayLike,
    num_levels: int,
    coupling: ArrayLike,
    field: ArrayLike = 0.0,
    *,
    periodic: bool = True,
    num_sites: int | None = None,
) -> Pairwise:
    """Potts model `U = Σ_<ij> J_ij [k_i = k_j] + Σ_i h_i(k_i)` on one-hot sites.

    Parameters
    ----------
    shape_or_edges
        The shape of a lattice, `(16, 16)`, or edges as for `ising_graph`, an integer array of shape
        `(num_edges, 2)`.
    num_levels
        Number of levels of every site, at least 2.
    coupling
        `J`: one number, or for edges one per edge. Positive values favour agreement.
    field
        `h`: one number, one per level, or a table of sites × levels.
    periodic
        For a lattice: whether the last site of an axis is bound to the first.
    num_sites
        For edges: the number of sites, by default one more than the largest index.

    Examples
    --------
    >>> from steppe.targets import potts
    >>> target = potts((4, 4), num_levels=3, coupling=0.5)
    >>> float(target.log_density(target.domain.from_levels([2] * 16)))  # 32 bonds of 0.5
    16.0
    """
    levels = count("potts(num_levels=...)", num_levels, minimum=2)
    bonds, sites = _bonds(shape_or_edges, coupling, periodic, num_sites)
    fields = array_of_shape("potts(field=...)", field, (sites, levels), (levels,))
    return Pairwise(Categorical(sites, levels), bonds, fields)


def _bonds(
    shape_or_edges: Sequence[int] | ArrayLike, coupling: ArrayLike, periodic: bool, num_sites: int | None
) -> tuple[Bonds, int]:
    if np.ndim(shape_or_edges) == 2:
        graph = read_edges("potts", np.asarray(shape_or_edges), coupling, num_sites)
        return graph_bonds(*graph), graph.num_sites
    shape = lattice_shape("potts", cast("Sequence[int]", shape_or_edges))
    strength = number("potts(coupling=...)", coupling)
    return LatticeBonds(strength, shape, bool(periodic)), int(np.prod(shape))
