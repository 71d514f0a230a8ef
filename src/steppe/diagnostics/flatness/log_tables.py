"""Sums over all states of a small domain, one site at a time.

A table holds one number per state, with one axis per site. A sum over states whose weight is a product over
sites is then a sequence of small sums along the axes: `states × levels` operations per site, instead of
`states²`.
"""

import jax
import numpy as np
from jax import Array

from steppe.domain import Domain
from steppe.target.log_density import Target


def log_table(target: Target) -> np.ndarray:
    """`U` of every state, one axis per site.

    Raises
    ------
    DomainError
        If there are more than 2**20 states.
    """
    states = target.domain.enumerate()
    return np.asarray(_log_densities(target, states), float).reshape(target.domain.num_levels)


@jax.jit
def _log_densities(target: Target, states: Array) -> Array:
    return jax.lax.map(target.log_density, states, batch_size=1024)


def normalize_table(table: np.ndarray) -> np.ndarray:
    """`π` over `domain.enumerate()`."""
    weights = np.exp(table - table.max()).ravel()
    return weights / weights.sum()


def level_distances(domain: Domain) -> list[np.ndarray]:
    """Squared distance between the levels of every site, level × level."""
    sizes = np.asarray(domain.num_levels)
    rows = [
        np.asarray(domain.squared_jumps(domain.from_levels(np.minimum(level, sizes - 1))), float)
        for level in range(domain.max_levels)
    ]
    return [np.stack([row[site, :size] for row in rows[:size]]) for site, size in enumerate(sizes)]


def distances_to(domain: Domain, center: np.ndarray) -> list[np.ndarray]:
    """Squared distance of every level of every site to a point that need not be a state."""
    return [
        np.square(domain.points(site) - np.reshape(row, (1, -1))).sum(axis=1)
        for site, row in enumerate(center)
    ]


def smooth(table: np.ndarray, domain: Domain, coupling_variance: float) -> np.ndarray:
    """`log Σ_θ' exp{table(θ') − |θ' − θ|²/(2η)}` for every state `θ`."""
    for site, distances in enumerate(level_distances(domain)):
        table = _log_product(table, -distances / (2 * coupling_variance), site)
    return table


def smooth_about(
    table: np.ndarray, domain: Domain, center: np.ndarray, coupling_variance: float
) -> np.ndarray:
    """The same about one point: every step sums the first axis away."""
    for distances in distances_to(domain, center):
        weights = -distances / (2 * coupling_variance)
        table = np.logaddexp.reduce(table + weights.reshape(-1, *[1] * (table.ndim - 1)), axis=0)
    return table


def smooth_within(table: np.ndarray, domain: Domain, coupling_variance: float, radius: int) -> np.ndarray:
    """`smoothed`, restricted to states that differ in at most `radius` sites."""
    shells = [table] + [np.full_like(table, -np.inf) for _ in range(radius)]
    for site, distances in enumerate(level_distances(domain)):
        log_weights = -distances / (2 * coupling_variance)
        np.fill_diagonal(log_weights, -np.inf)
        for size in range(radius, 0, -1):  # outermost first: a site changes at most once
            entered = _log_product(shells[size - 1], log_weights, site)
            shells[size] = np.logaddexp(shells[size], entered)
    return np.logaddexp.reduce(shells, axis=0)


def noisy_mean(table: np.ndarray, domain: Domain, flip_fraction: float) -> np.ndarray:
    """Mean of a table when every site changes with this probability, to any other level alike."""
    for site, size in enumerate(domain.num_levels):
        kernel = np.full((size, size), flip_fraction / (size - 1))
        np.fill_diagonal(kernel, 1 - flip_fraction)
        table = np.moveaxis(np.tensordot(kernel, table, (1, site)), 0, site)
    return table


def steepest_roots(table: np.ndarray, resolution: float) -> np.ndarray:
    """Index of the local maximum that steepest ascent reaches from every state.

    Among changes whose gains agree to within `resolution` the first is taken, in the order of sites, then
    levels. Gains up to twice the resolution do not count, so that rounding cannot lead in circles.
    """
    changes = [(site, level) for site, size in enumerate(table.shape) for level in range(size)]
    indices = np.arange(table.size).reshape(table.shape)
    best = np.full(table.shape, 2 * resolution)
    for site, level in changes:
        best = np.fmax(best, _gain(table, site, level))
    following = indices.copy()
    for site, level in reversed(changes):  # the first of equals is written last
        gain = _gain(table, site, level)
        is_taken = (gain > 2 * resolution) & (gain >= best - resolution)
        following = np.where(is_taken, np.take(indices, [level], axis=site), following)
    roots = following.ravel()
    while not np.array_equal(roots, roots[roots]):
        roots = roots[roots]
    return roots


def _gain(table: np.ndarray, site: int, level: int) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # between impossible states: −inf − (−inf)
        return np.take(table, [level], axis=site) - table


def _log_product(table: np.ndarray, log_weights: np.ndarray, axis: int) -> np.ndarray:
    """`log Σ_l exp(log_weights[k, l] + table[..., l, ...])` along one axis."""
    moved = np.moveaxis(table, axis, 0)
    shape = (-1, *[1] * (moved.ndim - 1))
    rows = [np.logaddexp.reduce(moved + weights.reshape(shape), axis=0) for weights in log_weights]
    return np.moveaxis(np.stack(rows), 0, axis)
