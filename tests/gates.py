"""Statistical gates: p-values that are tiny where a kernel does not keep the distribution it should.

Every gate starts from independent exact draws (or one fixed state) and takes a few steps, so the draws it
looks at are independent too: no effective sample sizes, no burn-in, no tolerance. A kernel fails when a
p-value falls below `FALSE_ALARM`. With `NUM_CHAINS` chains a gate sees, with near certainty,

- positions: a distribution at a total variation of 0.01 (`chi_square_power` computes it for each
  distribution);
- residuals `r = (center − position) / √η`: a distribution function off by 0.01, a variance off by 2 %, a
  correlation of 0.02 with a coordinate of the position.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.stats
from jax import Array

import steppe
from steppe.kernel.blocks.site_scan import ScanMemory
from steppe.kernel.sampler import Sampler
from steppe.kernel.types import SamplerState

FALSE_ALARM = 1e-7
NUM_CHAINS = 400_000
NUM_STEPS = (1, 4, 16)

# The χ² distribution is a limit: cells that expect fewer draws than this are pooled.
MIN_EXPECTED = 400

# Between rounding (1e-6 in float32) and the error of a value that belongs to another position (1).
CACHE_TOLERANCE = 1e-4

# Compiling takes longer than running here; level 1 compiles twice as fast and runs as fast, level 0 suits
# programs that run once on little.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
sketchy_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class Outcome(NamedTuple):
    """What `start_at_stationarity` sees after some steps: a p-value per statistic, and the states."""

    num_steps: int
    p_values: dict[str, float]
    states: SamplerState


def start_at_stationarity(
    sampler: Sampler,
    target: steppe.Target,
    coupling_variance: float | None,
    num_steps: tuple[int, ...],
    num_chains: int,
    key: Array,
) -> Iterator[Outcome]:
    """Draw states from the exact joint distribution, step, and test whether they still have it.

    Yields after every number of steps asked for, so that a caller can stop at the first rejection.
    """
    distribution = exact_distribution(target)
    states = stationary_states(sampler, target, coupling_variance, num_chains, key)
    done = 0
    for total in sorted(num_steps):
        previous, states = advance(sampler, states, key, done, total - done)
        done = total
        p_values = {"position distribution": chi_square(counts(target.domain, states.position), distribution)}
        if coupling_variance is not None:
            before = previous if moves_together(sampler) else previous._replace(center=states.center)
            p_values |= residual_p_values(target, distribution, coupling_variance, before, states)
        yield Outcome(total, p_values, states)


def one_step_distribution(
    sampler: Sampler,
    start: tuple[np.ndarray, np.ndarray | None],
    distribution: np.ndarray,
    center_distribution: tuple[np.ndarray, float] | None,
    num_draws: int,
    key: Array,
) -> dict[str, float]:
    """Compare many single steps from one (position, center) with the exact distributions after the step.

    `distribution` is over `domain.enumerate()`, `center_distribution` the mean and variance of a Gaussian.
    """
    domain, (position, center) = sampler.target.domain, start
    states = initial_states(sampler, jnp.asarray(position)[None], np.zeros(num_draws, int))
    if center is not None:
        states = states._replace(center=jnp.broadcast_to(jnp.asarray(center), states.position.shape))
    _, states = advance(sampler, states, key, 0, 1)
    p_values = {"one-step position distribution": chi_square(counts(domain, states.position), distribution)}
    if center_distribution is not None:
        mean, variance = center_distribution
        residuals = coordinates(domain, states.center - jnp.asarray(mean)) / np.sqrt(variance)
        shifts = residuals.sum(axis=0) / np.sqrt(num_draws)
        p_values["one-step center mean"] = scipy.stats.chi2.sf(shifts @ shifts, len(shifts))
        p_values["one-step center variance"] = variance_p_value(residuals)
    return p_values


def same_as_fresh_cache(sampler: Sampler, states: SamplerState) -> float:
    """Largest relative error of what states remember of their position: value, gradient, cache."""
    domain = sampler.target.domain
    fresh = initial_states(sampler, domain.enumerate(), indices(domain, states.position))
    errors = jax.tree.map(_relative_error, _remembered(states), _remembered(fresh))
    return max(jax.tree.leaves(errors))


def chi_square_power(num_draws: int, num_cells: int, total_variation: float) -> float:
    """Chance that `chi_square` rejects the least visible distribution at this total variation ε.

    Σ δ²/π over a shift δ with total variation ε is at least 4ε² (Cauchy–Schwarz on the cells that gain and
    the cells that lose), and the statistic is noncentral χ² with that times the number of draws.
    """
    critical = scipy.stats.chi2.isf(FALSE_ALARM, num_cells - 1)
    return float(scipy.stats.ncx2.sf(critical, num_cells - 1, 4 * num_draws * total_variation**2))


# ---- chains ----------------------------------------------------------------------------------------------


@quick_jit
def advance(
    sampler: Sampler, states: SamplerState, key: Array, first: int, num_steps: int
) -> tuple[SamplerState, SamplerState]:
    """Last but one and last states of `num_steps` steps, which is traced: one program for all numbers."""
    num_chains = len(states.log_density)

    def step(index: Array, pair: tuple[SamplerState, SamplerState]) -> tuple[SamplerState, SamplerState]:
        keys = jax.random.split(jax.random.fold_in(key, index), num_chains)
        return pair[1], jax.vmap(sampler.step)(keys, pair[1])[0]

    return jax.lax.fori_loop(first, first + num_steps, step, (states, states))


@sketchy_jit
def _init(sampler: Sampler, positions: Array) -> SamplerState:
    return jax.vmap(sampler.init)(positions)


def initial_states(sampler: Sampler, positions: Array, index: np.ndarray) -> SamplerState:
    """Evaluated states at `positions[index]`."""
    table = _init(sampler, positions)
    return jax.tree.map(lambda leaf: leaf[index], table)


def stationary_states(
    sampler: Sampler, target: steppe.Target, coupling_variance: float | None, num_chains: int, key: Array
) -> SamplerState:
    """Draws of the joint distribution: position by inversion in float64, center `N(position, η)`."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    index = np.searchsorted(np.cumsum(exact_distribution(target))[:-1], rng.random(num_chains), side="right")
    states = initial_states(sampler, target.domain.enumerate(), index)
    if coupling_variance is None:
        return states
    noise = rng.standard_normal(states.position.shape) * existing(target.domain)
    return states._replace(center=states.position + jnp.asarray(np.sqrt(coupling_variance) * noise))


