"""Exact companions of a sampler on a small domain: its transition matrix and what follows from it.

Everything here is built from the kernels' own distributions and decisions, enumerated instead of drawn,
so a test of these matrices is a test of the sampler.
"""

from math import lgamma
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.errors import DomainError, TargetError
from steppe.target.log_density import Target
from steppe.validation import square_matrix

if TYPE_CHECKING:
    from steppe.kernel.compose import Recipe


@checked(TargetError)
def target_distribution(target: Target) -> np.ndarray:
    """Return `π` over `target.domain.enumerate()`.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import target_distribution
    >>> distribution = target_distribution(steppe.targets.bernoulli_table([1, 2, 3, 4]))
    >>> [round(float(probability), 3) for probability in distribution]
    [0.1, 0.2, 0.3, 0.4]
    """
    log_densities = _log_densities(target)
    _check_log_densities(np.asarray(log_densities))
    return np.asarray(jax.nn.softmax(log_densities))


def _check_log_densities(values: np.ndarray) -> None:
    """Refuse a target without a distribution: NaN or +inf at some states, or -inf at all of them."""
    wrong = np.flatnonzero(np.isnan(values) | np.isposinf(values))
    if wrong.size:
        raise TargetError(
            f"The log-density is NaN or +inf at {wrong.size} of {values.size} states, first at state "
            f"{wrong[0]} of `target.domain.enumerate()`, so its distribution is not known. It must be a "
            "finite number, or -inf where a state is impossible."
        )
    if np.isneginf(values).all():
        raise TargetError(f"All {values.size} states are impossible (log-density -inf). Allow some.")


@jax.jit
def _log_densities(target: Target) -> Array:
    return jax.vmap(target.log_density)(target.domain.enumerate())


@checked(TargetError, center=1)
def transition_matrix(recipe: "Recipe", target: Target, *, center: Array | None = None) -> np.ndarray:
    """Probability of every one-step move between the positions of `target.domain.enumerate()`.

    Parameters
    ----------
    recipe
        Any recipe whose position moves given everything else. The joint move of `edula` and `edmala` has
        no such matrix.
    target
        What is sampled, on a domain small enough to enumerate.
    center
        For coupled recipes: the center at which the position moves. The matrix is that of the position
        block alone.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import transition_matrix
    >>> matrix = transition_matrix(steppe.gwg(), steppe.targets.bernoulli_table([1, 2, 3, 4]))
    >>> matrix.shape, matrix.sum(axis=1).round(6).tolist()
    ((4, 4), [1.0, 1.0, 1.0, 1.0])
    """
    sampler = recipe.build(target, audit=False)
    if center is not None and not recipe.coupling.has_center:
        raise TargetError(f"`transition_matrix(center=...)`: `{recipe.name}` has no center; leave it out.")
    block = next(block for block in sampler.recipe.blocks if "position" in block.moves)
    try:
        return block.transition_matrix(sampler.density, center)
    except DomainError as error:
        raise DomainError(f"`transition_matrix({recipe.name}, ...)`: {error}") from error


@checked(TargetError, matrix=2)
def stationary_distribution(matrix: np.ndarray) -> np.ndarray:
    """Return the distribution an irreducible matrix leaves invariant (GTH elimination: nothing cancels).

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import stationary_distribution
    >>> stationary_distribution(np.asarray([[0.9, 0.1], [0.3, 0.7]])).round(3).tolist()
    [0.75, 0.25]
    """
    reduced = np.array(square_matrix("stationary_distribution(matrix)", matrix), float)
    size = len(reduced)
    for last in range(size - 1, 0, -1):
        scale = reduced[last, :last].sum()
        if scale <= 0:
            raise DomainError("The chain is reducible: some positions cannot be left towards earlier ones.")
        reduced[:last, last] /= scale
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    distribution = np.ones(size)
    for state in range(1, size):
        distribution[state] = distribution[:state] @ reduced[:state, state]
    return distribution / distribution.sum()


@checked(TargetError, first=1, second=1)
def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """Half the summed absolute difference of two distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import total_variation
    >>> round(total_variation(np.asarray([0.5, 0.5]), np.asarray([0.8, 0.2])), 3)
    0.3
    """
    if np.shape(first) != np.shape(second):
        raise TargetError(
            "`total_variation(first, second)` compares distributions over the same states; got shapes "
            f"{np.shape(first)} and {np.shape(second)}."
        )
    return float(0.5 * np.abs(np.asarray(first) - np.asarray(second)).sum())


@checked(TargetError, matrix=2)
def spectral_gap(matrix: np.ndarray) -> float:
    """One minus the second largest modulus among the eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import spectral_gap
    >>> round(spectral_gap(np.asarray([[0.9, 0.1], [0.3, 0.7]])), 3)  # eigenvalues 1 and 0.6
    0.4
    """
    moduli = np.sort(np.abs(np.linalg.eigvals(square_matrix("spectral_gap(matrix)", matrix))))
    return float(1 - moduli[-2])


@checked(TargetError, matrix=2)
def relaxation_time(matrix: np.ndarray) -> float:
    """One over the spectral gap: steps in which the slowest correlation falls by a factor of e, or so.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import relaxation_time
    >>> round(relaxation_time(np.asarray([[0.9, 0.1], [0.3, 0.7]])), 3)  # 1 / 0.4
    2.5
    """
    gap = spectral_gap(matrix)
    return float("inf") if gap <= 0 else 1 / gap


