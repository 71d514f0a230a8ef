"""Block Gibbs and Hamming balls: conditionals of a few sites given all others.

Both draw the levels of a block of sites from a set of candidates, with weight `exp U`: the candidates are
everything the block can be (block Gibbs) or a Hamming ball about a point that is itself uniform in the ball
about the current levels (Hamming ball). No gradient is used. The change in `U` comes from the target's
incremental form or difference table where it has one.
"""

from functools import cache
from itertools import combinations
from math import comb
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from steppe.compiling import materialize
from steppe.domain.base import MAX_ENUMERATED
from steppe.errors import RecipeError
from steppe.kernel.blocks.site_scan import ScanMemory, refresh_cache, start_scan
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.proposals.site_proposal import check_sites
from steppe.kernel.types import POSITION, ChainState, StepInfo, Unprepared
from steppe.random import draws
from steppe.target.log_density import Target


class GibbsBlock(Unprepared, eqx.Module):
    """Resample `block_size` sites jointly.

    Attributes
    ----------
    block_size
        Number of sites drawn jointly.
    radius
        How many of them may differ from the intermediate point, or `None` for any number.
    scan
        `"random"`: every block is a uniform subset, which makes the step reversible. `"systematic"`:
        sites in order, wrapping around; stationary but not reversible.
    """

    component_id = "gibbs-block"

    block_size: int = eqx.field(static=True)
    radius: int | None = eqx.field(static=True, default=None)
    scan: Literal["random", "systematic"] = eqx.field(static=True, default="random")

    moves = POSITION
    is_adjusted = True
    uses_gradient = False
    moves_replicas = False

    def init(
        self, density: JointDensity, state: ChainState, previous: ScanMemory | None = None
    ) -> ScanMemory:
        """Fill the target's cache; a systematic scan begins at the first site, or goes on."""
        return start_scan(self.scan, density, state, previous)

    def count_evaluations(self, density: JointDensity) -> float:
        """Evaluations of one step: one per candidate, or what differences cost where the target has them."""
        target, size = density.target, self.block_size
        num_candidates = len(self._shifts(target))
        if target.incremental is not None:
            asked = size if self._is_single_site else size * num_candidates
            return asked / target.domain.num_sites
        return 1 if self._is_single_site and target.has_differences else num_candidates

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: ScanMemory
    ) -> tuple[ChainState, ScanMemory, StepInfo]:
        """Resample one block."""
        key_sites, key_draw = jax.random.split(jax.random.fold_in(keys.position, 0))
        sites, own = self.choose_sites(key_sites, density, state, refresh_cache(density, state, own))
        new, cache, num_nonfinite = self._resample(key_draw, density, state, own.cache, sites)
        info = StepInfo(
            acceptance_rate=jnp.ones((), new.log_density.dtype),
            is_accepted=jnp.ones((), bool),
            num_flips=jnp.sum(density.domain.differs(new.position, state.position)),
            num_nonfinite=num_nonfinite,
        )
        return new, own._replace(cache=cache), info

    def check(self, name: str, target: Target) -> None:
        """Refuse fewer sites than a block has, and blocks with too many joint levels."""
        check_sites(name, target, self.block_size)
        radius = self.block_size if self.radius is None else self.radius
        size = ball_size(self.block_size, target.domain.max_levels, radius)
        if size > MAX_ENUMERATED:
            raise RecipeError(
                f"`{name}` would weigh {size:.3g} joint levels of {self.block_size} sites with up to "
                f"{target.domain.max_levels} levels; at most {MAX_ENUMERATED} are weighed. Use a smaller "
                "block or radius."
            )

    def steps_together(self, target: Target) -> bool:
        """Chains side by side lose by it: each looks its own sites up."""
        return False

    def transition_matrix(self, density: JointDensity, center: Array | None) -> np.ndarray:
        """Average over all blocks of sites."""
        return np.asarray(enumerate_updates(self, density))

    def candidates(
        self, target: Target, state: ChainState, cache: PyTree, sites: Array, base: Array
    ) -> tuple[Array, Array, Array]:
        """Levels of every candidate about `base`, their log-densities, and how many were broken.

        Candidates that do not exist or are not valid have log-density `−inf`. The current levels are
        always among the candidates, so at least one is finite.
        """
        counts = jnp.asarray(target.domain.num_levels)[sites]
        shifts = jnp.asarray(self._shifts(target))
        levels = (base + shifts) % counts
        values = self._log_densities(target, state, cache, sites, base, levels)
        is_broken = jnp.isnan(values) | (values == jnp.inf)
        exists = jnp.all(shifts < counts, axis=1)
        values = jnp.where(exists & ~is_broken, values, -jnp.inf)
        return levels, values, jnp.sum(exists & is_broken).astype(jnp.int32)

    def bases(self, target: Target, state: ChainState, sites: Array) -> tuple[Array, Array]:
        """Points a candidate set may be built about, and which of them exist."""
        counts = jnp.asarray(target.domain.num_levels)[sites]
        levels = target.domain.levels_at(state.position, sites).astype(jnp.int32)
        if self.radius is None:
            return levels[None], jnp.ones(1, bool)
        shifts = jnp.asarray(self._shifts(target))
        return (levels + shifts) % counts, jnp.all(shifts < counts, axis=1)

    def _shifts(self, target: Target) -> np.ndarray:
        radius = self.block_size if self.radius is None else self.radius
        return _ball(self.block_size, target.domain.max_levels, radius)

    @property
    def _is_single_site(self) -> bool:
        return self.block_size == 1 or self.radius == 1

    def choose_sites(
        self, key: Array, density: JointDensity, state: ChainState, own: ScanMemory
    ) -> tuple[Array, ScanMemory]:
        """Return the sites to resample next."""
        num_sites = density.domain.num_sites
        if own.next_site is None:
            # Made once: XLA would draw them again for every number that is read there.
            return materialize(lambda key: draw_subset(key, num_sites, self.block_size), key), own
        sites = (own.next_site + jnp.arange(self.block_size)) % num_sites
        return sites, own._replace(next_site=(own.next_site + self.block_size) % num_sites)

    def _resample(
        self, key: Array, density: JointDensity, state: ChainState, cache: PyTree, sites: Array
    ) -> tuple[ChainState, PyTree, Array]:
        target = density.target
        key_base, key_draw = jax.random.split(key)
        bases, exists = self.bases(target, state, sites)
        is_drawn = self.radius is not None
        base = bases[draws.categorical(key_base, jnp.where(exists, 0.0, -jnp.inf)) if is_drawn else 0]
        levels, values, num_broken = self.candidates(target, state, cache, sites, base)
        weights = density.inverse_temperature * (values - jnp.max(values))
        chosen = draws.categorical(key_draw, weights)
        position, cache = _set_sites(target, state.position, cache, sites, levels[chosen])
        return state._replace(position=position, log_density=values[chosen]), cache, num_broken

    def _log_densities(
        self, target: Target, state: ChainState, cache: PyTree, sites: Array, base: Array, levels: Array
    ) -> Array:
        if target.incremental is None and not (self._is_single_site and target.has_differences):
            at = jax.vmap(target.domain.replace_sites, (None, None, 0))
            return jax.vmap(target.log_density)(at(state.position, sites, levels))
        if self._is_single_site:
            relative = self._about_base(target, state, cache, sites, base, levels)
        else:
            along = jax.vmap(_differences_along, (None, None, None, None, 0))
            relative = along(target, state.position, cache, sites, levels)
        # The current state is a candidate and its log-density is known: it fixes the zero.
        current = target.domain.levels_at(state.position, sites)
        here = jnp.argmax(jnp.all(levels == current, axis=1))
        values = state.log_density + (relative - relative[here])
        # Differences about an impossible point say nothing. States near it stay: balanced.
        stays = jnp.where(jnp.arange(len(levels)) == here, state.log_density, -jnp.inf)
        values = jnp.where(jnp.isfinite(relative[here]), values, stays)
        return self._mask_invalid(target, state, sites, levels, values)

    def _about_base(
        self, target: Target, state: ChainState, cache: PyTree, sites: Array, base: Array, levels: Array
    ) -> Array:
        """Differences to candidates that change at most one site of the base point."""
        position = state.position
        if self.radius is not None:
            # Without a radius the base is where the sites are. To write it again would keep the old array
            # alive, and XLA would copy the whole state at every site.
            position, cache = _set_sites(target, position, cache, sites, base)
        if target.incremental is None:
            table = target.differences(position)[sites]
        else:
            table = target.incremental.differences(cache, position, sites)
        shifts = self._shifts(target)
        changed = np.argmax(shifts > 0, axis=1)
        rows = table[changed, levels[np.arange(len(levels)), changed]]
        return jnp.where(shifts.any(axis=1), rows, 0)

    def _mask_invalid(
        self, target: Target, state: ChainState, sites: Array, levels: Array, values: Array
    ) -> Array:
        if not target.has_constraint:
            return values
        at = jax.vmap(target.domain.replace_sites, (None, None, 0))
        is_valid = jax.vmap(target.is_valid)(at(state.position, sites, levels))
        return jnp.where(is_valid, values, -jnp.inf)