def exact_distribution(target: steppe.Target) -> np.ndarray:
    """`π` over `domain.enumerate()`, normalised in float64."""
    values = np.asarray(_log_densities(target), float)
    weights = np.exp(values - values.max())
    return weights / weights.sum()


@sketchy_jit
def _log_densities(target: steppe.Target) -> Array:
    return jax.vmap(target.log_density)(target.domain.enumerate())


def moves_together(sampler: Sampler) -> bool:
    """Whether one block moves position and center, so that its jumps start from the old center."""
    return any({"position", "center"} <= set(block.moves) for block in sampler.recipe.blocks)


# ---- statistics ------------------------------------------------------------------------------------------


def residual_p_values(
    target: steppe.Target,
    distribution: np.ndarray,
    coupling_variance: float,
    before: SamplerState,
    after: SamplerState,
) -> dict[str, float]:
    """Tests of `r ~ N(0, I)` independent of the position, and of jumps that are as likely back as there."""
    domain, scale = target.domain, np.sqrt(coupling_variance)
    residuals = coordinates(domain, after.center - after.position) / scale
    mean = distribution @ coordinates(domain, domain.enumerate())
    deviations = coordinates(domain, after.position) - mean
    chains = np.arange(len(residuals))
    one_each = residuals[chains, chains % residuals.shape[1]]
    return {
        "residual distribution": scipy.stats.kstest(one_each, "norm", method="asymp").pvalue,
        "residual variance": variance_p_value(residuals),
        "residual and own coordinate": own_moment_p_value(residuals, deviations),
        "residual and other coordinates": other_moments_p_value(residuals, deviations),
        "jump symmetry": jump_symmetry_p_value(domain, before, after),
    }


def chi_square(found: np.ndarray, distribution: np.ndarray) -> float:
    """χ² test of counts against a distribution, rare cells pooled."""
    found, expected = pooled(found, found.sum() * distribution)
    return float(scipy.stats.chisquare(found, expected).pvalue)