@checked(TargetError, matrix=2, values=1)
def integrated_autocorrelation_time(matrix: np.ndarray, values: np.ndarray) -> float:
    """`1 + 2 Σ_k ρ_k` of a function of the state at stationarity: draws that are worth one independent draw.

    Parameters
    ----------
    matrix
        Transition matrix of an irreducible chain, adjusted or not.
    values
        The function, one number per state.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import integrated_autocorrelation_time
    >>> matrix = np.asarray([[0.9, 0.1], [0.3, 0.7]])
    >>> round(integrated_autocorrelation_time(matrix, np.asarray([0.0, 1.0])), 3)  # (1 + 0.6) / (1 − 0.6)
    4.0
    """
    distribution, values = stationary_distribution(matrix), np.asarray(values, float)
    if values.shape != distribution.shape:
        raise TargetError(f"`values` must be one number per state, {len(distribution)}; got {values.shape}.")
    centred = values - distribution @ values
    variance = distribution @ centred**2
    if np.ptp(values) == 0:
        raise DomainError("`values` are the same at every state: a constant has no autocorrelation.")
    # Σ_k P^k f = (I − P + 1 distribution)⁻¹ f for centred f: the fundamental matrix.
    summed = np.linalg.solve(np.eye(len(distribution)) - matrix + distribution, centred)
    return float(2 * (distribution @ (centred * summed)) / variance - 1)


@checked(TargetError)
def exact_tv(recipe: "Recipe", target: Target) -> float:
    """Total variation between what a recipe leaves invariant and `π`: zero up to rounding if adjusted.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import exact_tv
    >>> target = steppe.targets.paper_bernoulli()
    >>> exact_tv(steppe.dmala(), target) < 1e-6 < exact_tv(steppe.dula(step_size=1.0), target)
    True
    """
    return total_variation(
        stationary_distribution(transition_matrix(recipe, target)), target_distribution(target)
    )


MAX_QUADRATURE = 2**18
CENTER_REACH = 5.5


@checked(TargetError, coupling_variance="(0, inf)")
def proximal_matrix(target: Target, coupling_variance: float) -> np.ndarray:
    """Transition matrix of GLU with exact draws: center from `N(θ, η I)`, then position given the center.

    The center is integrated by the trapezoidal rule, which converges exponentially fast here, on a grid of at
    most 2**18 nodes over ±5.5 standard deviations: up to four coordinates to at least four digits for
    `η ≥ 0.1` squared units.

    Examples
    --------
    >>> import steppe
    >>> from steppe.diagnostics.exact import proximal_matrix
    >>> matrix = proximal_matrix(steppe.targets.bernoulli_table([1, 2, 3, 4]), coupling_variance=1.0)
    >>> matrix.shape, matrix.sum(axis=1).round(4).tolist()
    ((4, 4), [1.0, 1.0, 1.0, 1.0])
    """
    dimension = int(np.prod(target.domain.shape))
    per_axis = min(int(MAX_QUADRATURE ** (1 / dimension)), 201)
    if per_axis < 20:
        raise DomainError(
            f"`proximal_matrix` integrates over {dimension} coordinates of a center on a grid; at most 4 are "
            "feasible. Sample with `edmala_glu` instead."
        )
    nodes = np.linspace(-CENTER_REACH, CENTER_REACH, per_axis)
    grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    weights = np.exp(-0.5 * (grid**2).sum(axis=1))
    matrix = np.asarray(_proximal_matrix(target, coupling_variance, grid, weights / weights.sum()), float)
    return matrix / matrix.sum(axis=1, keepdims=True)  # long sums in float32 lose a few digits


@jax.jit
def _proximal_matrix(target: Target, coupling_variance: Array, grid: Array, weights: Array) -> Array:
    states = target.domain.enumerate()
    values = jax.vmap(target.log_density)(states)
    flat = states.reshape(len(states), -1)
    offsets = jnp.sqrt(coupling_variance) * grid

    def row(position: Array) -> Array:
        # |θ' − a|² without the part that is the same for all θ'.
        distances = jnp.sum(flat**2, axis=1) - 2 * (position + offsets) @ flat.T
        return weights @ jax.nn.softmax(values - distances / (2 * coupling_variance), axis=1)

    return jax.lax.map(row, flat)


@checked(TargetError, distribution=1, num_draws="[1, inf)")
def expected_total_variation(distribution: np.ndarray, num_draws: int) -> float:
    """Mean total variation between a distribution and the frequencies of independent draws: pure noise.

    Parameters
    ----------
    distribution
        Probabilities.
    num_draws
        Number of independent draws.

    Examples
    --------
    >>> import numpy as np
    >>> from steppe.diagnostics.exact import expected_total_variation
    >>> even = np.full(4, 0.25)
    >>> expected_total_variation(even, 1000) < expected_total_variation(
    ...     even, 100
    ... )  # the floor of sampling noise
    True
    """
    if np.ndim(distribution) != 1:
        raise TargetError(f"`distribution` must list probabilities; got shape {np.shape(distribution)}.")
    # De Moivre: E|X − np| = 2 m C(n, m) p^m (1 − p)^(n − m + 1) with m = ⌊np⌋ + 1, for a binomial X.
    p = np.clip(np.asarray(distribution, float), 1e-300, 1 - 1e-16)
    n, m = num_draws, np.minimum(np.floor(num_draws * p) + 1, num_draws)
    log_choose = lgamma(n + 1) - np.array([lgamma(k + 1) + lgamma(n - k + 1) for k in m.ravel()])
    terms = np.log(2 * m) + log_choose + m * np.log(p) + (n - m + 1) * np.log1p(-p)
    return float(0.5 * np.exp(terms).sum() / n)
