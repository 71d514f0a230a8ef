"""Apply a function of one state to many: in batches that fit into memory, with word of progress."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import quick_jit
from steppe.errors import DomainError, TargetError
from steppe.target.log_density import Target
from steppe.validation import call_back, count

Progress = Callable[[int, int], None]

# Up to this many states the exact value under the target is computed unasked.
MAX_UNASKED = 2**12
NUM_REPORTS = 20


def map_states(
    function: Callable[..., object],
    target: Target,
    positions: ArrayLike,
    *numbers: ArrayLike,
    keys: Array | None = None,
    options: tuple[int, ...] = (),
    batch_size: int = 32,
    progress: Progress | None = None,
) -> Any:
    """Arrays of `function(target, position, [key], *numbers, *options)`, one entry per state.

    Parameters
    ----------
    function
        A function of one position that returns a pytree of arrays. It and `options` are compiled in, all
        else is traced.
    target
        Its first argument.
    positions
        States, of shape `(..., *domain.shape)`.
    numbers
        Further arguments, the same for all states.
    keys
        One key; every state gets its own by its place among the states, whatever the batches are.
    options
        Last arguments, integers that fix shapes.
    batch_size
        How many states are evaluated at once.
    progress
        Called as `progress(done, total)` after each of up to twenty parts.
    """
    flat, lead = flat_states(target, positions)
    count("batch_size", batch_size, error=TargetError)
    total = len(flat)
    items = (
        (flat,) if keys is None else (flat, jax.vmap(partial(jax.random.fold_in, keys))(jnp.arange(total)))
    )
    size = total if progress is None else batch_size * -(-total // (batch_size * NUM_REPORTS))
    parts = []
    for start in range(0, total, size):
        rows = np.arange(start, start + size) % total  # the last part is filled up, so that shapes repeat
        part = jax.tree.map(lambda leaf, rows=rows: leaf[rows], items) if size < total else items
        parts.append(jax.device_get(_map(function, options, batch_size, target, part, numbers)))
        if progress is not None:
            call_back("progress", progress, min(start + size, total), total)
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:total], *parts)
    return jax.tree.map(lambda leaf: leaf.reshape(lead + leaf.shape[1:]), joined)


@partial(quick_jit, static_argnums=(0, 1, 2))
def _map(
    function: Callable[..., object],
    options: tuple[int, ...],
    batch_size: int,
    target: Target,
    items: tuple[Array, ...],
    numbers: tuple[ArrayLike, ...],
) -> Any:
    return jax.lax.map(lambda item: function(target, *item, *numbers, *options), items, batch_size=batch_size)


def flat_states(target: Target, positions: ArrayLike) -> tuple[Array, tuple[int, ...]]:
    """States with one leading axis, checked, and the leading axes they came with."""
    domain, array = target.domain, np.asarray(positions)
    lead = array.shape[: max(array.ndim - len(domain.shape), 0)]
    if not domain.contains(array) or not array.size:
        raise DomainError(
            f"`positions` must be states of {domain!r}, of shape (..., {', '.join(map(str, domain.shape))}); "
            f"got shape {array.shape}"
            + (" with entries that are no level." if array.shape[len(lead) :] == domain.shape else ".")
        )
    return jnp.asarray(array.reshape((-1, *domain.shape)), jnp.result_type(float)), lead


def is_exact_wanted(target: Target, exact: bool | None) -> bool:
    """Whether to enumerate: when asked to, or unasked where it costs little."""
    if exact is None:
        return target.domain.num_states <= MAX_UNASKED
    return exact


def means(distribution: np.ndarray, **values: np.ndarray) -> dict[str, float]:
    """Expectations under a distribution over all states; states that cannot occur do not count."""
    possible = distribution > 0
    return {
        name: float(distribution[possible] @ np.asarray(v, float)[possible]) for name, v in values.items()
    }
