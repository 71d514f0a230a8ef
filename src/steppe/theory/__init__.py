"""Theory made computable: constants of a target, and bounds that are true of samplers on it."""

from steppe.theory.bounds import (
    Bound,
    Drift,
    EffectiveStep,
    center_bias,
    drift_condition,
    drift_factor,
    edula_bias_bound,
    effective_step_size,
    glu_gap_bound,
    quadratic_distribution,
)
from steppe.theory.constants import Constants, Curvature, box_mass, constants, curvature

__all__ = [
    "Bound",
    "Constants",
    "Curvature",
    "Drift",
    "EffectiveStep",
    "box_mass",
    "center_bias",
    "constants",
    "curvature",
    "drift_condition",
    "drift_factor",
    "edula_bias_bound",
    "effective_step_size",
    "glu_gap_bound",
    "quadratic_distribution",
]
