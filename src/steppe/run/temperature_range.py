"""Temperatures to anneal between, from a target's own differences.

Looked at are states after greedy changes. At the hot end the usual loss there costs a factor of `exp(3)`:
from hotter states everything is found again in no time. At the cold end the smallest loss that counts is
refused 99 times of 100, and of all the single changes of a state fewer than one is to be expected.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import quick_jit
from steppe.errors import RunError
from steppe.kernel.start import check_start, flatten_start, repair_starts
from steppe.target import Target

NUM_STATES = 8
NUM_GREEDY = 32
# Single changes that are evaluated at a state, where the target makes no tables.
NUM_CHANGES = 16
# Inverse temperature at the hot end times the mean difference. On Gset's G14, beginning at 1 found cuts of
# 3063 where beginning at a third of it found 3061 in the same time.
HOT = 3.0
REFUSED = 100.0
# Differences below this fraction of the mean are ties: a change of an independent set for another as large.
RESOLUTION = 0.02
MIN_RATIO, MAX_RATIO = 4.0, 400.0
NUM_NEWTON = 30


def choose_temperatures(target: Target, key: Array, initial: ArrayLike | None = None) -> tuple[float, float]:
    """Return the inverse temperatures at the hot and at the cold end.

    Parameters
    ----------
    target
        What is annealed; it is looked at in a few random states and after a few greedy changes of them.
    key
        Random key.
    initial
        States inside the support, where there are few; others are searched for if none is given.
    """
    sizes = _measure_changes(target, key)
    if not sizes.size:  # perhaps no random state is inside the support
        given = _find_valid_states(target, key) if initial is None else _read_states(target, initial)
        sizes = _measure_changes(target, key, given)
    if not sizes.size:
        raise RunError(
            "`anneal(target)` found no change that changes the log-density, so there is no temperature to "
            "choose. Give a `schedule`, or look at the log-density."
        )
    hot = HOT / sizes.mean()
    counting = sizes[sizes >= RESOLUTION * sizes.mean()]
    cold = max(np.log(REFUSED) / np.quantile(counting, 0.01), find_quiet_end(counting))
    return float(hot), float(np.clip(cold, MIN_RATIO * hot, MAX_RATIO * hot))


def find_quiet_end(sizes: np.ndarray) -> float:
    """Inverse temperature at which `Σ exp(−βΔ)` over the changes of a state is 1, by Newton's method.

    What is refused 99 times of 100 at each of 10 000 sites still happens at 100 of them.
    """
    beta = 0.0
    for _ in range(NUM_NEWTON):  # the logarithm of the sum is convex: every step stays below the root
        weights = np.exp(-beta * sizes)
        beta += max(np.log(weights.sum() / NUM_STATES), 0.0) * weights.sum() / (weights @ sizes)
    return beta


def _measure_changes(target: Target, key: Array, positions: Array | None = None) -> np.ndarray:
    """By how much single changes move the log-density, where greedy ones have led if they move it there."""
    tables = (np.abs(np.asarray(table, float)) for table in _find_differences(target, key, positions))
    first, ascended = (table[np.isfinite(table) & (table > 0)] for table in tables)
    return ascended if ascended.size else first


def _find_valid_states(target: Target, key: Array) -> Array:
    """States inside the support, or an error that says that none was found."""
    keys, numbers = jax.random.split(key, NUM_STATES), np.arange(NUM_STATES)
    positions = jax.vmap(target.domain.draw)(keys)
    values = jax.vmap(target.log_density)(positions)
    return repair_starts(target, keys, positions, values, numbers, NUM_STATES)


def _read_states(target: Target, initial: ArrayLike) -> Array:
    """As many states as are looked at, from those given."""
    positions = flatten_start(target.domain, initial)
    check_start(target, positions, batched=True)
    given = jnp.asarray(positions, jnp.result_type(float))
    return given[np.arange(NUM_STATES) % len(given)]


@quick_jit
def _find_differences(target: Target, key: Array, positions: Array | None) -> tuple[Array, Array]:
    """Differences of single changes at random or given states, and where greedy changes of them have led."""
    has_table = target.has_differences or target.incremental is not None
    look = _look_at_all if target.domain.is_site_product and has_table else _look_at_some

    def at(key: Array, given: Array | None) -> tuple[Array, Array]:
        draw_key, look_key, key = jax.random.split(key, 3)
        position = target.domain.draw(draw_key) if given is None else given
        _, first = look(target, position, look_key)

        def improve(position: Array, key: Array) -> tuple[Array, None]:
            return look(target, position, key)[0], None

        position, _ = jax.lax.scan(improve, position, jax.random.split(key, NUM_GREEDY))
        return first, look(target, position, look_key)[1]

    return jax.lax.map(lambda one: at(*one), (jax.random.split(key, NUM_STATES), positions))


def _look_at_all(target: Target, position: Array, key: Array) -> tuple[Array, Array]:
    """Table of all changes; about a third of the sites that could improve do."""
    table, domain = target.differences(position), target.domain
    levels = domain.to_levels(position).astype(jnp.int32)
    is_changed = (jnp.max(table, axis=1) > 0) & jax.random.bernoulli(key, 0.3, levels.shape)
    return domain.from_levels(jnp.where(is_changed, jnp.argmax(table, axis=1), levels)), table


def _look_at_some(target: Target, position: Array, key: Array) -> tuple[Array, Array]:
    """Differences of a few random changes, the best of which is made if it is one for the better."""
    candidates = _draw_changes(target, position, key)
    differences = jax.vmap(target.log_density)(candidates) - target.log_density(position)
    best = jnp.argmax(differences)
    return jnp.where(differences[best] > 0, candidates[best], position), differences


def _draw_changes(target: Target, position: Array, key: Array) -> Array:
    domain, (first, second) = target.domain, jax.random.split(key)
    if not domain.is_site_product:
        pairs = jax.random.randint(first, (NUM_CHANGES, 2), 0, domain.num_sites)
        return jax.vmap(lambda pair: position.at[pair].set(position[pair[::-1]]))(pairs)
    sites = jax.random.randint(first, (NUM_CHANGES,), 0, domain.num_sites)
    levels = jax.random.randint(second, (NUM_CHANGES,), 0, jnp.asarray(domain.num_levels)[sites])
    return jax.vmap(domain.replace_sites, (None, 0, 0))(position, sites, levels)