def draw_subset(key: Array, num_sites: int, size: int) -> Array:
    """Return `size` distinct sites, every subset equally likely (Floyd's algorithm, no sort of all)."""
    first = num_sites - size
    draws = jax.random.randint(key, (size,), 0, np.arange(first, num_sites) + 1)
    if size == 1:
        return draws

    def add(index: Array, chosen: Array) -> Array:
        is_taken = jnp.any(chosen == draws[index])
        return chosen.at[index].set(jnp.where(is_taken, first + index, draws[index]))

    return jax.lax.fori_loop(0, size, add, jnp.full(size, -1, draws.dtype))


@cache
def _ball(block_size: int, num_levels: int, radius: int) -> np.ndarray:
    """Level shifts of all points within `radius` changed sites of a block; the first is no change."""
    shifts = [np.zeros((1, block_size), np.int32)]
    for num_changed in range(1, radius + 1):
        changes = np.indices((num_levels - 1,) * num_changed).reshape(num_changed, -1).T + 1
        for sites in combinations(range(block_size), num_changed):
            block = np.zeros((len(changes), block_size), np.int32)
            block[:, sites] = changes
            shifts.append(block)
    return np.concatenate(shifts)


def ball_size(block_size: int, num_levels: int, radius: int) -> int:
    """Return the number of points `_ball` would list, without listing them."""
    return sum(comb(block_size, k) * (num_levels - 1) ** k for k in range(radius + 1))