def pooled(found: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge the rarest cells until every cell expects at least `MIN_EXPECTED` draws."""
    order = np.argsort(expected)
    found, expected = found[order], expected[order]
    num_rare = np.count_nonzero(expected < MIN_EXPECTED)
    if num_rare == 0:
        return found, expected
    last = max(num_rare - 1, np.searchsorted(np.cumsum(expected), MIN_EXPECTED))
    return _merge_first(found, last), _merge_first(expected, last)


def _merge_first(cells: np.ndarray, last: int) -> np.ndarray:
    return np.append(cells[: last + 1].sum(), cells[last + 1 :])


def variance_p_value(residuals: np.ndarray) -> float:
    """Two-sided: the sum of squares of standard normals is χ²."""
    distribution = scipy.stats.chi2(residuals.size)
    square = np.sum(residuals**2)
    return float(2 * min(distribution.cdf(square), distribution.sf(square)))


def own_moment_p_value(residuals: np.ndarray, deviations: np.ndarray) -> float:
    """Of `Σ r_i (θ_i − E θ_i)`: given the positions these are independent normals of known variance."""
    moments = np.sum(residuals * deviations, axis=0)
    squares = moments**2 / np.sum(deviations**2, axis=0)
    return float(scipy.stats.chi2.sf(squares.sum(), len(squares)))


def other_moments_p_value(residuals: np.ndarray, deviations: np.ndarray) -> float:
    """Of `Σ r_i (θ_j − E θ_j)` for all j ≠ i together: a normal vector for every i, of known covariance."""
    moments, covariance = residuals.T @ deviations, deviations.T @ deviations
    statistic, freedom = 0.0, 0
    for i in range(len(moments)):
        others = np.arange(len(moments)) != i
        # Levels of a one-hot site sum to 1: their null direction is no degree of freedom.
        block = covariance[np.ix_(others, others)]
        inverse, rank = scipy.linalg.pinvh(block, rtol=1e-10, return_rank=True)
        statistic += moments[i, others] @ inverse @ moments[i, others]
        freedom += rank
    return float(scipy.stats.chi2.sf(statistic, freedom))


def jump_symmetry_p_value(domain: steppe.Domain, before: SamplerState, after: SamplerState) -> float:
    """Of `t = ½(r + r′)·(θ′ − θ)`, which a reversible block leaves symmetric about 0.

    `t` changes sign when before and after are exchanged, so in equilibrium `t` and `−t` have one
    distribution. For
    symmetric variables `2 exp(−z²/2)`, `z = Σ t / √Σ t²`, bounds the two-sided p-value at any sample size.
    """
    jumps = coordinates(domain, after.position - before.position)
    assert after.center is not None
    assert before.center is not None
    pulls = coordinates(domain, after.center - after.position + before.center - before.position)
    products = np.sum(jumps * pulls, axis=1)
    squares = products @ products
    return float(min(1.0, 2 * np.exp(-0.5 * products.sum() ** 2 / squares))) if squares > 0 else 1.0


def counts(domain: steppe.Domain, positions: Array) -> np.ndarray:
    return np.bincount(np.asarray(indices(domain, positions)), minlength=domain.num_states)


@partial(quick_jit, static_argnums=0)
def indices(domain: steppe.Domain, positions: Array) -> Array:
    return domain.index(positions)


def coordinates(domain: steppe.Domain, array: Any) -> np.ndarray:
    """Chains × coordinates that exist, in float64."""
    flat = np.asarray(array, float).reshape(-1, int(np.prod(domain.shape)))
    return flat[:, existing(domain).ravel()]


def existing(domain: steppe.Domain) -> np.ndarray:
    """Which entries of a position hold a variable; ragged one-hot rows are padded."""
    return domain.level_mask if len(domain.shape) == 2 else np.ones(domain.shape, bool)


def _remembered(states: SamplerState) -> tuple[Any, ...]:
    caches = [own.cache if isinstance(own, ScanMemory) else own for own in states.memory]
    return states.log_density, states.gradient, states.roughness, caches


def _relative_error(found: Array, expected: Array) -> float:
    return float(jnp.max(jnp.abs(found - expected)) / (1 + jnp.max(jnp.abs(expected))))
