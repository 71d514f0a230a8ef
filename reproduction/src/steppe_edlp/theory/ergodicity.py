"""The appendix's statements on ergodicity as printed: minorisation, drift, geometric rate, limit theorems.

They are about the algorithms without a box around the center, unless a box is given. Everything is compared
with one site, whose joint chain of position and center is a density that can be looked at, or a matrix on a
grid that no center leaves.

Notation: as in `paper`; `x = α_a/η`, `b = α_a d + 2x² sup|θ|²`, `λ = 2(1 − x)²`, `V(a, θ) = |a|²`.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import samplers
from steppe.compiling import quick_jit
from steppe.diagnostics.exact import (
    integrated_autocorrelation_time,
    spectral_gap,
    stationary_distribution,
)
from steppe.kernel.sampler import Sampler
from steppe.run.simulate import simulate
from steppe.target import Target
from steppe.theory.bounds import Bound, compare_bound
from steppe.theory.constants import Box, constants, largest_norm
from steppe_edlp.theory import paper
from steppe_edlp.theory.confined import (
    ConfinedChain,
    confined_chain,
    evaluate_levels,
    find_free_box,
    is_one_site,
    softmax,
)

NUM_NODES = 201
# Nodes of the quadrature over the noise of the center.
NUM_NOISE = 80
# Where the drift of the center is looked at, in units of the farthest position.
FAR = 200.0

Numbers = tuple[float, float, float]  # α, α_a, η


class LimitTheorem(NamedTuple):
    """Variance in the central limit theorem of a mean over a chain, exact and by batch means.

    Attributes
    ----------
    exact
        `lim n Var(mean of n)`, from the fundamental matrix of the chain on a grid.
    estimate, low, high
        By batch means of chains that were run, with a 99 % interval.
    mean, stationary_mean, target_mean
        Mean over these chains, under their stationary distribution, and under the joint distribution.
    standard_error
        Of the mean over the chains.
    """

    exact: float
    estimate: float
    low: float
    high: float
    mean: float
    stationary_mean: float
    target_mean: float
    standard_error: float


def minorization_theorem(
    target: Target, step_size: float, center_step_size: float, coupling_variance: float
) -> Bound:
    """`p((a', θ') | (a, θ)) ≥ η̄` for `|a|², |a'|² ≤ 2b/(1 − x)²`, for `edula`; `value` is `η̄`.

    As printed it is about every set of centers, of which some have infinite measure; that cannot be. Here the
    new center stays in the set, as in the proof.

    Parameters
    ----------
    target
        What is sampled. The smallest density is computed for one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`, with `α_a ≠ η`.
    """
    figures = constants(target)
    squared_radius, offset = _find_small_set(target, center_step_size, coupling_variance)
    log_value = (
        -2 * squared_radius / center_step_size
        - 0.5 * figures.dimension * math.log(2 * math.pi * center_step_size)
        + paper.find_log_position_bound(figures, step_size, coupling_variance)
    )
    exact = None
    if is_one_site(target):
        nodes = math.sqrt(squared_radius) * np.linspace(-1, 1, NUM_NODES)
        numbers = step_size, center_step_size, coupling_variance
        exact = math.exp(_find_smallest_log_density(target, numbers, nodes))
    return _bound_below(log_value, {"new center stays in the set": True}, exact, {"b": offset})


def edmala_minorization(
    target: Target, step_size: float, center_step_size: float, coupling_variance: float, *, center_box: Box
) -> Bound:
    """`p(x' | x) ≥ ε e^{U(θ')/2} / Σ e^{U/2} · e^{−diam(Θ_a)²/(2α_a)} / Φ` for `edmala`; `value` is `ε`.

    Parameters
    ----------
    target
        What is sampled; `exact` is the largest `ε` for which that is true, for one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    center_box
        `Θ_a`.
    """
    printed = paper.theorem_5_6(target, step_size, center_step_size, coupling_variance, center_box=center_box)
    exact = None
    if is_one_site(target):
        numbers = step_size, center_step_size, coupling_variance
        chain = confined_chain(target, *numbers, center_box, is_adjusted=True)
        _, values, _ = evaluate_levels(target)
        num_nodes = len(chain.matrix) // len(values)
        width = center_box[1] - center_box[0]
        centers = math.exp(-(width**2) / (2 * center_step_size)) / math.sqrt(2 * math.pi * center_step_size)
        measure = np.repeat(softmax(values / 2), num_nodes) * centers * width / num_nodes
        moves = ~np.eye(len(chain.matrix), dtype=bool)  # staying has more
        exact = float((chain.matrix / measure)[moves].min())
    return _bound_below(printed.log_value, printed.assumptions, exact, printed.terms)


def geometric_rate(
    target: Target, step_size: float, center_step_size: float, coupling_variance: float
) -> Bound:
    """`TV(P^k(x, ·), π_γ) ≤ M(x) ρ^k` for `edula`, `ρ` as printed at the best `r`; `exact` is the true rate.

    `ρ = max{(1 − η̄)^r, A^(1−r) B^r}` with `A = (1 + 2b̃ + λ + λD)/(1 + D)`, `B = 1 + 2b̃ + 2λD` and
    `b̃ = b + 1 − λ`. `D` is printed as the dimension; here it is the size of the set of the minorisation, as
    in the theorem that is cited. Where `A ≥ 1` no `r` makes `ρ` less than 1 and nothing is said.

    Parameters
    ----------
    target
        What is sampled. The rate is computed for one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`, with `α_a ≠ η`.
    """
    numbers = step_size, center_step_size, coupling_variance
    factor = 2 * (1 - center_step_size / coupling_variance) ** 2
    size, offset = _find_small_set(target, center_step_size, coupling_variance)
    small = min(minorization_theorem(target, *numbers).value, 1 - 1e-16)
    log_rate = _find_log_rate(factor, offset, size, small) if factor < 1 else 0.0
    exact = None
    if is_one_site(target):
        exact = 1 - spectral_gap(_make_free_chain(target, *numbers).matrix)
    assumptions = {"λ < 1": factor < 1, "the rate is below 1": log_rate < 0}
    return compare_bound(log_rate, assumptions, exact, largest=1.0, terms={"λ": factor, "b": offset})


def edmala_drift(
    target: Target, step_size: float, center_step_size: float, coupling_variance: float
) -> Bound:
    """`PV ≤ λV + b + 1` for `edmala`; `value` is `λ`, `exact` is `PV/V` far out, rejections included.

    Parameters
    ----------
    target
        What is sampled, one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    """
    ratio = center_step_size / coupling_variance
    largest = largest_norm(target.domain)
    factor = 2 * (1 - ratio) ** 2
    offset = center_step_size + 2 * ratio**2 * largest**2
    reach = FAR * max(largest, 1.0)
    outward = np.geomspace(0.01, reach, 60)
    centers = np.concatenate([-outward[::-1], outward])
    after = _find_mean_square(target, (step_size, center_step_size, coupling_variance), centers)
    exact = float(after[:, [0, -1]].max() / reach**2)
    holds = bool(np.all(after <= factor * centers**2 + offset + 1))
    log_value = math.log(factor) if factor > 0 else -math.inf
    return Bound(factor, log_value, {"λ < 1": factor < 1}, holds, exact, {"b": offset})


def check_harris(
    target: Target, step_size: float, center_step_size: float, coupling_variance: float
) -> Bound:
    """Lemma: `edula` is irreducible, aperiodic and Harris recurrent. `value` is `λ`, `exact` the true factor.

    Every move has a positive density, so it is irreducible and aperiodic. It is Harris recurrent if the
    center contracts, which is so for `|1 − α_a/(2η)| < 1`; at `α_a ≥ 4η` the center diverges. The proof asks
    for `λ < 1` instead.

    Parameters
    ----------
    target
        What is sampled.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    """
    ratio = center_step_size / coupling_variance
    printed, true = 2 * (1 - ratio) ** 2, abs(1 - ratio / 2)
    nodes = np.linspace(-2, 3, NUM_NODES)
    numbers = step_size, center_step_size, coupling_variance
    log_density = _find_smallest_log_density(target, numbers, nodes)
    log_value = math.log(printed) if printed > 0 else -math.inf
    assumptions = {"λ < 1 (used in the proof)": printed < 1}
    holds = true < 1 and math.isfinite(log_density)
    return Bound(printed, log_value, assumptions, holds, true, {"smallest log-density": log_density})


def compare_limit_theorem(
    target: Target,
    step_size: float,
    center_step_size: float,
    coupling_variance: float,
    *,
    num_chains: int = 64,
    num_batches: int = 8,
    batch: int = 2048,
    seed: int = 0,
) -> LimitTheorem:
    """Variance of a mean of the center of `edula` on one site: exact, and by batch means of the sampler.

    Parameters
    ----------
    target
        What is sampled, one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    num_chains, num_batches, batch
        How many chains, how many batches in each after one that is dropped, and steps in a batch.
    seed
        Of the chains.
    """
    from scipy.stats import chi2  # slow to import

    numbers = step_size, center_step_size, coupling_variance
    low, high = find_free_box(target, coupling_variance, center_step_size)
    chain = _make_free_chain(target, *numbers)
    num_nodes = len(chain.matrix) // target.domain.num_states
    nodes = low + (high - low) * (np.arange(num_nodes) + 0.5) / num_nodes
    centers = np.tile(nodes, target.domain.num_states)
    exact = find_limit_variance(chain.matrix, centers)
    means = _run_center(target, numbers, num_chains, num_batches + 1, batch, seed)[:, 1:]
    number = means.size
    estimate = batch * float(means.var(ddof=1))
    low_χ, high_χ = chi2.ppf([0.005, 0.995], number - 1) / (number - 1)
    return LimitTheorem(
        exact=exact,
        estimate=estimate,
        low=float(estimate / high_χ),
        high=float(estimate / low_χ),
        mean=float(means.mean()),
        stationary_mean=float(stationary_distribution(chain.matrix) @ centers),
        target_mean=float(chain.distribution @ centers),
        standard_error=math.sqrt(exact / (number * batch)),
    )


def find_limit_variance(matrix: np.ndarray, values: np.ndarray) -> float:
    """`σ² = lim n Var(mean of n)` of a function along a chain, from its fundamental matrix."""
    distribution = stationary_distribution(matrix)
    centred = values - distribution @ values
    return float(distribution @ centred**2) * integrated_autocorrelation_time(matrix, values)


def find_mean_variance(matrix: np.ndarray, values: np.ndarray, num_steps: int) -> float:
    """`n Var(mean of n)` from stationarity, exactly: what the limit theorem says tends to `σ²`."""
    distribution = stationary_distribution(matrix)
    centred = values - distribution @ values
    total, later = float(distribution @ centred**2), centred
    for lag in range(1, num_steps):
        later = matrix @ later
        total += 2 * (1 - lag / num_steps) * float(distribution @ (centred * later))
    return total


def _find_small_set(target: Target, α_a: float, η: float) -> tuple[float, float]:
    """Squared radius of the set of the minorisation, and `b`."""
    printed = paper.drift_theorem(target, α_a, η)
    return 2 * printed.offset / (1 - α_a / η) ** 2, printed.offset


def _find_log_rate(λ: float, b: float, size: float, small: float) -> float:
    """`log ρ` at the best `r`, which makes the two terms of the maximum equal; 0 where there is none."""
    lifted = b + 1 - λ
    log_inside = math.log((1 + 2 * lifted + λ + λ * size) / (1 + size))
    log_outside = math.log(1 + 2 * lifted + 2 * λ * size)
    log_small = math.log1p(-small)
    return 0.0 if log_inside >= 0 else -log_small * log_inside / (log_outside - log_inside - log_small)


def _make_free_chain(target: Target, α: float, α_a: float, η: float) -> ConfinedChain:
    """The chain of `edula` on a grid so wide that centers do not leave it."""
    box = find_free_box(target, η, α_a)
    return confined_chain(target, α, α_a, η, box, is_adjusted=False, num_nodes=NUM_NODES)


def _bound_below(
    log_value: float, assumptions: dict[str, bool], exact: float | None, terms: dict[str, float]
) -> Bound:
    """Build a lower bound, compared with what it bounds."""
    value = math.exp(log_value)
    holds = True if value == 0 else None if exact is None else bool(value <= exact)
    return Bound(value, log_value, assumptions, holds, exact, terms)


def _propose(
    level: np.ndarray, gradient: np.ndarray, center: np.ndarray, levels: np.ndarray, numbers: Numbers
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability of every level of the one site, on the last axis, and mean of the new center."""
    α, α_a, η = numbers
    residual = level - center
    slope = gradient - residual / η
    jumps = levels - np.asarray(level)[..., None]
    scores = 0.5 * slope[..., None] * jumps - jumps**2 / (2 * α)
    return scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True), center + α_a / 2 * residual / η


