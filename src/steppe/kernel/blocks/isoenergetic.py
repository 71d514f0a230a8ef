"""Isoenergetic cluster moves between two ladders of parallel tempering (Houdayer 2001).

Two replicas `a`, `b` at one temperature differ at some sites. Let a cluster be sites that differ and are
joined by bonds, and let the replicas exchange what they hold there. A bond inside the cluster goes from one
replica to the other, and so does a bond across its border, because outside of it both replicas agree: for
sums over pairs and sites `U(a) + U(b)` stays, and the move needs no decision. The sites that differ are the
same after it, so it is its own inverse. Where clusters percolate, an exchange is one of the whole replicas
and nothing is won; that depends on the graph, and is looked at beforehand.
"""

from functools import partial
from typing import NamedTuple, NoReturn, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import CompositionError
from steppe.kernel.blocks.cluster import Bonds, label_clusters, list_bonds
from steppe.kernel.blocks.metropolis import AroundBlock
from steppe.kernel.blocks.tempering import Ladder, Replica, TemperedBlock, invert
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import ChainState, StepInfo
from steppe.pytree import is_concrete
from steppe.random import draws
from steppe.target.interactions import Interactions
from steppe.target.log_density import Target

# Keys of the second ladder and of clusters are folded with numbers that no rung reaches.
SECOND, CLUSTERS = 2**30, 2**30 + 1
# Graphs of fewer sites are not asked whether clusters percolate.
MIN_SITES = 64
# Part of the differing sites in the largest cluster, from which on exchanging it is exchanging everything.
MAX_CLUSTER = 0.7
Tree = TypeVar("Tree")


class Twins(NamedTuple):
    """What two ladders remember: both of them, stacked, and the cold chain of the second."""

    ladders: Ladder
    other: ChainState


