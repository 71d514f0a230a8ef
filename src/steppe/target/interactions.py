"""Interactions: which sites a log-density ties together, and colours so that no two tied sites share one.

Sites of one colour are independent given all others, so a sampler may move all of them at once. A target says
which sites interact (`Target.interactions`), and how: by a `PairForm`, where its log-density is a sum over
pairs, or by the conditional of a site.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.errors import TargetError

if TYPE_CHECKING:
    from steppe.target.log_density import Target

MAX_COLORS = 64
# Sites of which it does not matter whether some move at once.
MAX_SMALL = 8
# Pairs of a state and a site at which a graph is compared with the log-density.
NUM_CHECKED = 64


class Interactions(NamedTuple):
    """Pairs of sites that interact, each in both directions.

    Attributes
    ----------
    sources, ends
        Sites from 0: what happens at the first matters at the second.
    places
        Where the strength of each pair stands among the strengths of the `PairForm`; `None` if the target has
        none, or one strength for all.
    """

    sources: np.ndarray
    ends: np.ndarray
    places: np.ndarray | None = None

    @classmethod
    def read(cls, edges: object, num_sites: int) -> "Interactions":
        """Check pairs of sites given by a user; each pair may be given once or twice."""
        pairs = np.asarray(edges)
        is_list = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu"
        if not is_list or (pairs < 0).any() or (pairs >= num_sites).any():
            raise TargetError(
                "`Target(interactions=...)` must be pairs of sites that interact, an integer array of shape "
                f"(num_pairs, 2) with numbers from 0 to {num_sites - 1}; got {edges!r}."
            )
        pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        return cls(*np.concatenate([pairs, pairs[:, ::-1]]).T)


class PairForm(NamedTuple):
    """A log-density that is a sum over sites and pairs: `U = scale (Σ J_ij f(i, j) + Σ h_i) + offset`.

    Attributes
    ----------
    strengths
        `J`: one number for all pairs, or an array in which `Interactions.places` finds that of each.
    field
        `h`: per site, times the value of the site; where pairs agree or not, per site and level.
    values
        Values of the two levels of a site: `f` is the product of the values of a pair. `None`: `f` is 1 where
        the levels of a pair agree and 0 otherwise.
    scale, offset
        Numbers.
    """

    strengths: Array
    field: Array
    values: tuple[float, float] | None
    scale: Array
    offset: Array


def color_sites(interactions: Interactions, num_sites: int) -> np.ndarray:
    """Colour of every site, from 0: two if two are enough, else greedily from the largest degree down."""
    sources, ends = interactions.sources, interactions.ends
    two = _color_by_two(sources, ends, num_sites)
    return _color_greedily(sources, ends, num_sites) if two is None else two


def is_crowded(num_colors: int, num_sites: int) -> bool:
    """Whether every site has a colour of its own, so that none can move beside another."""
    return num_colors == num_sites > MAX_SMALL


def _color_by_two(sources: np.ndarray, ends: np.ndarray, num_sites: int) -> np.ndarray | None:
    """Two colours, if no cycle is odd: then a site and its mirror image lie in different components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = np.concatenate([sources, sources + num_sites]), np.concatenate([ends + num_sites, ends])
    cover = coo_array((np.ones(len(rows), np.int8), (rows, columns)), (2 * num_sites,) * 2)
    first, second = connected_components(cover, directed=False)[1].reshape(2, -1)
    return None if (first == second).any() else (first > second).astype(int)


