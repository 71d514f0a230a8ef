"""Independent sets, cliques and vertex covers of graphs, as distributions to sample and problems to solve.

The constraint is a penalty for every edge that breaks it. With a penalty above the largest weight of a node,
every local maximum satisfies the constraint; `repair` makes any other position do so.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.targets.bonds import Bonds
from steppe.targets.checks import array_of_shape, positive, real_array
from steppe.targets.graphs import Graph, GraphLike, as_host_array, read_simple_graph
from steppe.targets.pairwise import Pairwise
from steppe.targets.qubo import bonds_of

# A complement has about n²/2 pairs.
MAX_COMPLEMENT = 20_000
PENALTY = 1.0001
# Where searches are led away from what was found: the penalty, how far weights spread, and the least of them.
STRICT_PENALTY, SPREAD, LEAST = 20.0, 2.0, 0.05


class NodeSet(Pairwise):
    """A set of nodes in which no two are joined, or the nodes that are left over by one.

    Attributes
    ----------
    weights
        What every node counts.
    marks_rest
        Whether a position marks the nodes outside the independent set, as a cover does.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import independent_set
    >>> target = independent_set([[0, 1], [1, 2], [2, 3]])
    >>> int(target.count_conflicts(jnp.ones(4)))
    3
    >>> target.repair(jnp.ones(4)).astype(int).tolist()
    [1, 0, 0, 1]
    """

    weights: Array = eqx.field(default_factory=lambda: jnp.ones(()))
    marks_rest: bool = eqx.field(static=True, default=False)

    def score(self, position: ArrayLike) -> Array:
        """Total weight of the marked nodes, whether they satisfy the constraint or not."""
        return jnp.sum(self.weights * jnp.asarray(position))

    def count_conflicts(self, position: ArrayLike) -> Array:
        """Number of edges that break the constraint."""
        members = self._members(position)
        sources, ends, _ = self.bonds.pairs()
        return jnp.sum(members[sources] * members[ends]) / 2

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether no edge breaks the constraint."""
        return float(self.count_conflicts(position)) == 0

    def repair(self, position: ArrayLike) -> Array:
        """Return a position near this one that satisfies the constraint and that no single node improves.

        Nodes with most conflicts leave first; then nodes without conflict come in, those with few neighbours
        per weight first.
        """
        is_in = np.asarray(self._members(position)) > 0.5
        weights = np.broadcast_to(np.asarray(self.weights, float), is_in.shape)
        sources, ends, _ = self.bonds.pairs()
        neighbours = np.split(
            sources[np.argsort(ends, kind="stable")], np.bincount(ends, minlength=len(is_in)).cumsum()
        )
        conflicts = np.asarray([is_in[near].sum() for near in neighbours[:-1]])
        while (is_in & (conflicts > 0)).any():
            worst = np.argmax(np.where(is_in & (conflicts > 0), conflicts / weights, -1))
            is_in[worst] = False
            conflicts[neighbours[worst]] -= 1
        degrees = np.asarray([len(near) for near in neighbours[:-1]])
        for node in np.argsort((1 + degrees) / weights, kind="stable"):
            if not is_in[node] and conflicts[node] == 0:
                is_in[node] = True
                conflicts[neighbours[node]] += 1
        return jnp.asarray(~is_in if self.marks_rest else is_in, jnp.result_type(float))

    @checked(TargetError)
    def avoid(self, visited: ArrayLike) -> "NodeSet":
        """Return the same problem with less weight on nodes that earlier sets had, and a strict penalty.

        Sets that are hidden among nodes of few neighbours, as the san graphs of DIMACS have them, are far
        from what annealing finds; led away from that time after time, it meets them (the penalties on nodes
        of Pullan and Hoos 2006). `score` and `repair` count as before.

        Parameters
        ----------
        visited
            How often sets had each node, such as the mean over them, an average over rounds at best.

        Examples
        --------
        >>> import numpy as np
        >>> from steppe.targets import independent_set
        >>> target = independent_set([[0, 1], [1, 2], [2, 3]])
        >>> target.avoid([1, 0, 1, 0]).field.tolist()  # lowest where sets have been
        [0.05000000074505806, 3.0, 0.05000000074505806, 3.0]
        """
        if self.marks_rest:
            raise TargetError(
                "`vertex_cover(...).avoid(visited)` is not offered. Search the independent set, whose "
                "rest is the cover."
            )
        seen = np.asarray(real_array("avoid(visited=...)", visited), float)
        if seen.shape != self.domain.shape:
            raise TargetError(
                f"`avoid(visited=...)` must have one number per node, {self.domain.num_sites}; got shape "
                f"{seen.shape}."
            )
        excess = seen - seen.mean()
        factor = np.clip(1 - SPREAD * excess / max(np.abs(excess).max(), 1e-9), LEAST, None)
        weights = np.broadcast_to(np.asarray(self.weights), factor.shape)
        sources, ends, _ = self.bonds.pairs()
        edges = np.stack([sources, ends], axis=1)[sources < ends]
        strengths = as_host_array(np.full(len(edges), -STRICT_PENALTY * weights.max()))
        return dataclasses.replace(
            self,
            bonds=bonds_of(Graph(edges, strengths, self.domain.num_sites)),
            field=jnp.asarray(factor * weights, self.field.dtype),
        )

    def _members(self, position: ArrayLike) -> Array:
        members = jnp.asarray(position, jnp.result_type(float))
        return 1 - members if self.marks_rest else members


