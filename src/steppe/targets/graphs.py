"""Reading graphs: edge lists, weight matrices and `networkx` graphs become checked edges and weights."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple, Protocol, cast, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.errors import TargetError
from steppe.targets.checks import array_of_shape, count, symmetric_matrix


class Graph(NamedTuple):
    """Checked edges of shape `(num_edges, 2)`, one weight per edge, and the number of sites."""

    edges: np.ndarray
    weights: Array
    num_sites: int


@runtime_checkable
class LoadedGraph(Protocol):
    """A graph of `steppe.datasets`."""

    @property
    def edges(self) -> np.ndarray: ...  # noqa: D102
    @property
    def weights(self) -> np.ndarray: ...  # noqa: D102
    @property
    def num_nodes(self) -> int: ...  # noqa: D102


class Nodes(Protocol):
    """The nodes of a `networkx` graph, alone or with an attribute each."""

    def __iter__(self) -> Iterator[Hashable]: ...
    def __call__(self, *, data: str, default: float) -> Iterable[tuple[Hashable, float]]: ...  # noqa: D102


@runtime_checkable
class NetworkxGraph(Protocol):
    """What is used of a `networkx` graph."""

    @property
    def nodes(self) -> Nodes: ...  # noqa: D102
    @property
    def edges(self) -> Callable[..., Iterable[tuple[Hashable, Hashable, float]]]: ...  # noqa: D102
    def is_directed(self) -> bool: ...  # noqa: D102


GraphLike = ArrayLike | LoadedGraph | NetworkxGraph


def read_edges(name: str, edges: ArrayLike, weights: ArrayLike, num_sites: int | None) -> Graph:
    """Check an edge list.

    Parameters
    ----------
    name
        The function the arguments were given to, for messages.
    edges
        Pairs of site indices from 0. Parallel edges add up; an edge from a site to itself is refused.
    weights
        One number, or one per edge.
    num_sites
        Number of sites, or `None` for one more than the largest index.
    """
    pairs = np.asarray(edges)
    if pairs.size == 0 and num_sites is None:
        raise TargetError(
            f"`{name}(edges=...)` has no edge, and nothing says how many sites there are. Pass an adjacency "
            "matrix, or the number of sites where it is an argument."
        )
    if pairs.size == 0:
        pairs = pairs.reshape(0, 2).astype(int)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise TargetError(
            f"`{name}(edges=...)` must be pairs of site indices, an integer array of shape (num_edges, 2); "
            f"got shape {pairs.shape} and type {pairs.dtype}."
        )
    if num_sites is None:
        num_sites = int(pairs.max(initial=-1)) + 1
    num_sites = count(f"{name}(num_sites=...)", num_sites)
    _check_range(name, pairs, num_sites)
    return Graph(pairs, array_of_shape(f"{name}(weights=...)", weights, (len(pairs),)), num_sites)


def _check_range(name: str, pairs: np.ndarray, num_sites: int) -> None:
    outside = np.argwhere((pairs < 0) | (pairs >= num_sites))
    if len(outside):
        edge = int(outside[0, 0])
        raise TargetError(
            f"`{name}(edges=...)` must hold indices from 0 to {num_sites - 1}; edge {edge} is "
            f"{tuple(pairs[edge].tolist())}. Files that count from 1 need `edges - 1`."
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        edge = int(loops[0])
        raise TargetError(
            f"`{name}(edges=...)`: edge {edge} binds site {pairs[edge, 0]} to itself. Leave such edges out."
        )


def read_graph(name: str, graph: GraphLike, weights: ArrayLike | None, num_nodes: int | None) -> Graph:
    """Check a `networkx` graph, a loaded instance, an edge list, or a symmetric matrix of weights."""
    if isinstance(graph, LoadedGraph):
        _refuse_both(name, weights)
        return read_edges(name, graph.edges, graph.weights, graph.num_nodes)
    if isinstance(graph, NetworkxGraph):
        return _from_networkx(name, graph, weights)
    array = np.asarray(graph)
    is_edge_list = array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu"
    if is_edge_list or array.size == 0 or weights is not None or num_nodes is not None:
        return read_edges(name, graph, 1.0 if weights is None else weights, num_nodes)
    if array.ndim == 2 and array.shape[0] != array.shape[1] and array.shape[1] in (2, 3):
        raise TargetError(
            f"`{name}(graph=...)` must be edges, an integer array of two columns, or a square matrix; got an "
            f"array of shape {array.shape} and type {array.dtype}. Weights are an argument of their own."
        )
    return _from_matrix(name, array)


def as_host_array(values: np.ndarray) -> Array:
    """Numbers in the default float type that stay on the host until a target is made of them."""
    return cast("Array", values.astype(jnp.result_type(float)))


def read_simple_graph(name: str, graph: GraphLike, num_nodes: int | None) -> Graph:
    """Check a graph whose edges are there or not: weights do not count, and no edge may be given twice."""
    network = read_graph(name, graph, None, num_nodes)
    if not isinstance(graph, LoadedGraph | NetworkxGraph) and (np.asarray(network.weights) != 1).any():
        first = int(np.argmax(np.asarray(network.weights) != 1))
        raise TargetError(
            f"`{name}(graph=...)` must be a matrix of zeros and ones; got "
            f"{float(network.weights[first]):g} at {tuple(network.edges[first].tolist())}. Edges have "
            "no weights here; give `matrix != 0`."
        )
    ordered = np.sort(network.edges, axis=1)
    unique, first, counts = np.unique(ordered, axis=0, return_index=True, return_counts=True)
    if len(unique) < len(ordered):
        twice = ordered[first[np.argmax(counts > 1)]]
        places = np.flatnonzero((ordered == twice).all(axis=1))
        raise TargetError(
            f"`{name}(graph=...)` must have every edge once; edges {places[0]} and {places[1]} both join "
            f"{twice[0]} and {twice[1]}. `numpy.unique(numpy.sort(edges, axis=1), axis=0)` leaves one."
        )
    return network


def _from_matrix(name: str, matrix: np.ndarray) -> Graph:
    checked = symmetric_matrix(f"{name}(graph=...)", matrix)
    edges = np.argwhere(np.triu(checked))
    return Graph(edges, checked[edges[:, 0], edges[:, 1]], len(checked))


def _from_networkx(name: str, graph: NetworkxGraph, weights: ArrayLike | None) -> Graph:
    _refuse_both(name, weights)
    if graph.is_directed():
        raise TargetError(f"`{name}(graph=...)` must be undirected; use `graph.to_undirected()`.")
    index = {node: site for site, node in enumerate(graph.nodes)}
    triples = list(graph.edges(data="weight", default=1.0))
    edges = [(index[first], index[second]) for first, second, _ in triples]
    return read_edges(name, np.asarray(edges), np.asarray([weight for *_, weight in triples]), len(index))


def _refuse_both(name: str, weights: ArrayLike | None) -> None:
    if weights is not None:
        raise TargetError(
            f"`{name}(weights=...)` goes with an edge list; a networkx graph carries its own, as the edge "
            "attribute `weight`, and so does a loaded instance."
        )
