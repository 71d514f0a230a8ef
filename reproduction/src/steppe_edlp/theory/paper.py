"""The paper's convergence statements exactly as printed, to be compared with what is true.

Several of them are false as stated: `holds_here` tells, for a given target. Others are true because they say
nothing (a distance bounded by a number above its maximum). What can be relied on is in `bounds`.

Notation: as in `constants`; the center is confined to a box `Θ_a` (Assumption 5.3), which the algorithms do
not do; without a box the constants, and with them the bounds, are infinite.
"""

import math
from typing import NamedTuple

import numpy as np

from steppe.diagnostics.exact import (
    spectral_gap,
    stationary_distribution,
    target_distribution,
    transition_matrix,
)
from steppe.samplers import dula
from steppe.target import Target
from steppe.theory.bounds import MAX_PAIRED, Bound, check_stable, compare_bound
from steppe.theory.constants import Box, Constants, constants, largest_norm
from steppe_edlp.theory.confined import ConfinedChain, confined_chain, is_one_site


class PrintedDrift(NamedTuple):
    """The drift theorem as printed: `P|a|² ≤ value · |a|² + offset`.

    Attributes
    ----------
    value
        `λ = 2(1 − α_a/η)²`.
    offset
        `α_a d + 2 (α_a/η)² sup|θ|²`.
    assumptions
        What it rests on; `"λ < 1"` is what makes it a drift condition.
    holds_here
        Whether the inequality is true, for every center, of the algorithm as run.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import drift_theorem
    >>> printed = drift_theorem(steppe.targets.paper_bernoulli(), center_step_size=0.1, coupling_variance=1.0)
    >>> round(printed.value, 3), printed.assumptions
    (1.62, {'λ < 1': False})
    """

    value: float
    offset: float
    assumptions: dict[str, bool]
    holds_here: bool


def dula_bias(target: Target, step_size: float) -> Bound:
    """`|distribution of dula − π|_1 ≤ Z exp(M/4 − 1/(2α))`, from which Proposition 5.4 descends.

    Not invariant under adding a constant to `U`, although both sides of a true statement would be.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import dula_bias
    >>> bound = dula_bias(steppe.targets.paper_bernoulli(), step_size=0.1)
    >>> [name for name, holds in bound.assumptions.items() if not holds]
    ['log-density is quadratic (used in the proof)']
    """
    figures = constants(target)
    exact = None
    if figures.num_states <= MAX_PAIRED:
        distribution = stationary_distribution(transition_matrix(dula(step_size=step_size), target))
        exact = float(np.abs(distribution - target_distribution(target)).sum())
    log_value = figures.log_normalizer + figures.curvature.lipschitz / 4 - 1 / (2 * step_size)
    assumptions = _assumptions(figures, step_size) | _quadratic(figures)
    return compare_bound(log_value, assumptions, exact, largest=2.0, terms={"log_Z": figures.log_normalizer})


def proposition_5_4(
    target: Target,
    step_size: float,
    center_step_size: float,
    coupling_variance: float,
    *,
    center_box: Box | None = None,
) -> Bound:
    """`|distribution of edula − joint|_1 ≤ Z exp{M/4 − 1/(2α) + (Δ² − ϑ)/(2η)}`.

    Parameters
    ----------
    target
        What is sampled. The left side is computed for one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    center_box
        `Θ_a`.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import proposition_5_4
    >>> target = steppe.targets.bernoulli_table([0.3, 0.7])
    >>> proposition_5_4(target, 0.1, 0.1, 1.0, center_box=(-1.0, 2.0)).holds_here
    True
    """
    figures = constants(target, center_box=center_box)
    numbers = step_size, center_step_size, coupling_variance
    chain = _confined_chain(target, numbers, center_box, is_adjusted=False)
    exact = (
        None
        if chain is None
        else float(np.abs(stationary_distribution(chain.matrix) - chain.distribution).sum())
    )
    log_value = _log_bias(figures, step_size, coupling_variance)
    assumptions = _assumptions(figures, step_size) | _confined(figures) | _quadratic(figures)
    return compare_bound(log_value, assumptions, exact, largest=2.0, terms={"log_Z": figures.log_normalizer})