def _find_smallest_log_density(target: Target, numbers: Numbers, nodes: np.ndarray) -> float:
    """Log of the smallest transition density of `edula` between centers of a grid, at any two positions."""
    levels, _, gradients = evaluate_levels(target)
    α_a = numbers[1]
    log_positions, means = _propose(levels[:, None], gradients[:, None], nodes, levels, numbers)
    squared = np.maximum((nodes[0] - means) ** 2, (nodes[-1] - means) ** 2)
    log_centers = -squared / (2 * α_a) - 0.5 * math.log(2 * math.pi * α_a)
    return float((log_positions.min(axis=-1) + log_centers).min())


def _find_mean_square(target: Target, numbers: Numbers, centers: np.ndarray) -> np.ndarray:
    """`E|a'|²` after a step of `edmala` from every level and center, level × center."""
    levels, values, gradients = evaluate_levels(target)
    _, α_a, η = numbers
    noise, weights = np.polynomial.hermite_e.hermegauss(NUM_NOISE)
    log_there, means = _propose(levels[:, None], gradients[:, None], centers, levels, numbers)
    proposed = means[..., None] + math.sqrt(α_a) * noise  # level × center × noise
    old = centers[:, None]
    paid = values[:, None, None] - (levels[:, None, None] - old) ** 2 / (2 * η)
    result = np.zeros_like(means)
    for new, level in enumerate(levels):
        log_back, back_means = _propose(level, gradients[new], proposed, levels, numbers)
        gained = values[new] - (level - proposed) ** 2 / (2 * η)
        there = log_there[:, :, new, None] - noise**2 / 2
        back = np.einsum("lcnl->lcn", log_back) - (old - back_means) ** 2 / (2 * α_a)
        accepted = np.exp(np.minimum(gained - paid + back - there, 0.0))
        squares = accepted * proposed**2 + (1 - accepted) * old**2
        result += np.exp(log_there[:, :, new]) * (squares @ weights) / weights.sum()
    return result


def _run_center(
    target: Target, numbers: Numbers, num_chains: int, num_batches: int, batch: int, seed: int
) -> np.ndarray:
    """Means of the center of `edula` over batches of steps, chain × batch."""
    α, α_a, η = numbers
    recipe = samplers.edula(step_size=α, center_step_size=α_a, coupling_variance=η)
    sampler, key = recipe.build(target), jax.random.key(seed)
    centers = _follow_center(sampler, key, num_chains, num_batches * batch)
    return np.asarray(centers, float).reshape(num_batches, batch, num_chains).mean(axis=1).T


@partial(quick_jit, static_argnames=("num_chains", "num_steps"))
def _follow_center(sampler: Sampler, key: Array, num_chains: int, num_steps: int) -> Array:
    keys = jax.random.split(key, num_chains)
    states = jax.vmap(sampler.init)(sampler.target.domain.draw(key, (num_chains,)), keys)
    done = simulate(sampler, key, states, num_steps, observe=lambda _, state, __: state.center)
    return jnp.reshape(done.observed, (num_steps, num_chains))