def _set_sites(
    target: Target, position: Array, memory: PyTree, sites: Array, levels: Array
) -> tuple[Array, PyTree]:
    """Set sites one after another, keeping the incremental cache in step."""
    for j in range(len(sites)):
        if target.incremental is not None:
            memory = target.incremental.update(memory, position, sites[j], levels[j])
        position = target.domain.replace_sites(position, sites[j], levels[j])
    return position, memory


def _differences_along(target: Target, position: Array, memory: PyTree, sites: Array, levels: Array) -> Array:
    """`U(all sites set) − U(position)` as a sum of one-site differences along the way."""
    assert target.incremental is not None
    total = jnp.zeros((), position.dtype)
    for j in range(len(sites)):
        table = target.incremental.differences(memory, position, sites[j : j + 1])
        total = total + table[0, levels[j]]
        position, memory = _set_sites(target, position, memory, sites[j : j + 1], levels[j : j + 1])
    return total


@jax.jit
def enumerate_updates(block: GibbsBlock, density: JointDensity) -> Array:
    """Average over all blocks of sites of the conditional move, as a transition matrix of a small domain."""
    target, domain = density.target, density.domain
    positions = domain.enumerate()

    def row(position: Array, sites: Array) -> Array:
        cache = None if target.incremental is None else target.incremental.init(position)
        state = ChainState(position, None, target.log_density(position))
        bases, exists = block.bases(target, state, sites)

        def about(base: Array) -> Array:
            levels, values, _ = block.candidates(target, state, cache, sites, base)
            ends = jax.vmap(domain.replace_sites, (None, None, 0))(position, sites, levels)
            weights = jax.nn.softmax(density.inverse_temperature * values)
            return jnp.zeros(len(positions)).at[domain.index(ends)].add(weights)

        return jnp.where(exists[:, None], jax.vmap(about)(bases), 0).sum(0) / exists.sum()

    blocks = jnp.asarray(list(combinations(range(domain.num_sites), block.block_size)))
    rows = jax.vmap(jax.vmap(row, (0, None)), (None, 0))(positions, blocks)
    return rows.mean(axis=0)
