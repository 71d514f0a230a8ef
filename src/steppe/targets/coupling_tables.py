"""Potts models with a table of couplings per pair of sites, as contact models of proteins have (DCA)."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Categorical
from steppe.errors import TargetError
from steppe.target import Incremental
from steppe.target.interactions import Interactions, PairForm
from steppe.targets.bonds import Bonds, Remembered, Sums
from steppe.targets.checks import array_of_shape, positive, real_array
from steppe.targets.pairwise import Pairwise


class TableBonds(Bonds):
    """A table `J_ij(a, b)` for every pair of sites, as one matrix over sites and levels.

    Attributes
    ----------
    matrix
        Of shape `(sites, levels, sites, levels)`, symmetric, zero where a site would meet itself.
    """

    matrix: Array

    @property
    def strengths(self) -> Array:
        """The matrix, row after row."""
        return self.matrix.reshape(-1)

    def _pairs(self) -> Interactions:
        ends, sources = np.nonzero(np.abs(np.asarray(self.matrix)).max(axis=(1, 3)))
        return Interactions(sources, ends)

    def sums(self, values: Array) -> Array:
        """`J @ values`, with the sites and levels of a position as one axis."""
        square = self.matrix.reshape(values.size, values.size)
        return jnp.matmul(square, values.reshape(-1), precision="highest").reshape(values.shape)

    def sum_batch(self, stack: Array) -> Array:
        """The same for a stack of positions, as one product of matrices."""
        rows = stack.reshape(len(stack), -1)
        square = self.matrix.reshape(rows.shape[1], rows.shape[1])
        return jnp.matmul(rows, square, precision="highest").reshape(stack.shape)


class TablePotts(Pairwise):
    """Sites of several levels with a table of couplings for every pair."""

    @property
    def pair_form(self) -> PairForm | None:
        """None: pairs do not count by agreement."""
        return None

    @property
    def incremental(self) -> Incremental[Sums]:
        """Sums for every level of every site; with many levels nearly every update changes its site."""
        return Incremental(self.init_cache, self.differences_at, self.update_cache, table_size=1)

    def init_cache(self, position: Array) -> Sums:
        """Remember the sums and the levels."""
        return Remembered(self.bonds.sums(position), self.domain.to_levels(position).astype(jnp.int32))

    def differences_at(self, cache: Sums, position: Array, sites: Array) -> Array:
        """Exact differences of one-site changes at a few sites."""
        assert isinstance(cache, Remembered)
        rows = self.inverse_temperature * (cache.sums[sites] + self.field[sites])
        return rows - jnp.take_along_axis(rows, cache.values[sites][:, None], axis=1)

    def update_cache(self, cache: Sums, position: Array, site: Array, level: Array) -> Sums:
        """Add the row of the new level and take that of the old one away.

        The position is not read: who reads it while it is written keeps a copy of it alive.
        """
        assert isinstance(cache, Remembered)
        assert isinstance(self.bonds, TableBonds)
        rows = self.bonds.matrix[site]
        levels, change = cache.replace(site, level.astype(jnp.int32))
        return Remembered(cache.sums + rows[level] - rows[level - change], levels)

    def score(self, position: ArrayLike) -> Array:
        """`Σ_<ij> J_ij(k_i, k_j) + Σ_i h_i(k_i)`, larger is better."""
        return self.unscale(jnp.asarray(position))


@checked(TargetError)
def potts_tables(
    couplings: ArrayLike,
    field: ArrayLike = 0.0,
    *,
    edges: ArrayLike | None = None,
    num_sites: int | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> TablePotts:
    """Potts model with coupling tables: `U = β (Σ_<ij> J_ij(k_i, k_j) + Σ_i h_i(k_i))` on one-hot sites.

    Parameters
    ----------
    couplings
        `J`, of shape `(sites, sites, levels, levels)` as direct-coupling analysis writes it, with
        `J[i, j, a, b] = J[j, i, b, a]`; or with `edges` of shape `(num_edges, levels, levels)`. Files are
        read by `potts_tables(*steppe.datasets.read_dca(path))`.
    field
        `h`: one number, one per level, or a table of sites × levels.
    edges
        Pairs of sites from 0, each pair once, the first for the rows of its table.
    num_sites
        For edges: the number of sites, by default one more than the largest index.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.targets import potts_tables
    >>> table = np.asarray([[0.0, 2.0], [-1.0, 0.0]])  # of the levels of site 0 (rows) and of site 1
    >>> target = potts_tables(table[None], edges=[[0, 1]])
    >>> float(target.log_density(target.domain.from_levels([0, 1])))
    2.0
    """
    tables = real_array("potts_tables(couplings=...)", couplings)
    if edges is not None:
        tables = _place(tables, np.asarray(edges), num_sites)
    elif num_sites is not None:
        raise TargetError("`potts_tables(num_sites=...)` goes with `edges`.")
    if tables.ndim != 4 or tables.shape[0] != tables.shape[1] or tables.shape[2] != tables.shape[3]:
        raise TargetError(
            "`potts_tables(couplings=...)` must have shape (sites, sites, levels, levels), or with `edges` "
            f"(num_edges, levels, levels); got {tables.shape}."
        )
    sites, levels = tables.shape[0], tables.shape[2]
    if levels < 2:
        raise TargetError(f"`potts_tables(couplings=...)` needs at least 2 levels; got {levels}.")
    mirrored = tables.transpose(1, 0, 3, 2)
    gap = np.abs(tables - mirrored)
    if gap.max(initial=0) > 1e-5 * max(np.abs(tables).max(initial=0), 1e-30):
        where = tuple(int(place) for place in np.unravel_index(np.argmax(gap), gap.shape))
        raise TargetError(
            "`potts_tables(couplings=...)` must be symmetric, `J[i, j, a, b] = J[j, i, b, a]`; it is not at "
            f"{where}. Give `(J + J.transpose(1, 0, 3, 2)) / 2` if both entries were meant to count half."
        )
    if np.abs(tables[np.arange(sites), np.arange(sites)]).max(initial=0) > 0:
        raise TargetError(
            "`potts_tables(couplings=...)` must be zero where a site meets itself; use `field`."
        )
    fields = array_of_shape("potts_tables(field=...)", field, (sites, levels), (levels,))
    beta = positive("potts_tables(inverse_temperature=...)", inverse_temperature)
    bonds = TableBonds(jnp.asarray(tables.transpose(0, 2, 1, 3)))
    return TablePotts(Categorical(sites, levels), bonds, fields, inverse_temperature=beta)


def _place(tables: np.ndarray, edges: np.ndarray, num_sites: int | None) -> np.ndarray:
    from steppe.targets.graphs import read_edges

    graph = read_edges("potts_tables", edges, 1.0, num_sites)
    if tables.ndim != 3 or len(tables) != len(graph.edges) or tables.shape[1] != tables.shape[2]:
        raise TargetError(
            f"`potts_tables(couplings=...)` must have one square table for each of {len(graph.edges)} edges; "
            f"got shape {tables.shape}."
        )
    levels = tables.shape[1]
    placed = np.zeros((graph.num_sites, graph.num_sites, levels, levels), tables.dtype)
    for (first, second), table in zip(graph.edges, tables, strict=True):
        placed[first, second] += table
        placed[second, first] += table.T
    return placed
