"""Knapsack: the most valuable items that together are not too heavy."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.target import Incremental, Target
from steppe.targets.checks import positive, real_array


class Knapsack(Target):
    """Items to take: `U = β (Σ v_i x_i − penalty · max(0, Σ w_i x_i − capacity))`.

    Attributes
    ----------
    values, weights
        `v` and `w` of every item.
    capacity, penalty, inverse_temperature
        What fits, what a unit more costs, and `β`.

    Examples
    --------
    >>> from steppe.targets import knapsack
    >>> target = knapsack(values=[6, 5, 4], weights=[4, 3, 2], capacity=5)
    >>> target.is_feasible([1, 1, 0]), target.is_feasible([0, 1, 1])
    (False, True)
    >>> float(target.score([0, 1, 1]))
    9.0
    """

    values: Array
    weights: Array
    capacity: Array
    penalty: Array
    inverse_temperature: Array

    def log_density(self, position: Array) -> Array:
        """`U` at a position."""
        worth = jnp.sum(self.values * position)
        return self.inverse_temperature * (worth - self._fine(self.load(position)))

    @property
    def incremental(self) -> Incremental[Array]:
        """The load."""
        return Incremental(self.load, self.differences_at, self.update_cache)

    def load(self, position: ArrayLike) -> Array:
        """Total weight of the items taken."""
        return jnp.sum(self.weights * jnp.asarray(position))

    def differences_at(self, cache: Array, position: Array, sites: Array) -> Array:
        """Exact differences of taking or leaving a few items."""
        changes = jnp.arange(2) - position[sites][:, None]
        loads = cache + changes * self.weights[sites][:, None]
        gains = changes * self.values[sites][:, None] - self._fine(loads) + self._fine(cache)
        return self.inverse_temperature * gains

    def update_cache(self, cache: Array, position: Array, site: Array, level: Array) -> Array:
        """Take or leave one item."""
        return cache + (self.domain.from_levels(level) - position[site]) * self.weights[site]

    def score(self, position: ArrayLike) -> Array:
        """Total value of the items taken, whether they fit or not."""
        return jnp.sum(self.values * jnp.asarray(position))

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether the items fit."""
        weights = np.asarray(self.weights, float)
        return bool((weights * np.asarray(position)).sum() <= float(self.capacity) * (1 + 1e-6))

    def repair(self, position: ArrayLike) -> Array:
        """Return a position that fits: items of least value per weight leave, then what fits comes in."""
        taken = np.asarray(position) > 0.5
        weights, values = np.asarray(self.weights, float), np.asarray(self.values, float)
        order, room = np.argsort(values / weights, kind="stable"), float(self.capacity)
        for item in order:
            if weights[taken].sum() <= room:
                break
            taken[item] = False
        for item in order[::-1]:
            if not taken[item] and weights[taken].sum() + weights[item] <= room:
                taken[item] = True
        return jnp.asarray(taken, jnp.result_type(float))

    def _fine(self, load: Array) -> Array:
        return self.penalty * jnp.maximum(load - self.capacity, 0)


@checked(TargetError)
def knapsack(
    values: ArrayLike,
    weights: ArrayLike,
    capacity: float,
    *,
    penalty: float | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> Knapsack:
    """Knapsack problem: take items of most value whose weights add up to no more than a capacity.

    Parameters
    ----------
    values, weights
        One positive number per item.
    capacity
        What the items taken may weigh; at least the lightest item.
    penalty
        What a unit of weight too much costs; by default a little more than the most value per weight, so that
        the best position fits.
    inverse_temperature
        `β > 0`.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.knapsack(values=[6, 5, 4], weights=[4, 3, 2], capacity=5)
    >>> best = steppe.anneal(target, key=jax.random.key(0), num_steps=64).best
    >>> best.astype(int).tolist(), float(target.score(best))
    ([0, 1, 1], 9.0)
    """
    worth, loads = (
        real_array(f"knapsack({name}=...)", given, ndim=1)
        for name, given in (("values", values), ("weights", weights))
    )
    if worth.shape != loads.shape or not worth.size:
        raise TargetError(
            f"`knapsack(values, weights)` needs one weight for each of at least one value; got {len(worth)} "
            f"values and {len(loads)} weights."
        )
    for name, given in (("values", worth), ("weights", loads)):
        if not (np.asarray(given) > 0).all():
            item = int(np.argmin(np.asarray(given)))
            raise TargetError(f"`knapsack({name}=...)` must be positive; item {item} has {given[item]:g}.")
    if not capacity >= loads.min():
        raise TargetError(
            f"`knapsack(capacity=...)` must let one item in; the lightest weighs {loads.min():g}, "
            f"the capacity is {capacity:g}."
        )
    strength = 1.01 * float((worth / loads).max()) if penalty is None else penalty
    return Knapsack(
        domain=Binary(len(worth)),
        values=worth,
        weights=loads,
        capacity=positive("knapsack(capacity=...)", capacity),
        penalty=positive("knapsack(penalty=...)", strength),
        inverse_temperature=positive("knapsack(inverse_temperature=...)", inverse_temperature),
    )
