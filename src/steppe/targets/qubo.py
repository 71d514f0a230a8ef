"""Quadratic optimisation over bits, and cuts of graphs, as distributions to sample.

Both have an inverse temperature: low values spread out, high values concentrate on the best solutions. It is
a traced number, so annealing it never recompiles.
"""

from typing import Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.targets.bonds import Bonds, DenseBonds, graph_bonds, scatter
from steppe.targets.checks import number, positive, real_array, square_matrix, zeros
from steppe.targets.graphs import Graph, GraphLike, as_host_array, read_graph
from steppe.targets.ising import spin_domain
from steppe.targets.pairwise import Pairwise

# Above this fraction of all pairs a full matrix is faster than lists of neighbours.
DENSE_FRACTION = 1 / 8


@runtime_checkable
class SparseMatrix(Protocol):
    """What is used of a matrix of `scipy.sparse`."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    def tocoo(self) -> "Coordinates": ...  # noqa: D102


class Coordinates(Protocol):
    """Entries of a sparse matrix with their places."""

    @property
    def row(self) -> np.ndarray: ...  # noqa: D102
    @property
    def col(self) -> np.ndarray: ...  # noqa: D102
    @property
    def data(self) -> np.ndarray: ...  # noqa: D102


class Qubo(Pairwise):
    """A quadratic function of bits, to be minimised."""

    def objective(self, position: Array) -> Array:
        """`xᵀQx + offset` of one position, smaller is better."""
        return -self.unscale(position)

    def score(self, position: ArrayLike) -> Array:
        """As `objective`."""
        return self.objective(jnp.asarray(position))


class MaxCut(Pairwise):
    """A graph whose nodes are to be split in two parts."""

    def cut_value(self, position: Array) -> Array:
        """Total weight of the edges between the two parts, larger is better."""
        return self.unscale(position)

    def score(self, position: ArrayLike) -> Array:
        """As `cut_value`."""
        return self.cut_value(jnp.asarray(position))

    def canonical(self, position: Array) -> Array:
        """The cut with the first node in the upper part: its mirror image is the same cut."""
        low, high = self.domain.points(0)[:, 0]
        return jnp.where(position[0] == high, position, low + high - position)


@checked(TargetError)
def qubo(
    Q: ArrayLike | SparseMatrix, offset: ArrayLike = 0.0, *, inverse_temperature: ArrayLike = 1.0
) -> Qubo:
    """Quadratic unconstrained binary optimisation: minimise `xᵀQx + offset` over bits.

    `U = −β (xᵀQx + offset)`. As `x² = x`, the diagonal is a linear term, which makes `gradient · flip`
    the exact difference of a flip.

    Parameters
    ----------
    Q
        Square matrix, of numbers or of `scipy.sparse`, which is kept sparse. Only `Q + Qᵀ` matters, so upper
        triangles are welcome. Models of dimod and dictionaries of terms go through `steppe.interop.from_bqm`.
    offset
        A constant, for the value of `objective`; it changes no probability.
    inverse_temperature
        `β > 0`.
    """
    if isinstance(Q, SparseMatrix):
        bonds, diagonal = _read_sparse(Q)
    else:
        matrix = square_matrix("qubo(Q=...)", Q)
        both, diagonal = matrix + matrix.T, matrix.diagonal()
        bonds = DenseBonds(-both * (1 - np.eye(len(matrix), dtype=both.dtype)))
    beta = positive("qubo(inverse_temperature=...)", inverse_temperature)
    constant = -number("qubo(offset=...)", offset)
    return Qubo(
        Binary(len(diagonal)), bonds, as_host_array(-diagonal), offset=constant, inverse_temperature=beta
    )


def _read_sparse(matrix: SparseMatrix) -> tuple[Bonds, np.ndarray]:
    """Bonds and diagonal of a matrix in coordinates; entries given twice add up."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise TargetError(f"`qubo(Q=...)` must be a square matrix; got one of shape {matrix.shape}.")
    entries = matrix.tocoo()
    values = real_array("qubo(Q=...)", np.asarray(entries.data))
    rows, columns = np.asarray(entries.row), np.asarray(entries.col)
    diagonal = np.zeros(matrix.shape[0], values.dtype)
    is_linear = rows == columns
    np.add.at(diagonal, rows[is_linear], values[is_linear])
    pairs = np.sort(np.stack([rows, columns], axis=1)[~is_linear], axis=1)
    unique, place = np.unique(pairs, axis=0, return_inverse=True)
    weights = np.bincount(place.ravel(), values[~is_linear], len(unique)).astype(values.dtype)
    return bonds_of(Graph(unique, as_host_array(-weights), matrix.shape[0])), diagonal


@checked(TargetError)
def max_cut(
    graph: GraphLike,
    weights: ArrayLike | None = None,
    *,
    num_nodes: int | None = None,
    spins: bool = True,
    inverse_temperature: ArrayLike = 1.0,
) -> MaxCut:
    """Maximum cut: split the nodes in two parts so that the edges between them weigh most.

    `U = β · cut`, and the cut is `Σ_<ij> w_ij (1 − s_i s_j) / 2`.

    Parameters
    ----------
    graph
        Edges, an integer array of two columns counting from 0; a symmetric matrix of weights; or a
        `networkx` graph, whose edge attribute `weight` counts and whose nodes are numbered in the order
        of `graph.nodes`; or a loaded instance, as `steppe.datasets.load("gset:G1")` and
        `steppe.datasets.read_gset(path)` give.
    weights
        For an edge list: one number, or one per edge; 1 by default. May be negative.
    num_nodes
        For an edge list: the number of nodes, by default one more than the largest index.
    spins
        Positions in ±1 (`Spin`) or, if false, in 0/1 (`Binary`).
    inverse_temperature
        `β > 0`.
    """
    network = read_graph("max_cut", graph, weights, num_nodes)
    beta = positive("max_cut(inverse_temperature=...)", inverse_temperature)
    return MaxCut(
        domain=spin_domain(network.num_sites, spins),
        bonds=bonds_of(network._replace(weights=-0.5 * network.weights)),
        field=zeros(network.num_sites),
        offset=0.5 * network.weights.sum(),
        inverse_temperature=beta,
        reads_bits_as_spins=not spins,
    )


def bonds_of(graph: Graph) -> Bonds:
    """Return the bonds of a graph in the form that is evaluated fastest."""
    edges, weights, num_sites = graph
    if len(edges) < DENSE_FRACTION * num_sites * (num_sites - 1) / 2:
        return graph_bonds(edges, weights, num_sites)
    upper = scatter((num_sites, num_sites), (edges[:, 0], edges[:, 1]), weights)
    return DenseBonds(upper + upper.T)
