"""Exact distributions of recipes whose center is integrated out, built from the kernels' own site-wise terms.

Given a state, every site and every center coordinate moves on its own. So a table per site is enough, and a
distribution over positions × a grid of centers is pushed forward one axis at a time.
"""

import itertools
import math
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.diagnostics.exact import stationary_distribution
from steppe.domain import Domain, Ordinal
from steppe.errors import DomainError
from steppe.target.log_density import Target

if TYPE_CHECKING:
    from steppe.kernel.blocks.metropolis import ProposalBlock
    from steppe.kernel.compose import Recipe
    from steppe.kernel.proposals.discrete_langevin import PositionAndCenter
    from steppe.kernel.sampler import Sampler

# Of the grid on which the center of `edula` is carried along: sites × levels × nodes per site.
MAX_GRID = 2**23
NUM_NODES = 100
# Spacing and reach of the grid in standard deviations: a sum over nodes that far apart integrates what decays
# like a Gaussian to 1e-13, and what lies beyond weighs 1e-6.
SPACING, REACH = 0.8, 5.0


def level_log_probs(distribution: Any, domain: Domain) -> Array:
    """Log-probability of every level at every site, level × site, of a product distribution of positions."""
    levels = jnp.arange(domain.max_levels)[:, None] * jnp.ones(domain.num_sites, int)
    return jax.vmap(lambda row: distribution.log_prob_terms(domain.from_levels(row))[0])(levels)


# ---- edula_glu: the center is drawn afresh -------------------------------------------------------------


@quick_jit
def _noisy_level_probs(sampler: "Sampler", offsets: Array, weights: Array) -> Array:
    """Probability of every level averaged over the center's offset, position × level × site."""
    density, block = sampler.density, cast("ProposalBlock", sampler.recipe.blocks[1])
    domain = density.domain

    def given(position: Array, offset: Array) -> Array:
        distribution = block.proposal.at(density, density.evaluate(position, position + offset))
        return jnp.exp(level_log_probs(distribution, domain))

    over_offsets = jax.vmap(given, (None, 0))
    positions = domain.enumerate()
    return jax.vmap(lambda position: jnp.tensordot(weights, over_offsets(position, offsets), 1))(positions)


