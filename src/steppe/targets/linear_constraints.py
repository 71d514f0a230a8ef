"""Linear constraints on bits or spins: `lower ≤ A x ≤ upper`, as penalties or kept by every move."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steppe.arguments import checked
from steppe.errors import TargetError
from steppe.target import Incremental, Target
from steppe.targets.checks import array_of_shape, positive, real_array
from steppe.targets.fixed_counts import score_inner

# How far a sum of float32 terms may be beyond its bound, relative to its coefficients.
SLACK = 1e-5


class LinearPenalty(Target):
    """A target less a penalty for every unit by which a sum leaves its bounds.

    Attributes
    ----------
    inner
        The target without constraints.
    coefficients
        `A`, constraints × sites.
    lower, upper
        Bounds of every sum, infinite where there is none.
    penalty
        What a unit beyond a bound costs.
    """

    inner: Target
    coefficients: Array
    lower: Array
    upper: Array
    penalty: Array

    def log_density(self, position: Array) -> Array:
        """`U` of the inner target less the penalties."""
        return self.inner.log_density(position) - self._fine(self.sums(position))

    @property
    def incremental(self) -> Incremental[tuple[PyTree, Array]] | None:
        """What the inner target remembers, and the sums."""
        if self.inner.incremental is None:
            return None
        return Incremental(self.init_cache, self.differences_at, self.update_cache)

    def sums(self, position: ArrayLike) -> Array:
        """`A x`."""
        return jnp.matmul(self.coefficients, jnp.asarray(position), precision="highest")

    def init_cache(self, position: Array) -> tuple[PyTree, Array]:
        """Remember what the inner target does, and the sums."""
        assert self.inner.incremental is not None
        return self.inner.incremental.init(position), self.sums(position)

    def differences_at(self, cache: tuple[PyTree, Array], position: Array, sites: Array) -> Array:
        """Exact differences of changing a few sites."""
        inside, sums = cache
        assert self.inner.incremental is not None
        table = self.inner.incremental.differences(inside, position, sites)
        changes = self._levels - position[sites][:, None]
        moved = sums + changes[..., None] * self.coefficients.T[sites][:, None]
        return table - self._fine(moved) + self._fine(sums)

    def update_cache(
        self, cache: tuple[PyTree, Array], position: Array, site: Array, level: Array
    ) -> tuple[PyTree, Array]:
        """Change one site."""
        inside, sums = cache
        assert self.inner.incremental is not None
        change = self.domain.from_levels(level) - position[site]
        inside = self.inner.incremental.update(inside, position, site, level)
        return inside, sums + change * self.coefficients[:, site]

    def score(self, position: ArrayLike) -> Array:
        """Score of the inner target, whether the constraints are kept or not."""
        return score_inner(self.inner, position)

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether every sum is within its bounds."""
        return bool(jnp.all(self._is_kept(jnp.asarray(position))))

    def repair(self, position: ArrayLike) -> Array:
        """Return a position near this one with sums within their bounds, as far as single changes lead there.

        The change that takes most of the excess away comes first; between equal ones, that with the larger
        log-density. `is_feasible` says whether it was enough.
        """
        state = np.array(position, float)
        low, high = np.asarray(self._levels, float)
        rows = np.asarray(self.coefficients, float)
        while not self.is_feasible(state):
            changed = low + high - 2 * state
            after = self._excess((rows @ state)[:, None] + rows * changed)
            best = after.min()
            if best >= self._excess((rows @ state)[:, None])[0]:
                break
            ties = np.flatnonzero(after <= best + 1e-9)
            values = [float(self.inner.log_density(jnp.asarray(_flip(state, i, changed)))) for i in ties]
            state = _flip(state, ties[int(np.argmax(values))], changed)
        return jnp.asarray(state, jnp.result_type(float))

    @property
    def _levels(self) -> Array:
        return self.domain.points(0)[:, 0]

    def _excess(self, sums: np.ndarray) -> np.ndarray:
        """By how much sums (constraints on the first axis) are beyond their bounds, all together."""
        above = sums - np.asarray(self.upper, float)[:, None]
        below = np.asarray(self.lower, float)[:, None] - sums
        return np.maximum(np.maximum(above, below), 0).sum(axis=0)

    def _is_kept(self, position: Array) -> Array:
        sums, slack = self.sums(position), SLACK * jnp.max(jnp.abs(self.coefficients), axis=1)
        return (sums <= self.upper + slack) & (sums >= self.lower - slack)

    def _fine(self, sums: Array) -> Array:
        excess = jnp.maximum(jnp.maximum(sums - self.upper, self.lower - sums), 0)
        return jnp.sum(self.penalty * excess, axis=-1)


