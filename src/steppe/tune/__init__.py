"""From a recipe and a target to the numbers it should run with, and why."""

from steppe.tune.report import Trial, Tuned
from steppe.tune.search import tune

__all__ = ["Trial", "Tuned", "tune"]
