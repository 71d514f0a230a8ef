"""Theory made computable: constants of a target, true bounds, and the paper's statements as printed.

`steppe.theory.paper` holds the latter; each says which of its assumptions the target meets and whether the
statement is true of it.
"""

from steppe.theory import paper
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
    quadratic_law,
)
from steppe.theory.confined import ConfinedChain, confined_chain
from steppe.theory.constants import Constants, Curvature, box_mass, constants, curvature

__all__ = [
    "Bound",
    "ConfinedChain",
    "Constants",
    "Curvature",
    "Drift",
    "EffectiveStep",
    "box_mass",
    "center_bias",
    "confined_chain",
    "constants",
    "curvature",
    "drift_condition",
    "drift_factor",
    "edula_bias_bound",
    "effective_step_size",
    "glu_gap_bound",
    "paper",
    "quadratic_law",
]