def glu_transition_matrix(recipe: "Recipe", target: Target) -> np.ndarray:
    """Transition matrix of `edula_glu` on scalar sites, its Gaussian center integrated by Gauss–Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NUM_NODES)
    sampler = recipe.build(target, audit=False)
    _check_scalar_sites(recipe, target)
    offsets = nodes * np.sqrt(sampler.parameters["coupling_variance"])
    probs = np.asarray(_noisy_level_probs(sampler, offsets, weights / weights.sum()))
    return np.array([_product_distribution(row.T) for row in probs])


def _product_distribution(site_probs: np.ndarray) -> np.ndarray:
    """Probabilities of all positions, first site slowest, from a table site × level."""
    return np.array([np.prod(levels) for levels in itertools.product(*site_probs)])


# ---- edula: the center is carried along ----------------------------------------------------------------


@quick_jit
def _axis_tables(sampler: "Sampler", nodes: Array) -> Array:
    """Log-probability of (level, new node) given the old node, position × site × level × new × old."""
    density, block = sampler.density, cast("ProposalBlock", sampler.recipe.blocks[0])
    domain = density.domain

    def given(position: Array, node: Array) -> Array:
        state = density.evaluate(position, jnp.full(domain.shape, node))
        distribution = cast("PositionAndCenter", block.proposal.at(density, state))
        centers = jax.vmap(lambda new: distribution.center.log_prob_terms(jnp.full(domain.shape, new))[0])(
            nodes
        )
        return level_log_probs(distribution.position, domain)[:, None] + centers

    tables = jax.vmap(jax.vmap(given, (None, 0)), (0, None))(domain.enumerate(), nodes)
    return tables.transpose(0, 4, 2, 3, 1)


def edula_kernel(recipe: "Recipe", target: Target, nodes: np.ndarray) -> np.ndarray:
    """Probability of (level, new node) given the old node, position × site × level × new × old.

    What a step from the outermost nodes would put beyond the grid is spread over it, so that mass is kept.
    """
    tables = np.exp(_axis_tables(recipe.build(target, audit=False), nodes))
    return tables / tables.sum(axis=(2, 3), keepdims=True)


@jax.jit
def push_forward(kernel: Array, mass: Array) -> Array:
    """One step of a distribution on the grid."""
    _, num_sites, num_levels, num_nodes, _ = kernel.shape

    def add(total: Array, given: tuple[Array, Array]) -> tuple[Array, None]:
        axes, piece = given
        for axis in axes:  # contracts the oldest axis and appends (level, new node)
            piece = piece.reshape(num_nodes, -1).T @ axis.reshape(-1, num_nodes).T
        return total + piece.ravel(), None

    total = jax.lax.scan(add, jnp.zeros(mass.size), (kernel, mass))[0]
    grid = total.reshape((num_levels, num_nodes) * num_sites)
    order = [*range(0, 2 * num_sites, 2), *range(1, 2 * num_sites, 2)]
    return grid.transpose(order).reshape(mass.shape)


@jax.jit
def position_flow(kernel: Array, mass: Array) -> Array:
    """Probability of every next position given the position, averaged over the center."""
    num_nodes = kernel.shape[-1]

    def flow(given: tuple[Array, Array]) -> Array:
        axes, piece = given
        for axis in axes.sum(axis=2):
            piece = piece.reshape(num_nodes, -1).T @ axis.T
        return piece.ravel() / piece.sum()

    return jax.lax.map(flow, (kernel, mass))


def edula_stationary(kernel: np.ndarray, start: np.ndarray, tolerance: float = 1e-10) -> np.ndarray:
    """The distribution an axis-wise kernel leaves invariant, from a starting distribution of the same shape.

    Power iteration would wait for the positions to mix. Instead their weights are set in every round to the
    stationary ones for the current distribution of the center given the position, and only that distribution
    is iterated.
    """
    mass, residual = jnp.asarray(start / start.sum()), np.inf
    while residual > tolerance:
        weights = stationary_distribution(position_flow(kernel, mass))
        mass = mass * (weights / position_marginal(mass)).reshape(-1, *[1] * (mass.ndim - 1))
        moved = push_forward(kernel, mass)
        moved = moved / moved.sum()
        residual = float(jnp.abs(moved - mass).sum())
        mass = moved
    return np.asarray(mass)


def position_marginal(mass: Array | np.ndarray) -> np.ndarray:
    """Sum the centers out of a distribution on the grid."""
    return np.asarray(mass).reshape(len(mass), -1).sum(axis=1)


def edula_position_distribution(recipe: "Recipe", target: Target) -> np.ndarray:
    """Distribution of the position under `edula`, its center carried on a grid; about four sites at most."""
    _check_scalar_sites(recipe, target)
    numbers = recipe.build(target, audit=False).parameters
    α_a, η = (float(numbers[name]) for name in ("center_step_size", "coupling_variance"))
    variance = η / (1 - α_a / (4 * η))
    nodes = _center_nodes(target.domain, math.sqrt(variance), SPACING * math.sqrt(min(α_a, variance)))
    size = target.domain.num_states * len(nodes) ** target.domain.num_sites
    if size > MAX_GRID:
        raise DomainError(
            f"The distribution of `{recipe.name}` on {target.domain!r} needs a grid of {size:.2g} cells for "
            f"position "
            f"and center; at most {MAX_GRID} are used. For quadratic log-densities it is the distribution "
            f"of `dula` "
            "at `steppe.theory.effective_step_size`; otherwise sample."
        )
    positions = np.asarray(target.domain.enumerate(), float)
    bumps = np.exp(-((nodes - positions[..., None]) ** 2) / (2 * variance))
    start = bumps[:, 0]
    for site in range(1, target.domain.num_sites):
        start = start[..., None] * bumps[:, site].reshape(len(positions), *[1] * site, -1)
    return position_marginal(edula_stationary(edula_kernel(recipe, target, nodes), start, tolerance=1e-7))


def _center_nodes(domain: Domain, deviation: float, spacing: float) -> np.ndarray:
    assert isinstance(domain, Ordinal)
    reach = REACH * deviation
    return np.arange(domain.levels[0] - reach, domain.levels[-1] + reach + spacing, spacing)


def _check_scalar_sites(recipe: "Recipe", target: Target) -> None:
    if not isinstance(target.domain, Ordinal):
        raise DomainError(
            f"The distribution of `{recipe.name}` is integrated over one center coordinate per site; "
            f"{target.domain!r} has one per level. Sample instead."
        )
