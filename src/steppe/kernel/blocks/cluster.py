"""Cluster moves of Ising and Potts models: Swendsen–Wang and Wolff.

A bond whose sites agree is closed with probability `1 − exp(−K)`, where `K` is what the pair gains by
agreeing. Given the closed bonds, every cluster of sites that they join takes a level as a whole, with weight
`exp` of the fields of its sites: what a ghost site would decide, without drawing its bonds. Strengths of both
signs are fine where turning some spins over makes all of them positive (a balanced graph).
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import materialize
from steppe.errors import DomainError, RecipeError
from steppe.kernel.blocks.many_chains import ManyChainsBlock, Moved
from steppe.kernel.density import JointDensity
from steppe.pytree import is_concrete
from steppe.random import draws
from steppe.target.interactions import Interactions, PairForm
from steppe.target.log_density import Target

# Subsets of bonds that a transition matrix is summed over.
MAX_ENUMERATED_BONDS = 12


class Bonds(eqx.Module):
    """The bonds of a target, and the spins to turn over so that all of them favour agreement.

    Attributes
    ----------
    ends
        The two sites of every bond, of shape `(2, num_bonds)`.
    places
        Where its strength stands, or `None` where there is one for all.
    neighbours, bond_of
        Sites and bonds at every site, of shape `(slots, num_sites)`; where there are fewer, the numbers
        behind the last site and the last bond.
    signs
        −1 for spins that are turned over.
    has_field
        Whether any field is not 0.
    """

    ends: Array
    places: Array | None
    neighbours: Array
    bond_of: Array
    signs: Array
    has_field: bool = eqx.field(static=True)


class ClusterBlock(ManyChainsBlock):
    """Close bonds, join clusters, and give new levels to all of them or to one.

    Attributes
    ----------
    moved
        `"all"` clusters (Swendsen–Wang), or the `"one"` of a random site (Wolff).
    bonds
        The bonds of a target; made when the block is prepared for one.
    """

    component_id = "cluster-block"

    moved: Literal["all", "one"] = eqx.field(static=True)
    bonds: Bonds | None = None

    def check(self, name: str, target: Target) -> None:
        """Refuse targets that are not sums over pairs that favour agreement."""
        form = target.pair_form
        if form is None or form.values not in (None, (-1.0, 1.0)):
            raise RecipeError(
                f"`{name}` joins spins (±1) or Potts levels that agree, and this target is not a sum over "
                "pairs of them. Use an `ising` or `potts` target, or `gibbs()`."
            )
        if not is_concrete(target):
            raise RecipeError(
                f"`{name}` must see the signs of the bonds, which are being traced. Build the sampler "
                "outside of `jax.jit` and pass it in."
            )
        _find_signs(name, target)

    def prepare(self, target: Target) -> "ClusterBlock":
        """List the bonds of a target."""
        assert target.interactions is not None
        assert target.pair_form is not None
        signs = _find_signs("cluster", target)
        has_field = bool(np.any(np.asarray(target.pair_form.field) != 0))
        return ClusterBlock(self.moved, list_bonds(target.interactions, signs, has_field))

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: that of the new state; clusters are found without the log-density."""
        return 1

    def step_many(self, density: JointDensity, keys: Array, position: Array) -> Moved:
        """One step of many chains, which stand on the last axis; the inverse temperature may differ."""
        bonds, form = self.bonds, density.target.pair_form
        assert bonds is not None
        assert form is not None
        levels = self._read(density, position)
        num_bonds, num_sites = bonds.ends.shape[1], density.domain.num_sites
        uniforms = draws.uniform_columns(keys, num_bonds + num_sites + 2)
        first, second = bonds.ends
        stays_open = jnp.exp(-self._gains(density, form))
        is_closed = (levels[first] == levels[second]) & (uniforms[:num_bonds] >= stays_open)
        labels = label_clusters(bonds, is_closed, levels.shape)
        drawn = uniforms[num_bonds : num_bonds + num_sites]
        choose = self._draw_all if self.moved == "all" else self._draw_one
        new = choose(density, levels, labels, drawn, uniforms[num_bonds + num_sites :])
        moved = self._write(density, new, position.dtype)
        return Moved(
            position=moved,
            log_density=jax.vmap(density.target.log_density, -1)(moved),
            num_flips=jnp.sum(new != levels, axis=0, dtype=jnp.int32),
            num_nonfinite=jnp.zeros(keys.shape, jnp.int32),
        )

    def _draw_all(
        self, density: JointDensity, levels: Array, labels: Array, uniforms: Array, more: Array
    ) -> Array:
        """A level for every cluster, drawn at the site it is named after."""
        num_levels = density.domain.max_levels
        if not self._has_field:
            drawn = jnp.minimum((uniforms * num_levels).astype(jnp.int32), num_levels - 1)
        else:
            drawn = draws.choose(uniforms, self._cluster_fields(density, labels))
        return _look_up(drawn, labels)

    def _draw_one(
        self, density: JointDensity, levels: Array, labels: Array, uniforms: Array, more: Array
    ) -> Array:
        """Another level for the cluster of one random site, accepted by what the fields say."""
        num_sites, num_levels = density.domain.num_sites, density.domain.max_levels
        seed = jnp.minimum((uniforms[:1] * num_sites).astype(jnp.int32), num_sites - 1)
        root, old = _look_up(labels, seed), _look_up(levels, seed)
        other = 1 + jnp.minimum((more[:1] * (num_levels - 1)).astype(jnp.int32), num_levels - 2)
        proposed = (old + other) % num_levels
        if self._has_field:
            fields = jnp.take_along_axis(self._cluster_fields(density, labels), root[None], 1)[:, 0]
            change = jnp.take_along_axis(fields, proposed, 0) - jnp.take_along_axis(fields, old, 0)
            proposed = jnp.where(jnp.log(more[1:]) < change, proposed, old)
        return jnp.where(labels == root, proposed, levels)

    # ---- levels: those of turned-over spins are exchanged, so that all bonds favour agreement --------------

    @property
    def _has_field(self) -> bool:
        assert self.bonds is not None
        return self.bonds.has_field

    def _read(self, density: JointDensity, position: Array) -> Array:
        assert self.bonds is not None
        if density.domain.is_two_level and position.ndim == 2:
            is_high = position > density.domain.points(0).mean()
            return (is_high ^ (self.bonds.signs < 0)[:, None]).astype(jnp.int32)
        return jnp.asarray(sum(level * position[:, level] for level in range(position.shape[1]))).astype(int)

    def _write(self, density: JointDensity, levels: Array, dtype: np.dtype) -> Array:
        assert self.bonds is not None
        domain = density.domain
        if domain.is_two_level and len(domain.shape) == 1:
            low, high = domain.points(0)[:, 0]
            is_high = (levels == 1) ^ (self.bonds.signs < 0)[:, None]
            return jnp.where(is_high, jnp.asarray(high, dtype), jnp.asarray(low, dtype))
        return (levels[:, None] == jnp.arange(domain.max_levels)[:, None]).astype(dtype)

    def _gains(self, density: JointDensity, form: PairForm) -> Array:
        """What every pair gains by agreeing, per bond, and per chain where temperatures differ."""
        assert self.bonds is not None
        strengths = form.strengths if self.bonds.places is None else form.strengths[self.bonds.places]
        per_unit = 1 if form.values is None else 2
        every = jnp.broadcast_to(jnp.abs(strengths), self.bonds.ends.shape[1])[:, None]
        return per_unit * density.inverse_temperature * form.scale * every

    def _site_fields(self, density: JointDensity) -> Array:
        """Log-weights of the levels of every site by its field, levels in front."""
        form, bonds = density.target.pair_form, self.bonds
        assert form is not None
        assert bonds is not None
        table = form.field.T if form.values is None else jnp.stack([-form.field, form.field]) * bonds.signs
        return density.inverse_temperature * form.scale * table[..., None]

    def _cluster_fields(self, density: JointDensity, labels: Array) -> Array:
        """Sums of the fields over clusters, at the sites that they are named after."""
        shape = density.domain.max_levels, *labels.shape
        fields = jnp.broadcast_to(self._site_fields(density), shape)
        add = jax.vmap(lambda field, label: jnp.zeros_like(field).at[:, label].add(field), (-1, -1), -1)
        return add(fields, labels)

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Sum over all sets of closed bonds of what clusters then do."""
        bonds, form = self.bonds, density.target.pair_form
        assert bonds is not None
        assert form is not None
        ends = np.asarray(bonds.ends)
        if ends.shape[1] > MAX_ENUMERATED_BONDS:
            raise DomainError(f"Sets of {ends.shape[1]} bonds are too many to be summed over.")
        positions = jnp.moveaxis(density.domain.enumerate(), 0, -1)
        levels = np.asarray(self._read(density, positions)).T
        opens = np.exp(-np.asarray(self._gains(density, form), float)[:, 0])
        fields = np.asarray(self._site_fields(density), float)[..., 0]
        index = {tuple(row): number for number, row in enumerate(levels)}
        matrix = np.zeros((len(levels),) * 2)
        for subset in np.ndindex(*(2,) * ends.shape[1]):
            closed = np.array(subset, bool)
            labels = _join(ends[:, closed], levels.shape[1])
            weights = np.where(closed, 1 - opens, opens)
            for row, state in enumerate(levels):
                agrees = state[ends[0]] == state[ends[1]]
                if (closed & ~agrees).any():
                    continue
                for end, chance in self._outcomes(state, labels, fields):
                    matrix[row, index[end]] += np.prod(weights[agrees]) * chance
        return matrix

    def _outcomes(
        self, state: np.ndarray, labels: np.ndarray, fields: np.ndarray
    ) -> list[tuple[tuple[int, ...], float]]:
        """States that clusters may take together, with their probabilities."""
        num_levels, members = len(fields), [labels == root for root in np.unique(labels)]
        if self.moved == "one":
            moves = []
            for inside in members:
                old = state[inside][0]
                for new in set(range(num_levels)) - {int(old)}:
                    change = fields[new, inside].sum() - fields[old, inside].sum()
                    chance = inside.mean() / (num_levels - 1)
                    accepted = chance * min(1.0, np.exp(change))
                    moves += [
                        (tuple(np.where(inside, new, state)), accepted),
                        (tuple(state), chance - accepted),
                    ]
            return moves
        outcomes = [(state, 1.0)]
        for inside in members:
            weights = np.exp(fields[:, inside].sum(axis=1) - fields[:, inside].sum(axis=1).max())
            outcomes = [
                (np.where(inside, level, made), chance * weights[level] / weights.sum())
                for made, chance in outcomes
                for level in range(num_levels)
            ]
        return [(tuple(made), chance) for made, chance in outcomes]


def label_clusters(bonds: Bonds, is_closed: Array, shape: tuple[int, ...]) -> Array:
    """Name every site after the first site of its cluster.

    Every site finds the least name among its neighbours' and tells it to the site it is named after; then all
    take the name of the site they are named after, until nothing changes in any chain. Without the telling, a
    name moves one bond at a time: 138 rounds instead of 7 on 64² sites near the critical temperature.
    """
    num_sites = shape[0]
    padded = jnp.concatenate([is_closed, jnp.zeros((1, shape[1]), bool)])
    is_joined = materialize(lambda padded, bond_of: padded[bond_of], padded, bonds.bond_of)
    names = jnp.broadcast_to(jnp.arange(num_sites, dtype=jnp.int32)[:, None], shape)

    def take_least(names: Array, is_joined: Array, neighbours: Array) -> Array:
        least, every = names, jnp.concatenate([names, names[:1]])
        for slot in range(len(neighbours)):
            least = jnp.minimum(least, jnp.where(is_joined[slot], every[neighbours[slot]], num_sites))
        return least

    def improve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        names, _ = carry
        least = materialize(take_least, names, is_joined, bonds.neighbours)
        least = least.reshape(-1).at[_flatten(names)].min(least, mode="promise_in_bounds").reshape(shape)
        least = _look_up(_look_up(least, least), least)
        return least, jnp.any(least != names)

    return jax.lax.while_loop(lambda carry: carry[1], improve, (names, jnp.asarray(True)))[0]


def _look_up(values: Array, places: Array) -> Array:
    """Values at places, chain by chain: one long row, which is faster than `take_along_axis`."""
    return values.reshape(-1).at[_flatten(places)].get(mode="promise_in_bounds")


def _flatten(places: Array) -> Array:
    num_chains = places.shape[1]
    return places * num_chains + jnp.arange(num_chains, dtype=places.dtype)


def list_bonds(interactions: Interactions, signs: np.ndarray, has_field: bool) -> Bonds:
    """Return the bonds of a graph, with the spins to turn over."""
    sources, ends = np.asarray(interactions.sources), np.asarray(interactions.ends)
    is_first = sources < ends
    pairs = np.stack([sources[is_first], ends[is_first]])
    places = None if interactions.places is None else np.asarray(interactions.places)[is_first]
    num_sites, num_bonds = len(signs), pairs.shape[1]
    sites, others = np.concatenate(pairs), np.concatenate(pairs[::-1])
    order = np.argsort(sites, kind="stable")
    degrees = np.bincount(sites, minlength=num_sites)
    slots = np.arange(2 * num_bonds) - (np.cumsum(degrees) - degrees)[sites[order]]
    shape = max(int(degrees.max()), 1), num_sites
    neighbours, bond_of = np.full(shape, num_sites), np.full(shape, num_bonds)
    neighbours[slots, sites[order]] = others[order]
    bond_of[slots, sites[order]] = order % max(num_bonds, 1)
    return Bonds(
        ends=jnp.asarray(pairs, jnp.int32),
        places=None if places is None else jnp.asarray(places, jnp.int32),
        neighbours=jnp.asarray(neighbours, jnp.int32),
        bond_of=jnp.asarray(bond_of, jnp.int32),
        signs=jnp.asarray(signs),
        has_field=has_field,
    )


def _find_signs(name: str, target: Target) -> np.ndarray:
    """Spins to turn over so that no bond favours disagreement; refuses where there are none."""
    interactions, form = target.interactions, target.pair_form
    assert interactions is not None
    assert form is not None
    sources, ends = np.asarray(interactions.sources), np.asarray(interactions.ends)
    strengths = np.asarray(form.strengths)
    strengths = np.broadcast_to(
        strengths if interactions.places is None else strengths[interactions.places], len(ends)
    )
    num_sites = target.domain.num_sites
    is_negative = strengths * float(form.scale) < 0
    if form.values is None:
        if is_negative.any():
            raise RecipeError(
                f"`{name}` joins levels that agree, and {int(is_negative.sum()) // 2} of the bonds favour "
                "disagreement: no cluster can be joined there. Use `chromatic_gibbs()` or "
                "`parallel_tempering()`."
            )
        return np.ones(num_sites, np.int32)
    rows = np.concatenate([sources, sources + num_sites])
    columns = np.concatenate([ends + num_sites * is_negative, ends + num_sites * ~is_negative])
    labels = _join(np.stack([rows, columns]), 2 * num_sites).reshape(2, -1)
    if (labels[0] == labels[1]).any():
        site = int(np.argmax(labels[0] == labels[1]))
        raise RecipeError(
            f"`{name}` needs bonds that can all be satisfied at once. These are frustrated: a cycle through "
            f"site {site} has an odd number of negative bonds, so clusters would be joined across what the "
            "rest of the graph pulls apart. Use `chromatic_gibbs()` or `parallel_tempering()`."
        )
    return np.where(labels[0] < labels[1], 1, -1).astype(np.int32)


def _join(pairs: np.ndarray, num_sites: int) -> np.ndarray:
    """Component of every site."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(pairs.shape[1], np.int8), tuple(pairs)), (num_sites,) * 2)
    return connected_components(graph, directed=False)[1]
