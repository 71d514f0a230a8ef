"""Groups of nodes: colourings, balanced partitions and communities; names of groups do not matter.

`U = β (J Σ_<ij> w_ij [g_i = g_j] − α Σ_g n_g (n_g − 1) / 2)`, with `n_g` the size of group `g`: with `J < 0`
and `α = 0` a colouring, with `J > 0` a partition that `α` keeps balanced, or the posterior of a block model.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Categorical
from steppe.errors import TargetError
from steppe.target import Incremental, Target
from steppe.targets.bonds import GraphBonds, graph_bonds
from steppe.targets.checks import count, number, positive, zeros
from steppe.targets.graphs import Graph, GraphLike, as_host_array, read_graph, read_simple_graph
from steppe.targets.pairwise import TABLE_SIZE, Pairwise
from steppe.targets.qubo import bonds_of


class Coloring(Pairwise):
    """Colours of nodes, of which joined ones should differ.

    Examples
    --------
    >>> from steppe.targets import coloring
    >>> target = coloring([[0, 1], [1, 2], [2, 0]], num_colors=3)
    >>> one, three = target.domain.from_levels([0, 0, 0]), target.domain.from_levels([0, 1, 2])
    >>> int(target.count_conflicts(one)), target.is_feasible(three)
    (3, True)
    >>> target.is_feasible(target.repair(one))
    True
    """

    def count_conflicts(self, position: ArrayLike) -> Array:
        """Number of edges whose ends have the same colour."""
        return jnp.round(-self.unscale(jnp.asarray(position)))

    def score(self, position: ArrayLike) -> Array:
        """Number of edges whose ends differ in colour."""
        return len(self.bonds.pairs().ends) / 2 - self.count_conflicts(position)

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether the ends of every edge differ in colour."""
        return float(self.count_conflicts(position)) == 0

    def repair(self, position: ArrayLike) -> Array:
        """Return a position near this one in which no node alone can lose conflicts.

        A colouring without conflicts need not exist; `is_feasible` says whether this is one.
        """
        colors = np.argmax(np.asarray(position), axis=-1)
        sources, ends, _ = self.bonds.pairs()
        joined = [sources[ends == node] for node in range(len(colors))]
        is_changed = True
        while is_changed:
            is_changed = False
            for node, near in enumerate(joined):
                counts = np.bincount(colors[near], minlength=self.domain.max_levels)
                if counts.min() < counts[colors[node]]:
                    colors[node], is_changed = int(np.argmin(counts)), True
        return self.domain.from_levels(colors)

    def canonical(self, position: Array) -> Array:
        """The colouring with colours numbered in the order in which nodes have them."""
        return number_by_appearance(position)


class GroupSums(NamedTuple):
    """What is remembered of groups: what joins every node to every group, and the sizes of groups."""

    inside: Array
    sizes: Array


class GroupModel(Target):
    """Groups of nodes whose sizes count as well as the edges inside them.

    Attributes
    ----------
    bonds
        `w_ij`.
    coupling
        `J`.
    size_penalty
        `α`.
    offset
        A constant beside the sums, before the inverse temperature.
    inverse_temperature
        `β`.
    """

    bonds: GraphBonds
    coupling: Array
    size_penalty: Array
    offset: Array
    inverse_temperature: Array

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        inside = 0.5 * jnp.sum(position * self.bonds.sums(position))
        # Squares of the entries are left out, so that it is linear in every single site.
        pairs = 0.5 * (jnp.sum(position.sum(axis=0) ** 2) - jnp.sum(position**2))
        return self.inverse_temperature * (self.coupling * inside - self.size_penalty * pairs + self.offset)

    @property
    def is_multilinear(self) -> bool:
        """Yes: a node is in one group at a time."""
        return True

    @property
    def incremental(self) -> Incremental[GroupSums] | None:
        """Sums of the edges from every node to every group and sizes, where neighbours are listed."""
        if self.bonds.lists is None:
            return None
        return Incremental(self.init_cache, self.differences_at, self.update_cache, table_size=TABLE_SIZE)

    def init_cache(self, position: Array) -> GroupSums:
        """Add up the edges and count the groups."""
        return GroupSums(self.bonds.sums(position), position.sum(axis=0))

    def differences_at(self, cache: GroupSums, position: Array, sites: Array) -> Array:
        """Exact differences of moving a few nodes to any group."""
        own = position[sites]
        slope = self.coupling * cache.inside[sites] - self.size_penalty * (cache.sizes - own)
        return self.domain.slopes(own, self.inverse_temperature * slope)

    def update_cache(self, cache: GroupSums, position: Array, site: Array, level: Array) -> GroupSums:
        """Move one node: its neighbours see it in another group."""
        assert self.bonds.lists is not None
        neighbours, strengths = (array[:, site] for array in self.bonds.lists)
        change = self.domain.from_levels(level) - position[site]
        return GroupSums(cache.inside.at[neighbours].add(strengths[:, None] * change), cache.sizes + change)

    def canonical(self, position: Array) -> Array:
        """The groups numbered in the order in which nodes have them."""
        return number_by_appearance(position)

    def is_feasible(self, position: ArrayLike) -> bool:
        """Always: there is no constraint."""
        return True

    def repair(self, position: ArrayLike) -> Array:
        """Return the position as it is: there is no constraint."""
        return jnp.asarray(position)

    def sizes(self, position: ArrayLike) -> Array:
        """Number of nodes of every group."""
        return jnp.asarray(position).sum(axis=-2)


