"""Local entropy by exact sums: over all states, or over those a few changes away.

Notation: `F(a; η) = log Σ_θ exp{U(θ) − |θ − a|²/(2η)}`, the mass of `exp U` within a radius of about `√η`
of `a`. It rewards wide modes among equally high ones, and high ones among equally wide ones; always read
it beside `U`.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.flatness.log_tables import (
    log_table,
    normalize_table,
    smooth,
    smooth_about,
    smooth_within,
)
from steppe.diagnostics.states import Progress, is_exact_wanted, map_states, means
from steppe.domain import MAX_ENUMERATED, Domain
from steppe.errors import DomainError, RecipeError, TargetError
from steppe.target.log_density import Target
from steppe.validation import positive


class LocalEntropy(NamedTuple):
    """`F(θ; η)` of each state.

    Attributes
    ----------
    value
        The sum, or its estimate.
    standard_error
        Of each estimate; zero for exact sums.
    lower, upper
        Ends of its 95 % interval. Not symmetric about the estimate, which is the logarithm of a skewed mean.
    effective_size
        How many equally weighted samples the estimate is worth; infinite for exact sums. Below about ten,
        trust neither the estimate nor its error.
    log_density
        `U(θ)`; NaN where a center is not a state.
    mean_log_density
        Its mean over the states given.
    exact_under_target
        Expectations of `value` and of `log_density` under `π`, where it was enumerated.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from steppe.diagnostics.flatness import local_entropy_enumerated
    >>> from steppe.targets import paper_bernoulli
    >>> entropy = local_entropy_enumerated(paper_bernoulli(), jnp.ones((1, 4)), coupling_variance=1.0)
    >>> entropy.value.shape, entropy.standard_error.tolist()  # an exact sum has no error
    ((1,), [0.0])
    """

    value: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    effective_size: np.ndarray
    log_density: np.ndarray
    mean_log_density: float
    exact_under_target: dict[str, float] | None


@checked(TargetError, centers=1)
def local_entropy_enumerated(target: Target, centers: ArrayLike, coupling_variance: float) -> LocalEntropy:
    """Exact local entropy, from all states of a domain with at most 2**20 of them.

    Parameters
    ----------
    target
        The log-density.
    centers
        Points of shape `(..., *domain.shape)`, states or not.
    coupling_variance
        `η > 0`. Raising it widens the radius.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np
    >>> from steppe.diagnostics.flatness import local_entropy_enumerated
    >>> from steppe.targets import qubo
    >>> flat = qubo([[0, 0], [0, 0]])  # all four states have U = 0
    >>> entropy = local_entropy_enumerated(flat, jnp.zeros((1, 2)), coupling_variance=1.0)
    >>> bool(np.allclose(entropy.value, 2 * np.log(1 + np.exp(-0.5))))
    True
    """
    η = positive_variance("local_entropy_enumerated", coupling_variance)
    domain, table = target.domain, log_table(target)
    array = np.asarray(centers, float)
    if array.shape[max(array.ndim - len(domain.shape), 0) :] != domain.shape:
        raise DomainError(f"`centers` must have shape (..., *{domain.shape}); got {array.shape}.")
    everywhere = smooth(table, domain, η)
    lead = array.shape[: array.ndim - len(domain.shape)]
    if domain.contains(array):
        index = np.asarray(domain.index(jnp.asarray(array, jnp.result_type(float))))
        values, log_density = everywhere.ravel()[index], table.ravel()[index]
    else:
        rows = array.reshape((-1, *domain.shape))
        values = np.reshape([smooth_about(table, domain, row, η) for row in rows], lead)
        log_density = np.full(lead, np.nan)
    return _exact(values, log_density, _expect(table, everywhere))


@checked(TargetError)
def local_entropy_ball(
    target: Target,
    positions: ArrayLike,
    radius: int,
    coupling_variance: float = math.inf,
    *,
    exact: bool | None = None,
    batch_size: int = 8,
    progress: Progress | None = None,
) -> LocalEntropy:
    """Exact local entropy restricted to the states that differ from `θ` in at most `radius` sites.

    Parameters
    ----------
    target
        The log-density. Cost: one table of differences per state within `radius − 1` changes.
    positions
        States, of shape `(..., *domain.shape)`.
    radius
        1, 2 or 3.
    coupling_variance
        `η > 0`; infinite (the default) for the plain log-mass of the ball.
    exact, batch_size, progress
        As in `single_site_differences`.

    Notes
    -----
    A lower bound of `F(θ; η)`, tight where `η` keeps the weight within the ball.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np
    >>> from steppe.diagnostics.flatness import local_entropy_ball
    >>> from steppe.targets import ising_lattice
    >>> ball = local_entropy_ball(ising_lattice((3, 3), coupling=0.0), jnp.ones((1, 9)), radius=1)
    >>> np.exp(ball.value).round(3).tolist()  # the state and its nine neighbours, all of weight 1
    [10.0]
    """
    η = (
        math.inf
        if coupling_variance == math.inf
        else positive_variance("local_entropy_ball", coupling_variance)
    )
    _check_radius(target.domain, radius)
    values, log_density = map_states(
        _ball, target, positions, η, options=(radius,), batch_size=batch_size, progress=progress
    )
    expected = None
    if is_exact_wanted(target, exact):
        table = log_table(target)
        expected = _expect(table, smooth_within(table, target.domain, η, radius))
    return _exact(values, log_density, expected)


def positive_variance(name: str, value: float) -> float:
    """Return `η`, refusing what is not a positive number."""
    remedy = "It is the squared radius, in the units of the embedding."
    return positive(f"{name}(coupling_variance=...)", value, remedy=remedy)


def ball_size(domain: Domain, radius: int) -> int:
    """Number of states that differ from a given one in at most `radius` sites."""
    shells = [1] + [0] * radius
    for size in domain.num_levels:
        for changed in range(radius, 0, -1):
            shells[changed] += (size - 1) * shells[changed - 1]
    return sum(shells)


def _check_radius(domain: Domain, radius: int) -> None:
    if isinstance(radius, bool) or radius not in (1, 2, 3):
        raise RecipeError(
            f"`local_entropy_ball(radius=...)` must be 1, 2 or 3; got {radius!r}. For more, use "
            "`local_entropy`, which samples."
        )
    if ball_size(domain, radius) > MAX_ENUMERATED:
        raise DomainError(
            f"A ball of radius {radius} in {domain!r} holds {ball_size(domain, radius):.3g} states; at most "
            f"{MAX_ENUMERATED} are listed. Use a smaller radius, or `local_entropy`, which samples."
        )


def _ball(target: Target, position: Array, coupling_variance: Array, radius: int) -> tuple[Array, Array]:
    """`log Σ exp` over the ball: the state, then all that one more change after the last one reaches."""
    domain, start = target.domain, target.log_density(position)
    base = jnp.where(jnp.isfinite(start), start, 0)
    sizes = jnp.asarray(domain.num_levels)
    offsets = jnp.arange(1, domain.max_levels)

    def gains(state: Array, reached: Array) -> Array:
        """Table of `U` after one more change, minus that of the start."""
        if target.has_differences and not target.has_constraint:
            return reached + target.differences(state)
        return _neighbour_values(target, state) - base  # a valid state may lie behind an invalid one

    def beyond(state: Array, reached: Array, weight: Array, first: Array, changes: int) -> Array:
        table = gains(state, reached)
        weights = weight - domain.squared_jumps(position) / (2 * coupling_variance)
        sites = jnp.arange(domain.num_sites)
        levels = (domain.to_levels(state).astype(jnp.int32)[:, None] + offsets) % sizes[:, None]
        is_open = (sites[:, None] >= first) & (offsets < sizes[:, None])
        values = jnp.take_along_axis(table, levels, axis=1)
        paid = jnp.take_along_axis(weights, levels, axis=1)
        here = jax.nn.logsumexp(jnp.where(is_open, values + paid, -jnp.inf))
        if changes == 1:
            return here

        def after(change: tuple[Array, ...]) -> Array:
            site, level, value, log_weight, is_wanted = change
            moved = domain.replace_sites(state, site, level)
            total = beyond(moved, value, log_weight, site + 1, changes - 1)
            return jnp.where(is_wanted, total, -jnp.inf)

        grid = jnp.broadcast_to(sites[:, None], levels.shape)
        entries = tuple(jnp.ravel(array) for array in (grid, levels, values, paid, is_open))
        return jnp.logaddexp(here, jax.nn.logsumexp(jax.lax.map(after, entries)))

    zero = jnp.zeros((), start.dtype)
    total = beyond(position, zero, zero, jnp.asarray(0), radius)
    return base + jnp.logaddexp(start - base, total), start


def _neighbour_values(target: Target, position: Array) -> Array:
    """`U` after every one-site change, site × level."""
    domain = target.domain

    def value(site: Array, level: Array) -> Array:
        return target.log_density(domain.replace_sites(position, site, level))

    over_levels = jax.vmap(value, (None, 0))
    return jax.vmap(over_levels, (0, None))(jnp.arange(domain.num_sites), jnp.arange(domain.max_levels))


def _expect(table: np.ndarray, values: np.ndarray) -> dict[str, float]:
    return means(normalize_table(table), value=values.ravel(), log_density=table.ravel())


def _exact(values: np.ndarray, log_density: np.ndarray, expected: dict[str, float] | None) -> LocalEntropy:
    values, zeros = np.asarray(values), np.zeros(np.shape(values))
    mean = float(np.mean(log_density))
    return LocalEntropy(values, zeros, values, values, zeros + np.inf, log_density, mean, expected)
