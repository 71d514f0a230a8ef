"""Quadratic optimisation over bits, and cuts of graphs, as distributions to sample.

Both have an inverse temperature: low values spread out, high values concentrate on the best solutions. It is
a traced number, so annealing it never recompiles.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.targets.bonds import Bonds, DenseBonds, graph_bonds, scatter
from steppe.targets.checks import number, positive, square_matrix, zeros
from steppe.targets.graphs import Graph, GraphLike, read_graph
from steppe.targets.ising import spin_domain
from steppe.targets.pairwise import Pairwise

# Above this fraction of all pairs a full matrix is faster than lists of neighbours.
DENSE_FRACTION = 1 / 8


class Qubo(Pairwise):
    """A quadratic function of bits, to be minimised."""

    def objective(self, position: Array) -> Array:
        """`xᵀQx + offset` of one position, smaller is better."""
        return -self.unscale(position)


class MaxCut(Pairwise):
    """A graph whose nodes are to be split in two parts."""

    def cut_value(self, position: Array) -> Array:
        """Total weight of the edges between the two parts, larger is better."""
        return self.unscale(position)

    def canonical(self, position: Array) -> Array:
        """The cut with the first node in the upper part: its mirror image is the same cut."""
        low, high = self.domain.points(0)[:, 0]
        return jnp.where(position[0] == high, position, low + high - position)


@checked(TargetError)
def qubo(Q: ArrayLike, offset: ArrayLike = 0.0, *, inverse_temperature: ArrayLike = 1.0) -> Qubo:
    """Quadratic unconstrained binary optimisation: minimise `xᵀQx + offset` over bits.

    `U = −β (xᵀQx + offset)`. As `x² = x`, the diagonal is a linear term, which makes `gradient · flip`
    the exact difference of a flip.

    Parameters
    ----------
    Q
        Square matrix. Only `Q + Qᵀ` matters, so upper triangles are welcome.
    offset
        A constant, for the value of `objective`; it changes no probability.
    inverse_temperature
        `β > 0`.
    """
    matrix = square_matrix("qubo(Q=...)", Q)
    both = matrix + matrix.T
    bonds = DenseBonds(-both * (1 - np.eye(len(matrix), dtype=both.dtype)))
    beta = positive("qubo(inverse_temperature=...)", inverse_temperature)
    constant = -number("qubo(offset=...)", offset)
    return Qubo(Binary(len(matrix)), bonds, -matrix.diagonal(), offset=constant, inverse_temperature=beta)


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