def theorem_5_5(
    target: Target,
    step_size: float,
    center_step_size: float,
    coupling_variance: float,
    num_steps: float,
    *,
    center_box: Box | None = None,
) -> Bound:
    """`sup_x TV(P^k(x, ·), joint) ≤ (1 − η̄*)^k + Z exp{M/4 − 1/(2α) + (Δ² − ϑ)/(2η)}` for `edula`.

    Parameters
    ----------
    target
        What is sampled. The left side is computed for one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    num_steps
        `k`, or infinity.
    center_box
        `Θ_a`.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import theorem_5_5
    >>> target = steppe.targets.bernoulli_table([0.3, 0.7])
    >>> theorem_5_5(target, 0.1, 0.1, 1.0, num_steps=10, center_box=(-1.0, 2.0)).holds_here
    True
    """
    figures = constants(target, center_box=center_box)
    log_rate = _log_minorization(figures, step_size, center_step_size, coupling_variance)
    log_bias = _log_bias(figures, step_size, coupling_variance)
    log_memory = -math.inf
    if num_steps < math.inf:
        log_memory = num_steps * math.log1p(-min(math.exp(log_rate), 1 - 1e-16))
    numbers = step_size, center_step_size, coupling_variance
    chain = _confined_chain(target, numbers, center_box, is_adjusted=False)
    exact = None if chain is None else _worst_distance(chain, num_steps)
    return compare_bound(
        float(np.logaddexp(log_memory, log_bias)),
        _assumptions(figures, step_size) | _confined(figures),
        exact,
        largest=1.0,
        terms={"log_eta_star": log_rate, "log_bias": log_bias},
    )


def theorem_5_6(
    target: Target,
    step_size: float,
    center_step_size: float,
    coupling_variance: float,
    *,
    center_box: Box | None = None,
) -> Bound:
    """`sup_x TV(P^k(x, ·), joint) ≤ (1 − ε)^k` for `edmala`, for every `k`; `value` is `ε`.

    It would follow that the spectral gap is at least `ε`, which is what `exact` and `holds_here` are about.

    Parameters
    ----------
    target
        What is sampled. The gap is computed for one site.
    step_size, center_step_size, coupling_variance
        `α`, `α_a`, `η`.
    center_box
        `Θ_a`.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import theorem_5_6
    >>> target = steppe.targets.bernoulli_table([0.3, 0.7])
    >>> theorem_5_6(target, 0.1, 0.1, 1.0, center_box=(-1.0, 2.0)).holds_here
    True
    """
    figures = constants(target, center_box=center_box)
    M, m = figures.curvature.lipschitz, max(figures.curvature.concavity, 0.0)
    D, G, η = figures.diameter, figures.smallest_gradient, coupling_variance
    pulls = 3 * center_step_size / (8 * η**2) + 2 / η
    log_value = (
        -(M / 2 + 1 / step_size - m / 4) * D**2
        - G * D / 2
        - pulls * figures.center_distance**2
        + figures.center_alignment / η
    )
    numbers = step_size, center_step_size, coupling_variance
    chain = _confined_chain(target, numbers, center_box, is_adjusted=True)
    exact = None if chain is None else spectral_gap(chain.matrix)
    value = math.exp(log_value)
    holds = True if value == 0 else None if exact is None else bool(value <= exact)
    assumptions = _assumptions(figures, step_size) | _confined(figures)
    assumptions["log-density is strongly concave (5.2)"] = figures.curvature.concavity > 0
    return Bound(value, log_value, assumptions, holds, exact, {"m": m})


