"""Where a chain may start: checked before anything runs, with the offending chain and value named."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import quick_jit
from steppe.domain.base import Domain
from steppe.domain.structured import Structured, flatten_positions
from steppe.errors import DomainError, StartError
from steppe.kernel.start_search import count_most_evaluations, search_starts
from steppe.pytree import is_concrete
from steppe.target.log_density import Target


def flatten_start(domain: Domain, positions: Structured) -> ArrayLike:
    """Return starting positions as kernels hold them; what a log-density takes is welcome too."""
    try:
        return flatten_positions(domain, positions)
    except DomainError as error:
        raise StartError(f"The starting position does not fit {domain!r}: {error}") from error


def start_array(positions: ArrayLike) -> np.ndarray:
    """Return starting positions as an array of real numbers."""
    try:
        array = np.asarray(positions)
    except (TypeError, ValueError) as error:
        raise StartError(f"The starting position is not an array of numbers: {error}.") from error
    if array.dtype.kind not in "buif":
        raise StartError(
            f"The starting position holds {array.dtype}; real numbers are needed. "
            "`target.domain.draw(key)` gives a valid position."
        )
    return array


def check_gradient(gradient: Array | None) -> None:
    """Refuse a start from which a gradient sampler cannot take a step."""
    if gradient is not None and is_concrete(gradient) and not np.isfinite(np.asarray(gradient)).all():
        raise StartError(
            "The gradient of the log-density is not finite at the starting position, although its value is. "
            "Start elsewhere, give `Target(..., value_and_grad=...)`, or use a sampler without gradient."
        )


def check_start(
    target: Target,
    positions: ArrayLike,
    *,
    batched: bool = False,
    num_chains: int | None = None,
    what: str = "Chain",
) -> None:
    """Refuse starts of the wrong shape, outside the domain, or with a non-finite log-density.

    Parameters
    ----------
    target
        What will be sampled.
    positions
        One position, or with `batched` a stack of them, one per chain.
    batched
        Whether the first axis counts chains.
    num_chains
        How many there must be, if that is known.
    what
        What an entry of the first axis is called in messages.
    """
    array = start_array(positions)
    expected = (num_chains or "chains", *target.domain.shape) if batched else target.domain.shape
    has_shape = array.ndim == len(expected) and array.shape[batched:] == target.domain.shape
    if not has_shape or (num_chains is not None and len(array) != num_chains):
        shown = str(expected).replace("'", "")
        raise StartError(
            f"The starting position has shape {array.shape}; {target.domain!r} needs {shown}. "
            "`target.domain.draw(key)` gives a valid one."
        )
    chains = array if batched else array[None]
    if len(chains) == 0:
        raise StartError("The starting position holds no chain; give at least one.")
    names = [_name(what, chain, batched) for chain in range(len(chains))]
    for name, position in zip(names, chains, strict=True):
        _check_levels(target, position, name)
    with jax.ensure_compile_time_eval():  # concrete values can be checked inside a traced function too
        values = _log_densities(target, jnp.asarray(chains, jnp.result_type(float)))
    _check_values(np.asarray(values), names)


def check_starts(target: Target, positions: ArrayLike, reals: Array | None) -> None:
    """Refuse starts of chains as `check_start` does, each at its own real coordinates in a mixed model."""
    if not target.domain.num_reals:
        check_start(target, positions, batched=True)
        return
    if reals is None:
        names = [variable.name for variable in target.domain.real_variables]
        raise StartError(f"`initial` has positions and no {names}; give both, or neither.")
    for position, coordinates in zip(start_array(positions), reals, strict=True):
        check_start(target.given(coordinates), position)


def repair_starts(
    target: Target, keys: Array, positions: Array, values: ArrayLike, chains: np.ndarray, num_chains: int
) -> Array:
    """Return random starts, those in states that the log-density excludes replaced by others.

    Parameters
    ----------
    target
        What will be sampled.
    keys
        Random keys, one for each position.
    positions
        Positions, one per chain.
    values
        Their log-densities; with replicas one for each of them.
    chains, num_chains
        Number of the chain at each position; those beyond the last chain do not matter.
    """
    is_lost = ~np.isfinite(np.asarray(values)).reshape(len(positions), -1).all(axis=1)
    lost = np.flatnonzero(is_lost & (chains < num_chains))
    if not lost.size:
        return positions
    limit = count_most_evaluations(target)
    found = search_starts(target, keys[lost], positions[lost], jnp.full(len(lost), jnp.nan), limit)
    _check_values(np.asarray(found.log_density), [f"Chain {chain}" for chain in chains[lost]], limit)
    return positions.at[lost].set(found.position)


# One program instead of one for each operation of the log-density.
@quick_jit
def _log_densities(target: Target, positions: Array) -> Array:
    return jax.vmap(target.log_density)(positions)


def _check_levels(target: Target, position: np.ndarray, where: str) -> None:
    is_member = target.domain.is_member(position)
    if not is_member.all():
        site = int(np.argmin(is_member))
        raise StartError(
            f"{where} starts at {position[site]} on site {site}, which is not a level of "
            f"{target.domain!r}. `target.domain.from_levels(...)` makes positions from level indices."
        )


def _check_values(values: np.ndarray, names: list[str], num_tried: int = 0) -> None:
    for name, value in zip(names, values, strict=True):
        if np.isfinite(value):
            continue
        reason = (
            "the constraint or the log-density excludes that state; start inside the support"
            if value == -np.inf
            else "a log-density must be a finite number or -inf; look for a 0/0 or log of a negative"
        )
        searched = f" A search of {num_tried} states found no other; give `initial`." if num_tried else ""
        raise StartError(f"{name} starts where the log-density is {value}: {reason}.{searched}")


def _name(what: str, index: int, batched: bool) -> str:
    return f"{what} {index}" if batched else "The chain"