@checked(TargetError)
def independent_set(
    graph: GraphLike,
    node_weights: ArrayLike = 1.0,
    *,
    num_nodes: int | None = None,
    penalty: float | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> NodeSet:
    """Maximum independent set: mark as many nodes as possible, no two of them joined by an edge.

    `U = β (Σ_i w_i x_i − penalty Σ_<ij> x_i x_j)`.

    Parameters
    ----------
    graph
        Edges, an integer array of two columns counting from 0; a symmetric matrix of zeros and ones; a
        `networkx` graph; or a loaded instance.
    node_weights
        `w`: one positive number, or one per node.
    num_nodes
        For an edge list: the number of nodes, by default one more than the largest index.
    penalty
        For every edge inside the set; by default 1.0001 times the largest weight.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.independent_set([[0, 1], [1, 2], [2, 3], [3, 4]])
    >>> best = steppe.anneal(target, key=jax.random.key(0), num_steps=64).best
    >>> best.astype(int).tolist(), target.is_feasible(best)
    ([1, 0, 1, 0, 1], True)
    """
    return _node_set("independent_set", graph, node_weights, num_nodes, penalty, inverse_temperature)


@checked(TargetError)
def clique(
    graph: GraphLike,
    node_weights: ArrayLike = 1.0,
    *,
    num_nodes: int | None = None,
    penalty: float | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> NodeSet:
    """Maximum clique: mark as many nodes as possible, every two of them joined by an edge.

    It is the independent set of the complement, so that the pairs that interact are those without an edge.

    Parameters
    ----------
    graph, node_weights, num_nodes, inverse_temperature
        As for `independent_set`.
    penalty
        For every pair of marked nodes without an edge; by default 1.0001 times the largest weight. A large
        one leaves hardly anything but cliques to chains, which find less by that on random graphs; see
        `avoid` for cliques that are hidden.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.clique([[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> steppe.anneal(target, key=jax.random.key(0), num_steps=64).best.astype(int).tolist()
    [1, 1, 1, 0]
    """
    network = read_simple_graph("clique", graph, num_nodes)
    return _node_set("clique", _complement(network), node_weights, None, penalty, inverse_temperature)


@checked(TargetError)
def vertex_cover(
    graph: GraphLike,
    node_weights: ArrayLike = 1.0,
    *,
    num_nodes: int | None = None,
    penalty: float | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> NodeSet:
    """Minimum vertex cover: mark as few nodes as possible, at least one end of every edge.

    `U = −β (Σ_i w_i x_i + penalty Σ_<ij> (1 − x_i)(1 − x_j))`.

    Parameters
    ----------
    graph, node_weights, num_nodes, inverse_temperature
        As for `independent_set`.
    penalty
        For every edge with no marked end; by default 1.0001 times the largest weight.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.vertex_cover([[0, 1], [0, 2], [0, 3]])  # a star
    >>> steppe.anneal(target, key=jax.random.key(0), num_steps=64).best.astype(int).tolist()
    [1, 0, 0, 0]
    """
    free = _node_set("vertex_cover", graph, node_weights, num_nodes, penalty, inverse_temperature)
    network = read_simple_graph("vertex_cover", graph, num_nodes)
    degrees = np.bincount(network.edges.ravel(), minlength=network.num_sites)
    strength = _read_penalty("vertex_cover", penalty, np.asarray(free.weights))
    return NodeSet(
        domain=free.domain,
        bonds=free.bonds,
        field=jnp.asarray(strength * degrees - np.asarray(free.weights)),
        offset=jnp.asarray(-strength * len(network.edges)),
        inverse_temperature=free.inverse_temperature,
        weights=free.weights,
        marks_rest=True,
    )


def _node_set(
    name: str,
    graph: GraphLike | Graph,
    node_weights: ArrayLike,
    num_nodes: int | None,
    penalty: float | None,
    inverse_temperature: ArrayLike,
) -> NodeSet:
    network = graph if isinstance(graph, Graph) else read_simple_graph(name, graph, num_nodes)
    weights = array_of_shape(f"{name}(node_weights=...)", node_weights, (network.num_sites,))
    if not (np.asarray(weights) > 0).all():
        site = int(np.argmin(np.asarray(weights)))
        raise TargetError(
            f"`{name}(node_weights=...)` must be positive; node {site} has {float(weights[site]):g}. Leave "
            "out nodes that are never wanted."
        )
    strength = _read_penalty(name, penalty, np.asarray(weights))
    bonds: Bonds = bonds_of(network._replace(weights=as_host_array(np.full(len(network.edges), -strength))))
    return NodeSet(
        domain=Binary(network.num_sites),
        bonds=bonds,
        field=weights,
        inverse_temperature=positive(f"{name}(inverse_temperature=...)", inverse_temperature),
        weights=weights,
    )


def _read_penalty(name: str, penalty: float | None, weights: np.ndarray) -> float:
    if penalty is None:
        return PENALTY * float(weights.max())
    return float(positive(f"{name}(penalty=...)", penalty))


def _complement(graph: Graph) -> Graph:
    if graph.num_sites > MAX_COMPLEMENT:
        raise TargetError(
            f"`clique(graph)` lists the pairs without an edge; a graph of {graph.num_sites} nodes has too "
            f"many. At most {MAX_COMPLEMENT} nodes are taken."
        )
    is_joined = np.eye(graph.num_sites, dtype=bool)
    is_joined[graph.edges[:, 0], graph.edges[:, 1]] = is_joined[graph.edges[:, 1], graph.edges[:, 0]] = True
    edges = np.argwhere(np.triu(~is_joined))
    return Graph(edges, as_host_array(np.ones(len(edges))), graph.num_sites)
