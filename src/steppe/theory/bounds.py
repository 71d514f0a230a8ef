"""What is true of the samplers and can be computed: effective step, drift, bias and gap bounds.

Notation: `α` step size, `α_a` center step size, `η` coupling variance. Every statement comes with what it
assumes, checked on the target, and with the exact number it bounds wherever that can be enumerated.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.arguments import checked
from steppe.compiling import quick_jit
from steppe.diagnostics.exact import proximal_matrix, spectral_gap, target_distribution
from steppe.diagnostics.flatness.log_tables import level_distances
from steppe.domain import Domain
from steppe.errors import RecipeError, TargetError
from steppe.target import Target
from steppe.theory.constants import constants, largest_norm
from steppe.validation import positive

# Pairs of states are listed up to this many states.
MAX_PAIRED = 2**11


class Bound(NamedTuple):
    """A computable statement about a sampler on a target.

    Attributes
    ----------
    value
        The bound; infinite where it overflows.
    log_value
        Its logarithm, for bounds too large or too small to print.
    assumptions
        What the statement rests on, each checked on the target.
    holds_here
        Whether the statement is true of this target: compared with `exact`, or true for want of content
        (a distance bounded by its largest possible value). `None` where neither could be decided.
    exact
        The number that is bounded, where it was computed.
    terms
        Parts the bound is made of.

    Examples
    --------
    >>> import steppe
    >>> target = steppe.targets.ising_lattice((2, 2), coupling=0.05, spins=False)
    >>> bound = steppe.theory.edula_bias_bound(target, 0.1, 1.0, 0.1)
    >>> bound.holds_here, bound.value > bound.exact
    (True, True)
    """

    value: float
    log_value: float
    assumptions: dict[str, bool]
    holds_here: bool | None
    exact: float | None
    terms: dict[str, float]


class EffectiveStep(NamedTuple):
    """The step size at which `dula` has the position distribution of `edula`.

    Attributes
    ----------
    value
        `α_eff`; infinite where `inverse` is zero, negative where it is negative.
    inverse
        `1/α_eff = 1/α − 1/(4η − α_a)`.
    is_proper
        Whether `α_eff` is a step size that `dula` can take. The formula for the distribution holds all the
        same.
    is_exact
        Whether the target is quadratic, so that the identity holds; `None` without a target.

    Examples
    --------
    >>> import steppe
    >>> step = steppe.theory.effective_step_size(step_size=0.5, coupling_variance=1.0, center_step_size=0.5)
    >>> round(step.value, 4), step.is_proper
    (0.5833, True)
    """

    value: float
    inverse: float
    is_proper: bool
    is_exact: bool | None


class Drift(NamedTuple):
    """`E|a'|² ≤ factor · |a|² + offset` for the center of `edula`, from every state.

    Attributes
    ----------
    factor, offset
        The two numbers.

    Examples
    --------
    >>> import steppe
    >>> drift = steppe.theory.drift_condition(steppe.Binary(4), center_step_size=0.5, coupling_variance=1.0)
    >>> drift.factor < 1  # the center returns from far away
    True
    """

    factor: float
    offset: float


@checked(TargetError)
def effective_step_size(
    step_size: float, coupling_variance: float, center_step_size: float, *, target: Target | None = None
) -> EffectiveStep:
    """Step size at which `dula` has the position distribution of `edula`: `1/α_eff = 1/α − 1/(4η − α_a)`.

    Parameters
    ----------
    step_size, coupling_variance, center_step_size
        `α`, `η`, `α_a` of `edula` (linear coupling form), with `α_a < 4η`.
    target
        Checked for being quadratic. The identity is exact then, on any domain, and an approximation else.

    Examples
    --------
    >>> import steppe
    >>> step = steppe.theory.effective_step_size(step_size=0.2, coupling_variance=1.0, center_step_size=0.4)
    >>> round(1 / step.value, 3), round(1 / 0.2 - 1 / (4 - 0.4), 3)
    (4.722, 4.722)
    """
    check_stable(coupling_variance, center_step_size)
    inverse = 1 / positive("step_size", step_size, remedy="") - 1 / (4 * coupling_variance - center_step_size)
    value = math.inf if inverse == 0 else 1 / inverse
    is_exact = None if target is None else constants(target).curvature.kind == "quadratic"
    return EffectiveStep(value, inverse, inverse > 0, is_exact)


@checked(TargetError)
def drift_factor(center_step_size: float, coupling_variance: float) -> float:
    """`c = 1 − α_a/(2η)`, by which the center of `edula` keeps its distance to the position in a step.

    Below 1 in absolute value for `0 < α_a < 4η`, which is checked.

    Examples
    --------
    >>> import steppe
    >>> steppe.theory.drift_factor(center_step_size=0.5, coupling_variance=1.0)
    0.75
    """
    check_stable(coupling_variance, center_step_size)
    return 1 - center_step_size / (2 * coupling_variance)


@checked(TargetError)
def drift_condition(domain: Domain, center_step_size: float, coupling_variance: float) -> Drift:
    """Drift of the center of `edula`: `|c| |a|² + (1 − c)²/(1 − |c|) sup|θ|² + α_a d`, by convexity.

    Examples
    --------
    >>> import steppe
    >>> slow, fast = (steppe.theory.drift_condition(steppe.Spin(4), step, 1.0) for step in (0.1, 1.0))
    >>> round(slow.factor, 3), round(fast.factor, 3)
    (0.95, 0.5)
    """
    c = drift_factor(center_step_size, coupling_variance)
    # Numbers so far apart that c rounds to 1 leave the center where it is.
    offset = (1 - c) ** 2 / (1 - abs(c)) * largest_norm(domain) ** 2 if abs(c) < 1 else math.inf
    return Drift(abs(c), offset + center_step_size * math.prod(domain.shape))


@checked(TargetError)
def edula_bias_bound(
    target: Target,
    step_size: float,
    coupling_variance: float,
    center_step_size: float,
    *,
    is_joint: bool = False,
) -> Bound:
    """Bound on the bias of `edula` for quadratic log-densities, whatever their normalizer.

    `|distribution of θ − π|_1 ≤ 2B/(1 + B)` with `B = Π_i Σ_c exp{(M/4 − 1/(2α_eff)) ℓ²_ic} − 1`, where
    `ℓ²_ic` is
    the squared length of the `c`-th cyclic move of site `i`: `(1 + exp(M/4 − 1/(2α_eff)))^d − 1` on bits.

    Parameters
    ----------
    target
        What is sampled.
    step_size, coupling_variance, center_step_size
        `α`, `η`, `α_a`, with `α_a < 4η`.
    is_joint
        Bound the joint distribution of position and center instead, which adds `|N(0, v I) − N(0, η I)|_1`
        with
        `v = η/(1 − α_a/(4η))`, the variance of a center that moves without correction.

    Examples
    --------
    >>> import steppe
    >>> target = steppe.targets.ising_lattice((2, 2), coupling=0.05, spins=False)
    >>> small, large = (steppe.theory.edula_bias_bound(target, α, 1.0, 0.1).value for α in (0.1, 0.5))
    >>> small < large
    True
    """
    step = effective_step_size(step_size, coupling_variance, center_step_size)
    figures = constants(target)
    rate = figures.curvature.lipschitz / 4 - step.inverse / 2
    log_sum = sum(_log_cyclic_sum(distances, rate) for distances in level_distances(target.domain))
    excess = math.expm1(min(log_sum, 700.0))
    bias = 2 * excess / (1 + excess)
    gaussian = center_bias(coupling_variance, center_step_size, figures.dimension) if is_joint else 0.0
    is_quadratic = figures.curvature.kind == "quadratic"
    exact = None
    if is_quadratic and not is_joint and figures.num_states <= MAX_PAIRED:
        distribution = quadratic_distribution(target, step.inverse)
        exact = float(np.abs(distribution - target_distribution(target)).sum())
    return compare_bound(
        math.log(bias + gaussian) if bias + gaussian > 0 else -math.inf,
        {"log-density is quadratic": is_quadratic, "center step is stable": True},
        exact,
        largest=2.0,
        terms={"B": excess, "inverse_effective_step": step.inverse, "center": gaussian},
    )


@checked(TargetError)
def glu_gap_bound(target: Target, coupling_variance: float) -> Bound:
    """Lower bound `exp(−diam²/(4η))` of the spectral gap of GLU with exact conditional draws.

    From `K(θ, θ') ≥ π(θ') exp(−|θ − θ'|²/(4η))` (Cauchy–Schwarz); hence also
    `TV ≤ (1 − exp(−diam²/(4η)))^k` after `k` steps. Raising `η` improves it.

    Parameters
    ----------
    target
        What is sampled. The gap itself is computed for up to four coordinates.
    coupling_variance
        `η`.

    Examples
    --------
    >>> import steppe
    >>> bound = steppe.theory.glu_gap_bound(steppe.targets.paper_bernoulli(), coupling_variance=1.0)
    >>> round(bound.value, 4), bound.holds_here  # exp(−4/4): four bits are at most 2 apart
    (0.3679, True)
    """
    η = positive("coupling_variance", coupling_variance, remedy="")
    squared = float(sum(distances.max() for distances in level_distances(target.domain)))
    exact = None
    if math.prod(target.domain.shape) <= 4:
        exact = spectral_gap(proximal_matrix(target, η))
    log_value = -squared / (4 * η)
    holds = None if exact is None else bool(math.exp(log_value) <= exact)
    return Bound(
        math.exp(log_value),
        log_value,
        {"position is drawn exactly given the center": True},
        holds,
        exact,
        {"squared_diameter": squared},
    )


@checked(TargetError, dimension="[1, inf)")
def center_bias(coupling_variance: float, center_step_size: float, dimension: int) -> float:
    """`|N(0, v I) − N(0, η I)|_1` with `v = η/(1 − α_a/(4η))`: the bias of an uncorrected center alone.

    Examples
    --------
    >>> import steppe
    >>> round(steppe.theory.center_bias(coupling_variance=1.0, center_step_size=0.1, dimension=4), 4)
    0.0274
    """
    check_stable(coupling_variance, center_step_size)
    fraction = center_step_size / (4 * coupling_variance)  # v = η / (1 − share)
    if fraction == 0:
        return 0.0
    # The two densities are equal where |r|²/η = −d log(1 − share)/share.
    crossing = -dimension * math.log1p(-fraction) / fraction
    masses = [_gamma_mass(dimension / 2, crossing * scale / 2) for scale in (1.0, 1 - fraction)]
    return 2 * (masses[0] - masses[1])


@checked(TargetError)
def quadratic_distribution(target: Target, inverse_step: float) -> np.ndarray:
    """Stationary distribution of `dula` for quadratic `U`: `π(θ)` times the sum of proposal weights at `θ`.

    Exact also for `1/α ≤ 0`, where no step size belongs to it but an `edula` does.

    Examples
    --------
    >>> import numpy as np, steppe
    >>> from steppe.diagnostics.exact import stationary_distribution, transition_matrix
    >>> target = steppe.targets.ising([[0.0, 0.5], [0.5, 0.0]], spins=False)
    >>> matrix = transition_matrix(steppe.dula(step_size=0.5), target)
    >>> closed = steppe.theory.quadratic_distribution(target, inverse_step=2.0)
    >>> bool(np.abs(closed - stationary_distribution(matrix)).max() < 1e-6)
    True
    """
    scores = np.asarray(_log_proposal_sums(target, inverse_step), float) + np.log(target_distribution(target))
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def compare_bound(
    log_value: float,
    assumptions: dict[str, bool],
    exact: float | None,
    *,
    largest: float,
    terms: dict[str, float],
) -> Bound:
    """Build an upper bound, compared with what it bounds, which never exceeds `largest`."""
    value = math.inf if log_value >= 700 else math.exp(log_value)  # NaN stays NaN
    holds = None if exact is None else bool(exact <= value)
    return Bound(value, log_value, assumptions, True if value >= largest else holds, exact, terms)


def check_stable(coupling_variance: float, center_step_size: float) -> None:
    """Refuse `α_a ≥ 4η`, where an uncorrected center diverges and no distribution exists."""
    η = positive("coupling_variance", coupling_variance, remedy="")
    if not 0 <= center_step_size < 4 * η:
        raise RecipeError(
            f"`center_step_size` must be at least 0 and less than 4 · coupling_variance = {4 * η:g}; got "
            f"{center_step_size!r}. Beyond that an uncorrected center diverges."
        )


def _log_cyclic_sum(distances: np.ndarray, rate: float) -> float:
    """Log of the sum over cyclic moves of the levels of a site of their largest weight."""
    size = len(distances)
    levels = np.arange(size)
    weights = [(rate * distances[levels, (levels + move) % size]).max() for move in range(size)]
    return float(np.logaddexp.reduce(weights))


def _gamma_mass(shape: float, x: float) -> float:
    return float(jax.scipy.special.gammainc(shape, x))


@quick_jit
def _log_proposal_sums(target: Target, inverse_step: Array) -> Array:
    states = target.domain.enumerate().reshape(target.domain.num_states, -1)

    def at(position: Array) -> Array:
        _, gradient = target.value_and_grad(position)
        jumps = states - position.ravel()
        scores = 0.5 * (jumps @ gradient.ravel() - inverse_step * jnp.sum(jumps**2, axis=1))
        return jax.nn.logsumexp(scores)

    return jax.lax.map(at, target.domain.enumerate(), batch_size=64)
