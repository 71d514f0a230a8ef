"""The algorithms as the paper's statements have them: one site, centers confined to an interval.

A grid of centers turns the joint move of position and center into a matrix. Its rows are the truncated
normals that the proofs write, so what follows from it is exact up to the grid (midpoint rule).
"""

import math
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from steppe.compiling import quick_jit
from steppe.diagnostics.exact import stationary_distribution
from steppe.domain import Ordinal
from steppe.errors import DomainError
from steppe.target import Target
from steppe.theory.constants import Box, check_box

NUM_NODES = 100


class ConfinedChain(NamedTuple):
    """One step of `edula` or `edmala`, and the distribution it should keep.

    Attributes
    ----------
    matrix
        Probabilities of moves between pairs (state, node), state slowest.
    distribution
        The joint `exp{U(θ) − |θ − a|²/(2η)}` restricted to the box, over the same pairs.
    """

    matrix: np.ndarray
    distribution: np.ndarray


def is_one_site(target: Target) -> bool:
    """Whether `confined_chain` can be built."""
    return isinstance(target.domain, Ordinal) and target.domain.num_sites == 1


def confined_chain(
    target: Target,
    step_size: float,
    center_step_size: float,
    coupling_variance: float,
    center_box: Box,
    *,
    is_adjusted: bool,
    num_nodes: int = NUM_NODES,
) -> ConfinedChain:
    """Build the joint chain of one site and its confined center.

    Parameters
    ----------
    target
        A log-density on one site with real levels.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    center_box
        `(low, high)` that centers are confined to.
    is_adjusted
        `True` for `edmala`, `False` for `edula`.
    num_nodes
        Size of the grid.
    """
    if not is_one_site(target):
        raise DomainError(
            f"`confined_chain` needs one site with real levels; got {target.domain!r}. Grids of centers "
            "grow exponentially with sites; sample instead."
        )
    low, high = check_box(center_box)
    nodes = low + (high - low) * (np.arange(num_nodes) + 0.5) / num_nodes
    levels, values, gradients = evaluate_levels(target)
    residual = levels[:, None] - nodes  # state × node
    joint = values[:, None] - residual**2 / (2 * coupling_variance)
    slope = gradients[:, None] - residual / coupling_variance
    jumps = levels - levels[:, None]
    positions = softmax(
        0.5 * slope[:, :, None] * jumps[:, None, :] - jumps[:, None, :] ** 2 / (2 * step_size)
    )
    means = nodes + center_step_size / 2 * residual / coupling_variance
    centers = softmax(-((nodes - means[:, :, None]) ** 2) / (2 * center_step_size))
    size = levels.size * num_nodes
    matrix = np.einsum("snt,snm->sntm", positions, centers).reshape(size, size)
    distribution = softmax(joint.ravel())
    return ConfinedChain(_adjusted(matrix, distribution) if is_adjusted else matrix, distribution)


def joint_bias(target: Target, step_size: float, coupling_variance: float, center_step_size: float) -> float:
    """`|joint distribution of edula − joint|_1` for one site, on an interval that centers do not leave."""
    box = find_free_box(target, coupling_variance, center_step_size)
    chain = confined_chain(
        target, step_size, center_step_size, coupling_variance, box, is_adjusted=False, num_nodes=200
    )
    return float(np.abs(stationary_distribution(chain.matrix) - chain.distribution).sum())


def find_free_box(target: Target, coupling_variance: float, center_step_size: float) -> Box:
    """Return an interval that the center of `edula` does not leave, for all a float can tell."""
    reach = 8 * math.sqrt(coupling_variance / (1 - center_step_size / (4 * coupling_variance)))
    levels = np.asarray(target.domain.enumerate(), float)
    return float(levels.min() - reach), float(levels.max() + reach)


def evaluate_levels(target: Target) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels of the one site of a target, with the log-density and its derivative there."""
    values, gradients = _values_and_gradients(target)
    levels = np.asarray(target.domain.enumerate(), float)
    return levels[:, 0], np.asarray(values, float), np.asarray(gradients, float)[:, 0]


@quick_jit
def _values_and_gradients(target: Target) -> tuple[Array, Array]:
    return jax.lax.map(target.value_and_grad, target.domain.enumerate())


def _adjusted(proposal: np.ndarray, distribution: np.ndarray) -> np.ndarray:
    """Metropolis: the smaller of the two flows goes both ways, the rest stays."""
    flow = distribution[:, None] * proposal
    accepted = np.minimum(flow, flow.T) / distribution[:, None]
    np.fill_diagonal(accepted, 0)
    return accepted + np.diag(1 - accepted.sum(axis=1))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities along the last axis from their logarithms up to a constant."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