def _color_greedily(sources: np.ndarray, ends: np.ndarray, num_sites: int) -> np.ndarray:
    """Every site in turn takes the first colour free, larger degrees first (as Jones and Plassmann do)."""
    degrees = np.bincount(ends, minlength=num_sites)
    rank = np.empty(num_sites, int)
    rank[np.lexsort((np.random.default_rng(0).permutation(num_sites), degrees))] = np.arange(num_sites)
    colors = np.full(num_sites, -1)
    taken = np.zeros(num_sites, np.uint64)
    while (colors < 0).any():
        is_waiting = np.zeros(num_sites, bool)
        open_pair = (colors[sources] < 0) & (colors[ends] < 0)
        is_waiting[ends[open_pair & (rank[sources] > rank[ends])]] = True
        now = np.flatnonzero((colors < 0) & ~is_waiting)
        free = ~taken[now]
        if not free.all():
            raise TargetError(
                f"The interactions of {num_sites} sites need more than {MAX_COLORS} colours: too many sites "
                "interact with one another to be moved together. Use `gibbs(scan='systematic')`."
            )
        lowest = free & (~free + np.uint64(1))
        colors[now] = np.round(np.log2(lowest.astype(float))).astype(int)
        is_new = np.zeros(num_sites, bool)
        is_new[now] = True
        touched = is_new[sources]
        bits = np.uint64(1) << colors[sources[touched]].astype(np.uint64)
        np.bitwise_or.at(taken, ends[touched], bits)
    return colors


def check_interactions(target: "Target") -> None:
    """Compare the graph and the conditionals of a target with its log-density, at random states and sites.

    Given its neighbours, a site must not care about any other: the differences of the log-density between its
    levels stay the same when all the others are drawn anew. And they are those of the conditional.
    """
    interactions, domain = target.interactions, target.domain
    assert interactions is not None
    sources, ends = np.asarray(interactions.sources), np.asarray(interactions.ends)
    sites = np.random.default_rng(0).integers(domain.num_sites, size=NUM_CHECKED)
    keeps = np.zeros((NUM_CHECKED, domain.num_sites), bool)
    keeps[np.arange(NUM_CHECKED), sites] = True
    for row, site in enumerate(sites):
        keeps[row, sources[ends == site]] = True
    errors = np.asarray(_compare(target, jnp.asarray(sites), jnp.asarray(keeps)))
    for error, what in zip(errors, ("of sites that are not its neighbours", "`conditional`"), strict=True):
        if not (error <= 1).all():
            site = int(sites[np.argmax(np.where(error <= 1, 0, error))])
            raise TargetError(
                "`Target(interactions=...)` does not match the log-density: at random states the conditional "
                f"of site {site} {_REASONS[what]}"
            )


_REASONS = {
    "of sites that are not its neighbours": "changes with sites that are not its neighbours. Give every pair "
    "of sites that interact.",
    "`conditional`": "is not what `conditional` returns. Compare `conditional(position, site)` with the "
    "log-density at the levels of the site.",
}


@quick_jit
def _compare(target: "Target", sites: Array, keeps: Array) -> Array:
    """Differences, relative to what rounding allows: after a change far away, and from the conditional."""
    domain = target.domain
    levels = jnp.arange(domain.max_levels)

    def at(site: Array, keep: Array, key: Array) -> Array:
        near, far = domain.to_levels(domain.draw(key, (2,))).astype(jnp.int32)
        first, second = domain.from_levels(near), domain.from_levels(jnp.where(keep, near, far))
        replace = jax.vmap(domain.replace_sites, (None, None, 0))
        values = [jax.vmap(target.log_density)(replace(state, site, levels)) for state in (first, second)]
        exists = jnp.asarray(domain.level_mask)[site]
        here, there, given = (_center(w, exists) for w in (*values, target.conditional(first, site)))
        scale = jnp.max(jnp.where(jnp.isfinite(jnp.stack(values)), jnp.abs(jnp.stack(values)), 0))
        tolerance = 1e-4 * (1 + jnp.abs(here)) + 64 * jnp.finfo(scale.dtype).eps * scale
        is_known = exists & jnp.isfinite(here) & jnp.isfinite(there)
        return jnp.stack(
            [
                jnp.max(jnp.where(is_known, jnp.abs(there - here) / tolerance, 0)),
                jnp.max(jnp.where(is_known, jnp.abs(given - here) / tolerance, 0)),
            ]
        )

    keys = jax.random.split(jax.random.key(0), len(sites))
    return jax.lax.map(lambda row: at(*row), (sites, keeps, keys)).T


def _center(weights: Array, exists: Array) -> Array:
    """Weights relative to the largest that is finite."""
    return weights - jnp.max(jnp.where(exists & jnp.isfinite(weights), weights, -jnp.inf))
