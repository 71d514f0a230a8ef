"""Robust targets: the value that is left after a disturbance the user states, as a target of its own."""

from steppe.robust.outcomes import Robustness, measure_robustness
from steppe.robust.transform import robust

__all__ = ["Robustness", "measure_robustness", "robust"]