def drift_theorem(target: Target, center_step_size: float, coupling_variance: float) -> PrintedDrift:
    """`P|a|² ≤ 2(1 − α_a/η)² |a|² + α_a d + 2(α_a/η)² sup|θ|²` for `edula`.

    The printed kernel has the drift `α_a/η` where the algorithm has `α_a/(2η)`.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import drift_theorem
    >>> printed = drift_theorem(steppe.targets.paper_bernoulli(), center_step_size=0.5, coupling_variance=1.0)
    >>> printed.holds_here, printed.value
    (False, 0.5)
    """
    check_stable(coupling_variance, center_step_size)
    ratio = center_step_size / coupling_variance
    factor, keep = 2 * (1 - ratio) ** 2, 1 - ratio / 2
    largest = largest_norm(target.domain)
    offset = center_step_size * math.prod(target.domain.shape) + 2 * ratio**2 * largest**2
    # In the worst case |keep·a + (1 − keep)θ|² − factor·|a|² is (ratio/2)² sup|θ|² factor/(factor − keep²),
    # to be covered by 2 ratio² sup|θ|²; it has no maximum where factor ≤ keep².
    return PrintedDrift(
        value=factor,
        offset=offset,
        assumptions={"λ < 1": factor < 1},
        holds_here=8 * (factor - keep**2) >= factor and factor > keep**2,
    )


def _confined_chain(
    target: Target, numbers: tuple[float, float, float], center_box: Box | None, *, is_adjusted: bool
) -> ConfinedChain | None:
    """The chain with its center in the box, where it can be computed."""
    if center_box is None or not is_one_site(target):
        return None
    return confined_chain(target, *numbers, center_box, is_adjusted=is_adjusted)


def _worst_distance(chain: ConfinedChain, num_steps: float) -> float:
    """Total variation from the distribution after `k` steps from the worst start, or in the limit."""
    is_limit = num_steps == math.inf
    matrix = chain.matrix
    after = (
        stationary_distribution(matrix)[None] if is_limit else np.linalg.matrix_power(matrix, int(num_steps))
    )
    return float(0.5 * np.abs(after - chain.distribution).sum(axis=1).max())


def _assumptions(figures: Constants, step_size: float) -> dict[str, bool]:
    is_smooth = math.isfinite(figures.curvature.lipschitz)
    return {
        "gradient is Lipschitz on the hull (5.1)": is_smooth,
        "step size is below 2/M (used in the proof)": step_size * figures.curvature.lipschitz < 2,
        "constants are exact": figures.curvature.is_exact and figures.is_enumerated,
    }


def _confined(figures: Constants) -> dict[str, bool]:
    return {"centers are confined (5.3)": math.isfinite(figures.center_distance)}


def _quadratic(figures: Constants) -> dict[str, bool]:
    return {"log-density is quadratic (used in the proof)": figures.curvature.kind == "quadratic"}


def _log_bias(figures: Constants, step_size: float, coupling_variance: float) -> float:
    spread = figures.center_distance**2 - figures.center_alignment
    exponent = figures.curvature.lipschitz / 4 - 1 / (2 * step_size) + spread / (2 * coupling_variance)
    return figures.log_normalizer + exponent


def _log_minorization(figures: Constants, α: float, α_a: float, η: float) -> float:
    """`log η̄*` of Theorem 5.5. `Φ` is taken as `(2π α_a)^{d/2}`; as printed it depends on the mean."""
    centers = -(figures.center_diameter**2) / α_a - α_a / η**2 * figures.center_distance**2
    log_phi = 0.5 * figures.dimension * math.log(2 * math.pi * α_a)
    return centers - log_phi + find_log_position_bound(figures, α, η)


def find_log_position_bound(figures: Constants, α: float, η: float) -> float:
    """Log of what both minorisations say of the position: it has at least this probability.

    Examples
    --------
    >>> import steppe
    >>> from steppe_edlp.theory.paper import find_log_position_bound
    >>> known = steppe.theory.constants(steppe.targets.paper_bernoulli(), center_box=(-1.0, 2.0))
    >>> find_log_position_bound(known, 0.1, 1.0) < 0
    True
    """
    M, D, G = figures.curvature.lipschitz, figures.diameter, figures.smallest_gradient
    square = (α * M + 1) ** 2 * D**2 + 2 * (M + α) * G * D + α**2 * G**2
    bracket = square + α * M**2 * D**2 + 2 * α * M * G * D + α * G**2 + 2 * α / η * math.sqrt(square) * D
    return -math.log(figures.num_states) - bracket / (2 * α)