class LinearConstraints(LinearPenalty):
    """A target restricted to states whose sums are within their bounds."""

    def is_valid(self, position: Array) -> Array:
        """Whether every sum is within its bounds."""
        return jnp.all(self._is_kept(position))


@checked(TargetError)
def linear_constraints(
    target: Target,
    coefficients: ArrayLike,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    penalty: float | None = None,
) -> LinearPenalty:
    """Constrain a target on bits or spins by `lower ≤ A x ≤ upper`.

    Parameters
    ----------
    target
        The target without constraints.
    coefficients
        `A`: one number per site, or a row of them for every constraint.
    lower, upper
        One bound, or one per constraint; at least one of both. Equal bounds fix a sum.
    penalty
        `> 0`: subtracted from `U` for every unit beyond a bound. By default the constraint is kept: no state
        beyond a bound has any probability, and moves of `gibbs()` never go there. Where sums are fixed, add
        swaps: `gibbs(num_swaps=1)`; or use `fixed_counts`.

    Examples
    --------
    >>> from steppe.targets import linear_constraints, qubo
    >>> two = linear_constraints(qubo([[-3, 0, 0], [0, -2, 0], [0, 0, -1]]), [1, 1, 1], upper=2)
    >>> two.is_feasible([1.0, 1.0, 1.0]), two.repair([1.0, 1.0, 1.0]).tolist()
    (False, [1.0, 1.0, 0.0])
    """
    name, domain = "linear_constraints", target.domain
    if not domain.is_two_level or len(domain.shape) != 1:
        raise TargetError(f"`{name}(target, ...)` needs bits or spins; got {domain!r}.")
    rows = np.atleast_2d(real_array(f"{name}(coefficients=...)", coefficients))
    if rows.ndim != 2 or rows.shape[1] != domain.num_sites:
        raise TargetError(
            f"`{name}(coefficients=...)` must have one number for each of {domain.num_sites} sites, and a "
            f"row of them for every constraint; got shape {np.shape(coefficients)}."
        )
    if lower is None and upper is None:
        raise TargetError(f"`{name}(...)` needs `lower`, `upper` or both; none was given.")
    bounds = [
        np.full(len(rows), rest) if given is None else _read_bound(f"{name}({side}=...)", given, len(rows))
        for side, given, rest in (("lower", lower, -np.inf), ("upper", upper, np.inf))
    ]
    _check_reachable(name, rows, np.asarray(domain.points(0)[:, 0], float), *bounds)
    made = LinearConstraints if penalty is None else LinearPenalty
    strength = 0.0 if penalty is None else positive(f"{name}(penalty=...)", penalty)
    floats = [jnp.asarray(array, jnp.result_type(float)) for array in (rows, *bounds, strength)]
    return made(domain, target, *floats)


def _read_bound(name: str, given: ArrayLike, size: int) -> np.ndarray:
    return np.asarray(array_of_shape(name, given, (size,)), float)


def _check_reachable(
    name: str, rows: np.ndarray, levels: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> None:
    """Refuse bounds that no state meets, as far as each constraint alone shows it."""
    ends = np.sort(rows[..., None] * levels, axis=-1).sum(axis=1)
    slack = SLACK * np.abs(rows).max(axis=1)
    wrong = np.flatnonzero((lower > upper) | (ends[:, 0] > upper + slack) | (ends[:, 1] < lower - slack))
    if wrong.size:
        row = int(wrong[0])
        raise TargetError(
            f"`{name}(...)`: constraint {row} asks for a sum from {lower[row]:g} to {upper[row]:g}, and its "
            f"sum is from {ends[row, 0]:g} to {ends[row, 1]:g} in any state. No state satisfies it."
        )


def _flip(state: np.ndarray, site: int, changes: np.ndarray) -> np.ndarray:
    flipped = state.copy()
    flipped[site] += changes[site]
    return flipped
