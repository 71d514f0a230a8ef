"""Exact laws of recipes whose center is integrated out, built from the engine's own site-wise terms.

Given a state, every site and every center coordinate moves on its own. So a table per site is enough, and a
law over positions × a grid of centers is pushed forward one axis at a time.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.diagnostics.exact import stationary_law
from twins import quick_jit


def level_log_probs(law, domain):
    """Log-probability of every level at every site, level × site, of a product law of positions."""
    levels = jnp.arange(domain.max_levels)[:, None] * jnp.ones(domain.num_sites, int)
    return jax.vmap(lambda row: law.terms(domain.from_levels(row))[0])(levels)


# ---- edula_glu: the center is drawn afresh -------------------------------------------------------------


@quick_jit
def _noisy_level_probs(sampler, offsets, weights):
    """Probability of every level averaged over the center's offset, position × level × site."""
    landscape, block = sampler.landscape, sampler.blocks[1]
    domain = landscape.domain

    def given(position, offset):
        law = block.proposal.distribution(landscape, landscape.at(position, position + offset))
        return jnp.exp(level_log_probs(law, domain))

    over_offsets = jax.vmap(given, (None, 0))
    positions = domain.enumerate()
    return jax.vmap(lambda position: jnp.tensordot(weights, over_offsets(position, offsets), 1))(positions)


def glu_transition_matrix(recipe, target: steppe.Target, num_nodes: int = 100) -> np.ndarray:
    """Transition matrix of `edula_glu` on scalar sites, its Gaussian center integrated by Gauss–Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    offsets = nodes * np.sqrt(recipe.numbers["coupling_variance"])
    sampler = recipe.build(target, audit=False)
    probs = np.asarray(_noisy_level_probs(sampler, offsets, weights / weights.sum()))
    return np.array([_product_law(row.T) for row in probs])


def _product_law(site_probs: np.ndarray) -> np.ndarray:
    """Probabilities of all positions, first site slowest, from a table site × level."""
    return np.array([np.prod(levels) for levels in itertools.product(*site_probs)])


# ---- edula: the center is carried along ----------------------------------------------------------------


@quick_jit
def _axis_tables(sampler, nodes):
    """Log-probability of (level, new node) given the old node, position × site × level × new × old."""
    landscape, (block,) = sampler.landscape, sampler.blocks
    domain = landscape.domain

    def given(position, node):
        state = landscape.at(position, jnp.full(domain.shape, node))
        law = block.proposal.distribution(landscape, state)
        centers = jax.vmap(lambda new: law.center.terms(jnp.full(domain.shape, new))[0])(nodes)
        return level_log_probs(law.position, domain)[:, None] + centers

    tables = jax.vmap(jax.vmap(given, (None, 0)), (0, None))(domain.enumerate(), nodes)
    return tables.transpose(0, 4, 2, 3, 1)


def edula_kernel(recipe, target: steppe.Target, nodes: np.ndarray) -> np.ndarray:
    """Probability of (level, new node) given the old node, position × site × level × new × old.

    What a step from the outermost nodes would put beyond the grid is spread over it, so that mass is kept.
    """
    tables = np.exp(_axis_tables(recipe.build(target, audit=False), nodes))
    return tables / tables.sum(axis=(2, 3), keepdims=True)


@jax.jit
def push_forward(kernel, mass):
    """One step of a law on the grid."""
    _, num_sites, num_levels, num_nodes, _ = kernel.shape

    def add(total, given):
        axes, piece = given
        for axis in axes:  # contracts the oldest axis and appends (level, new node)
            piece = piece.reshape(num_nodes, -1).T @ axis.reshape(-1, num_nodes).T
        return total + piece.ravel(), None

    total = jax.lax.scan(add, jnp.zeros(mass.size), (kernel, mass))[0]
    grid = total.reshape((num_levels, num_nodes) * num_sites)
    order = [*range(0, 2 * num_sites, 2), *range(1, 2 * num_sites, 2)]
    return grid.transpose(order).reshape(mass.shape)


@jax.jit
def position_flow(kernel, mass):
    """Probability of every next position given the position, averaged over the center."""
    num_nodes = kernel.shape[-1]

    def flow(given):
        axes, piece = given
        for axis in axes.sum(axis=2):
            piece = piece.reshape(num_nodes, -1).T @ axis.T
        return piece.ravel() / piece.sum()

    return jax.lax.map(flow, (kernel, mass))


def edula_stationary(kernel: np.ndarray, start: np.ndarray, tolerance: float = 1e-10) -> np.ndarray:
    """The law an axis-wise kernel leaves invariant, from a starting law of the same shape.

    Power iteration would wait for the positions to mix. Instead their weights are set in every round to the
    stationary ones for the current law of the center given the position, and only that law is iterated.
    """
    mass, residual = jnp.asarray(start / start.sum()), np.inf
    while residual > tolerance:
        weights = stationary_law(position_flow(kernel, mass))
        mass = mass * (weights / position_marginal(mass)).reshape(-1, *[1] * (mass.ndim - 1))
        moved = push_forward(kernel, mass)
        moved = moved / moved.sum()
        residual = float(jnp.abs(moved - mass).sum())
        mass = moved
    return np.asarray(mass)


def position_marginal(mass) -> np.ndarray:
    return np.asarray(mass).reshape(len(mass), -1).sum(axis=1)