class Partition(GroupModel):
    """Groups of equal size with few edges between them.

    Examples
    --------
    >>> from steppe.targets import partition
    >>> target = partition([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]], num_parts=2)
    >>> halves, uneven = (
    ...     target.domain.from_levels(groups) for groups in ([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1])
    ... )
    >>> float(target.log_density(halves)), bool(target.log_density(uneven) < target.log_density(halves))
    (-1.0, True)
    """

    def score(self, position: ArrayLike) -> Array:
        """Total weight of the edges between groups, smaller is better."""
        values = jnp.asarray(position)
        inside = 0.5 * jnp.sum(values * self.bonds.sums(values))
        every = 0.5 * jnp.sum(self.bonds.sums(jnp.ones((self.domain.num_sites, 1))))
        return every - inside

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether no two groups differ by more than one node."""
        sizes = np.asarray(self.sizes(position))
        return bool(sizes.max() - sizes.min() <= 1)

    def repair(self, position: ArrayLike) -> Array:
        """Return a balanced position near this one: the node that loses least goes from a large group."""
        groups = np.argmax(np.asarray(position), axis=-1)
        while True:
            sizes = np.bincount(groups, minlength=self.domain.max_levels)
            largest, smallest = int(np.argmax(sizes)), int(np.argmin(sizes))
            if sizes[largest] - sizes[smallest] <= 1:
                return self.domain.from_levels(groups)
            inside = np.asarray(self.bonds.sums(self.domain.from_levels(groups)))
            gain = np.where(groups == largest, inside[:, smallest] - inside[:, largest], -np.inf)
            groups[int(np.argmax(gain))] = smallest


class BlockModel(GroupModel):
    """Communities of a network, given how likely edges inside and between them are.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.targets import block_model
    >>> target = block_model([[0, 1], [2, 3]], num_groups=2, inside=0.9, between=0.1)
    >>> pairs, mixed = target.domain.from_levels([0, 0, 1, 1]), target.domain.from_levels([0, 1, 0, 1])
    >>> bool(target.log_density(pairs) > target.log_density(mixed))
    True
    """

    def score(self, position: ArrayLike) -> Array:
        """Log-probability of the network given the communities."""
        return self.log_density(jnp.asarray(position)) / self.inverse_temperature

    def overlap(self, position: ArrayLike, truth: ArrayLike) -> float:
        """How far communities agree with known ones: 1 if they are the same, about 0 for a guess.

        Fraction of nodes in the right group under the best naming of groups, less what the largest known
        group alone would give, relative to the rest (Decelle et al. 2011).

        Parameters
        ----------
        position
            One position.
        truth
            Known groups, one number per node from 0.
        """
        from scipy.optimize import linear_sum_assignment

        found, known = np.argmax(np.asarray(position), axis=-1), np.asarray(truth).astype(int)
        if known.shape != found.shape or known.min() < 0 or known.max() >= self.domain.max_levels:
            raise TargetError(
                f"`overlap(truth=...)` must be one group from 0 to {self.domain.max_levels - 1} for each of "
                f"{len(found)} nodes; got shape {known.shape}."
            )
        table = np.zeros((self.domain.max_levels,) * 2)
        np.add.at(table, (found, known), 1)
        rows, columns = linear_sum_assignment(-table)
        chance = np.bincount(known).max() / len(known)
        return float((table[rows, columns].sum() / len(known) - chance) / (1 - chance))


@checked(TargetError)
def coloring(
    graph: GraphLike,
    num_colors: int,
    *,
    num_nodes: int | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> Coloring:
    """Graph colouring: `U = −β ·` (number of edges whose ends have the same colour).

    Parameters
    ----------
    graph
        As for `independent_set`.
    num_colors
        Number of colours, at least 2.
    num_nodes
        For an edge list: the number of nodes, by default one more than the largest index.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.coloring([[0, 1], [1, 2], [2, 3], [3, 0]], num_colors=2)
    >>> target.is_feasible(steppe.anneal(target, key=jax.random.key(0), num_steps=64).best)
    True
    """
    network = read_simple_graph("coloring", graph, num_nodes)
    levels = count("coloring(num_colors=...)", num_colors, minimum=2)
    return Coloring(
        domain=Categorical(network.num_sites, levels),
        bonds=bonds_of(network._replace(weights=as_host_array(np.full(len(network.edges), -1.0)))),
        field=zeros(network.num_sites, levels),
        inverse_temperature=positive("coloring(inverse_temperature=...)", inverse_temperature),
    )


@checked(TargetError)
def partition(
    graph: GraphLike,
    num_parts: int = 2,
    *,
    weights: ArrayLike | None = None,
    num_nodes: int | None = None,
    balance: float = 1.0,
    inverse_temperature: ArrayLike = 1.0,
) -> Partition:
    """Balanced partition: split the nodes into parts of equal size with few edges between them.

    `U = −β (cut + balance Σ_g (n_g − n/q)²)`.

    Parameters
    ----------
    graph, weights, num_nodes
        As for `max_cut`; weights must not be negative.
    num_parts
        `q`, at least 2.
    balance
        What an unequal size costs, `≥ 0`. `fixed_counts` keeps sizes by its moves instead.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import jax, steppe
    >>> edges = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]]  # two triangles and a bridge
    >>> target = steppe.targets.partition(edges, num_parts=2)
    >>> best = steppe.anneal(target, key=jax.random.key(0), num_steps=64).best
    >>> best.sum(axis=0).astype(int).tolist(), float(target.log_density(best))  # sizes; one edge is cut
    ([3, 3], -1.0)
    """
    network = read_graph("partition", graph, weights, num_nodes)
    _refuse_negative("partition", network)
    parts = count("partition(num_parts=...)", num_parts, minimum=2)
    strength = _read_balance(balance)
    # Σ (n_g − n/q)² = Σ n_g (n_g − 1) + n − n²/q
    size = network.num_sites
    constant = -float(np.asarray(network.weights, float).sum()) - strength * (size - size**2 / parts)
    return Partition(
        domain=Categorical(size, parts),
        bonds=graph_bonds(*network),
        coupling=jnp.ones(()),
        size_penalty=jnp.asarray(2 * strength),
        offset=jnp.asarray(constant),
        inverse_temperature=positive("partition(inverse_temperature=...)", inverse_temperature),
    )


@checked(TargetError)
def block_model(
    graph: GraphLike,
    num_groups: int,
    *,
    inside: float,
    between: float,
    num_nodes: int | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> BlockModel:
    """Stochastic block model: the posterior of communities, all assignments alike beforehand.

    `U = β Σ_<ij> log p(A_ij | g_i, g_j)`, an edge having probability `inside` in a group and `between`
    otherwise.

    Parameters
    ----------
    graph
        As for `independent_set`.
    num_groups
        Number of communities, at least 2.
    inside, between
        Probabilities of edges, strictly between 0 and 1.
    num_nodes
        For an edge list: the number of nodes, by default one more than the largest index.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import jax, steppe
    >>> edges = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]]  # two triangles and a bridge
    >>> target = steppe.targets.block_model(edges, num_groups=2, inside=0.9, between=0.1)
    >>> best = steppe.anneal(target, key=jax.random.key(0), num_steps=64).best
    >>> best[:, 0].astype(int).tolist() in ([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])
    True
    """
    for name, value in (("inside", inside), ("between", between)):
        if not 0 < value < 1:
            raise TargetError(f"`block_model({name}=...)` must be strictly between 0 and 1; got {value!r}.")
    network = read_simple_graph("block_model", graph, num_nodes)
    groups = count("block_model(num_groups=...)", num_groups, minimum=2)
    none = np.log1p(-inside) - np.log1p(-between)
    edge = np.log(inside) - np.log(between) - none
    num_pairs = network.num_sites * (network.num_sites - 1) / 2
    num_edges = len(network.edges)
    constant = num_edges * np.log(between) + (num_pairs - num_edges) * np.log1p(-between)
    return BlockModel(
        domain=Categorical(network.num_sites, groups),
        bonds=graph_bonds(network.edges, as_host_array(np.ones(num_edges)), network.num_sites),
        coupling=jnp.asarray(edge),
        size_penalty=jnp.asarray(-none),
        offset=jnp.asarray(constant),
        inverse_temperature=positive("block_model(inverse_temperature=...)", inverse_temperature),
    )


def number_by_appearance(position: Array) -> Array:
    """Rename the levels of one-hot sites in the order in which sites have them."""
    num_sites = position.shape[0]
    first = jnp.min(jnp.where(position > 0.5, jnp.arange(num_sites)[:, None], num_sites), axis=0)
    return position[:, jnp.argsort(first, stable=True)]


def _refuse_negative(name: str, graph: Graph) -> None:
    weights = np.asarray(graph.weights)
    if (weights < 0).any():
        edge = int(np.argmax(weights < 0))
        raise TargetError(
            f"`{name}(weights=...)` must not be negative; edge {edge} has {float(weights[edge]):g}. "
            "`max_cut` takes weights of both signs."
        )


def _read_balance(balance: float) -> float:
    if number("partition(balance=...)", balance) < 0:
        raise TargetError(f"`partition(balance=...)` must be at least 0; got {balance!r}.")
    return float(balance)