class IsoenergeticBlock(AroundBlock[TemperedBlock]):
    """Step two ladders, then exchange a cluster between their replicas at every rung.

    Attributes
    ----------
    block
        How a ladder steps.
    bonds
        The bonds of a target; made when the block is prepared for one.
    """

    component_id = "isoenergetic-block"

    bonds: Bonds | None = None

    moves_replicas = False

    @property
    def uses_gradient(self) -> bool:
        """Whether replicas move by the gradient."""
        return self.block.uses_gradient

    def check(self, name: str, target: Target) -> None:
        """Refuse what the ladder refuses, other targets than sums over pairs, and percolating clusters."""
        self.block.check(name, target)
        if target.pair_form is None or target.interactions is None or target.has_constraint:
            raise CompositionError(
                f"`{name}(cluster_moves=True)` exchanges clusters at equal log-density, which needs a sum "
                "over pairs of sites: an `ising`, `potts` or `qubo` target without constraint. Leave it out."
            )
        if not is_concrete(target):
            return
        part = measure_percolation(target.interactions, target.domain.num_sites, target.domain.max_levels)
        if part > MAX_CLUSTER:
            raise CompositionError(
                f"`{name}(cluster_moves=True)`: clusters percolate on this graph. Of the sites at which two "
                f"hot replicas differ, {part:.0%} are in one cluster, so that replicas would exchange "
                "everything and gain nothing. Leave it out; it helps on sparse graphs such as planar ones."
            )

    def prepare(self, target: Target) -> Self:
        """Prepare the ladder, and list the bonds of a target."""
        assert target.interactions is not None
        signs = np.ones(target.domain.num_sites, np.int32)
        return type(self)(self.block.prepare(target), list_bonds(target.interactions, signs, False))

    def init(self, density: JointDensity, state: ChainState, previous: Twins | None = None) -> Twins:
        """Start both ladders where the chain starts."""
        if previous is None:
            ladder = self.block.init(density, state)
            return Twins(_stack(ladder, ladder), state)
        ladders = jax.vmap(partial(self.block.init, density, state))(previous.ladders)
        return Twins(ladders, _cold(self.block, _take(ladders, 1)))

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: Twins
    ) -> tuple[ChainState, Twins, StepInfo]:
        """Step both ladders and exchange clusters; reports what the first ladder does."""
        second = Keys(*(jax.random.fold_in(key, SECOND) for key in keys))
        both_keys, both_states = _stack((keys, state), (second, own.other))

        def step(keys: Keys, state: ChainState, ladder: Ladder) -> tuple[Ladder, StepInfo]:
            return self.block.step(keys, density, state, ladder)[1:]

        ladders, infos = jax.vmap(step)(both_keys, both_states, own.ladders)
        first = _take(ladders, 0)
        # Replicas are known by their places, which are those of the first ladder from here on.
        other = _reorder(self.block, _take(ladders, 1), first.rung)
        first, other = self.exchange(jax.random.fold_in(keys.center, CLUSTERS), density, first, other)
        seen = _cold(self.block, first)
        info = _take(infos, 0)._replace(
            num_flips=jnp.sum(density.domain.differs(seen.position, state.position)),
            num_nonfinite=jnp.sum(infos.num_nonfinite),
        )
        return seen, Twins(_stack(first, other), _cold(self.block, other)), info

    def exchange(
        self, key: Array, density: JointDensity, first: Ladder, second: Ladder
    ) -> tuple[Ladder, Ladder]:
        """Exchange the cluster of a random differing site between replicas of the same place and rung."""
        axis = self.block.axis
        here, there = (ladder.replicas.chain.position for ladder in (first, second))
        differs = jax.vmap(density.domain.differs, axis, -1)(here, there)
        swaps = self.choose_cluster(key, differs)

        def trade(swap: Array, here: Array, there: Array) -> Array:
            return jnp.where(swap.reshape(-1, *[1] * (here.ndim - 1)), there, here)

        traded = jax.vmap(trade, (-1, axis, axis), axis)

        def renew(ladder: Ladder, position: Array) -> Ladder:
            chain = ladder.replicas.chain._replace(position=position)
            refresh = jax.vmap(partial(self.block.refresh, density), axis, axis)
            return ladder._replace(replicas=refresh(Replica(chain, ladder.replicas.memory)))

        return renew(first, traded(swaps, here, there)), renew(second, traded(swaps, there, here))

    def choose_cluster(self, key: Array, differs: Array) -> Array:
        """Whether a site is exchanged, from whether it differs, (site, replica)."""
        assert self.bonds is not None
        joined = differs[self.bonds.ends[0]] & differs[self.bonds.ends[1]]
        labels = label_clusters(self.bonds, joined, differs.shape)
        number = jnp.sum(differs, axis=0)
        place = jnp.floor(draws.uniform(key, number.shape) * number).astype(number.dtype)
        is_seed = differs & (jnp.cumsum(differs, axis=0) == 1 + jnp.minimum(place, number - 1))
        root = jnp.sum(jnp.where(is_seed, labels, 0), axis=0)
        return differs & (labels == root)

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: those of both ladders, and of every replica after the exchange."""
        return 2 * (self.block.count_evaluations(density) + self.block.num_rungs)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> NoReturn:
        """Refuse: all replicas are part of the state."""
        return self.block.transition_matrix(density, center)


def measure_percolation(interactions: Interactions, num_sites: int, num_levels: int) -> float:
    """Part of the sites in the largest cluster, where as many differ as of two uniform states; of ten."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if num_sites < MIN_SITES:
        return 0.0
    rng, parts = np.random.default_rng(0), []
    sources, ends = np.asarray(interactions.sources), np.asarray(interactions.ends)
    for _ in range(10):
        differs = rng.random(num_sites) < 1 - 1 / num_levels
        kept = differs[sources] & differs[ends]
        graph = coo_array((np.ones(kept.sum(), np.int8), (sources[kept], ends[kept])), (num_sites,) * 2)
        labels = connected_components(graph, directed=False)[1]
        parts.append(np.bincount(labels[differs]).max() / differs.sum())
    return float(np.mean(parts))


def _stack(first: Tree, second: Tree) -> Tree:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), first, second)


def _take(tree: Tree, index: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _cold(block: TemperedBlock, ladder: Ladder) -> ChainState:
    place = jnp.argmax(ladder.rung)
    return jax.tree.map(lambda leaf: jnp.take(leaf, place, axis=block.axis), ladder.replicas.chain)


def _reorder(block: TemperedBlock, ladder: Ladder, rung: Array) -> Ladder:
    """Put replicas where those of other rungs are: the same ladder, its replicas in another order."""
    order = invert(ladder.rung)[rung]
    replicas = jax.tree.map(lambda leaf: jnp.take(leaf, order, axis=block.axis), ladder.replicas)
    return Ladder(replicas, rung, ladder.num_rounds, ladder.came_from[order], ladder.round_trips[order])
