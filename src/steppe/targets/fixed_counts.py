"""Fixed counts: a target restricted to states with so many sites at every level, moved by swaps (Kawasaki).

A state is an arrangement of labelled markers on the sites: `counts[k]` markers of level `k`. Samplers of
permutations swap markers, so that no state ever leaves the constraint. As many arrangements stand for every
state, so the distribution over states is the target's own, restricted.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Permutation
from steppe.errors import TargetError
from steppe.target import Target
from steppe.targets.checks import count


@runtime_checkable
class Scored(Protocol):
    """A problem that counts what a position is worth."""

    def score(self, position: ArrayLike) -> Array: ...  # noqa: D102


def score_inner(target: Target, position: ArrayLike) -> Array:
    """Score of a position by the target without a constraint."""
    if not isinstance(target, Scored):
        raise TargetError(f"`score(position)`: {type(target).__name__} has no score of its own.")
    return target.score(position)


class FixedCounts(Target):
    """A target on arrangements of markers; a position lists the marker at every site.

    Attributes
    ----------
    inner
        The target without the constraint.
    counts
        Sites at every level.
    """

    inner: Target
    counts: tuple[int, ...] = eqx.field(static=True)

    def log_density(self, position: Array) -> Array:
        """`U` of the state that an arrangement stands for."""
        return self.inner.log_density(self.to_state(position))

    def to_state(self, position: ArrayLike) -> Array:
        """Return the position of the inner target; leading axes are a batch."""
        markers = jnp.asarray(position).astype(jnp.int32)
        levels = np.repeat(np.arange(len(self.counts)), self.counts)
        return self.inner.domain.from_levels(jnp.asarray(levels)[markers])

    def to_arrangement(self, state: ArrayLike) -> Array:
        """Return an arrangement that stands for a position of the inner target, to start from."""
        levels = np.asarray(self.inner.domain.to_levels(jnp.asarray(state))).astype(int)
        found = tuple(np.bincount(levels, minlength=len(self.counts)).tolist())
        if found != self.counts:
            raise TargetError(f"`to_arrangement(state)` needs counts {self.counts}; this state has {found}.")
        markers = np.empty(len(levels))
        markers[np.argsort(levels, kind="stable")] = np.arange(len(levels))
        return jnp.asarray(markers, jnp.result_type(float))

    def canonical(self, position: Array) -> Array:
        """The arrangement in which markers of a level stand in order."""
        markers = position.astype(jnp.int32)
        levels = jnp.asarray(np.repeat(np.arange(len(self.counts)), self.counts))[markers]
        ordered = jnp.argsort(levels, stable=True)
        return jnp.zeros_like(position).at[ordered].set(jnp.arange(len(position), dtype=position.dtype))

    def score(self, position: ArrayLike) -> Array:
        """Score of the state that an arrangement stands for, where the target without constraint has one."""
        return score_inner(self.inner, self.to_state(position))

    def repair(self, position: ArrayLike) -> Array:
        """Return an arrangement with the markers in the order of these numbers, each once."""
        order = np.argsort(np.asarray(position), kind="stable")
        return jnp.asarray(np.argsort(order), jnp.result_type(float))

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether every marker is at one site, which swaps keep so."""
        return bool((np.sort(np.asarray(position)) == np.arange(self.domain.num_sites)).all())


@checked(TargetError)
def fixed_counts(target: Target, counts: Sequence[int]) -> FixedCounts:
    """Restrict a target to states with so many sites at every level, to be moved by swaps.

    Parameters
    ----------
    target
        A target whose sites all have the same levels: bits, spins, categories.
    counts
        Sites at every level, in the order of the levels, together all sites: of 10 bits with 3 ones
        `(7, 3)`; of an assignment of 6 people to 3 shifts, 2 each, `(2, 2, 2)`.

    Returns
    -------
    FixedCounts
        A target on `Permutation(num_sites)`: use `uniform_permutation(moves="swap")` or
        `informed_permutation(moves="swap")`, and `to_state(position)` for the states.

    Examples
    --------
    >>> from steppe.targets import fixed_counts, qubo
    >>> three = fixed_counts(qubo([[1, 2, 0], [0, -1, 1], [0, 0, 2]]), (1, 2))
    >>> three.to_state([2, 0, 1]).tolist()
    [1.0, 0.0, 1.0]
    """
    domain = target.domain
    if not domain.is_site_product or len(set(domain.num_levels)) != 1:
        raise TargetError(f"`fixed_counts(target, ...)` needs sites of the same levels; got {domain!r}.")
    sizes = tuple(count("fixed_counts(counts=...)", size, minimum=0) for size in counts)
    if len(sizes) != domain.max_levels or sum(sizes) != domain.num_sites:
        raise TargetError(
            f"`fixed_counts(counts=...)` must share {domain.num_sites} sites among {domain.max_levels} "
            f"levels; got {list(sizes)}, which is {len(sizes)} levels and {sum(sizes)} sites."
        )
    return FixedCounts(Permutation(domain.num_sites), target, sizes)
