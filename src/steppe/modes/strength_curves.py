"""Curves for a few modes: what each is worth as the disturbance grows, or in the worst and best cases."""

import dataclasses

import numpy as np
from jax import Array

from steppe.kernel.cost import EvaluationCounter
from steppe.robust.disturbances import Disturbance, Flips, Moves
from steppe.robust.outcomes import evaluate_after
from steppe.robust.risk import Risk
from steppe.target import Target

MULTIPLES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
MAX_RATE = 0.5
MIN_DRAWS, MAX_DRAWS = 8, 256
NUM_FRACTIONS = 21


@dataclasses.dataclass(frozen=True)
class StrengthCurves:
    """Values of some modes along an axis.

    Attributes
    ----------
    label
        What the axis shows.
    strengths
        Places on it.
    values, errors
        Modes × places; errors are NaN where there are none.
    stated
        The place of the disturbance that was stated, or `None` where the axis is not its strength.
    """

    label: str
    strengths: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    stated: float | None


def draw_curves(
    target: Target,
    states: np.ndarray,
    disturbance: Disturbance,
    risk: Risk,
    outcomes: np.ndarray,
    key: Array,
    counter: EvaluationCounter,
) -> StrengthCurves:
    """Evaluate states at several strengths; where a disturbance has none, sort its outcomes instead.

    Parameters
    ----------
    target, states, disturbance, risk
        What is evaluated, and after what.
    outcomes
        Outcomes of the states at the strength that was stated.
    key
        Of fresh disturbances.
    counter
        Of evaluations; the curves take what is left of its budget, or are sorted outcomes without any.
    """
    scaled = _scale(disturbance, target.domain.num_sites)
    size = counter.num_left // (max(len(scaled), 1) * len(states)) - 1
    if not scaled or size < MIN_DRAWS:
        return _sort_outcomes(outcomes)
    is_closed = disturbance.find_closed_form(target, risk) is not None
    size = min(size, MIN_DRAWS if is_closed else MAX_DRAWS)
    before = evaluate_after(target, states, scaled[-1][1], risk, key, 2).log_density
    columns, errors = [before], [np.zeros(len(states))]
    for _, one in scaled:
        after = evaluate_after(target, states, one, risk, key, size)
        columns.append(after.value)
        errors.append(after.standard_error)
    counter.record(values=min(len(scaled) * len(states) * (1 + size), counter.num_left))
    strengths = np.asarray([0.0, *(strength for strength, _ in scaled)])
    label = (
        "flip rate" if isinstance(disturbance, Flips) and disturbance.rates is not None else "random changes"
    )
    stated = _find_strength(disturbance)
    return StrengthCurves(label, strengths, np.stack(columns, 1), np.stack(errors, 1), stated)


def _scale(disturbance: Disturbance, num_sites: int) -> list[tuple[float, Disturbance]]:
    """The disturbance at several strengths, itself among them."""
    if isinstance(disturbance, Moves):
        return [(k, Moves(k)) for k in sorted({1, disturbance.num_moves, 2 * disturbance.num_moves})]
    if not isinstance(disturbance, Flips):
        return []
    if disturbance.flips is not None:
        most = min(num_sites, max(2 * disturbance.flips, 4))
        numbers = sorted({1, disturbance.flips, *np.linspace(1, most, 5).round().astype(int).tolist()})
        return [(k, disturbance._replace(flips=int(k))) for k in numbers]
    rates = disturbance.rates
    assert rates is not None
    mean = float(rates.mean())
    scaled = [(m * mean, disturbance._replace(rates=np.clip(m * rates, 0, 1))) for m in MULTIPLES[1:]]
    return [(rate, one) for rate, one in scaled if rate <= max(MAX_RATE, mean)]


def _find_strength(disturbance: Disturbance) -> float | None:
    if isinstance(disturbance, Moves):
        return float(disturbance.num_moves)
    if not isinstance(disturbance, Flips):
        return None
    return float(disturbance.rates.mean() if disturbance.rates is not None else disturbance.flips or 0)


def _sort_outcomes(outcomes: np.ndarray) -> StrengthCurves:
    fractions = np.linspace(0, 1, NUM_FRACTIONS)
    finite = np.where(np.isfinite(outcomes), outcomes, np.nan)
    values = np.nanquantile(finite, fractions, axis=1).T
    return StrengthCurves("fraction of disturbances", fractions, values, np.full(values.shape, np.nan), None)
