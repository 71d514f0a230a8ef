"""From a recipe and a target to the numbers it should run with, and why."""

from steppe.tune.search import tune
from steppe.tune.tuned import Trial, Tuned

__all__ = ["Trial", "Tuned", "tune"]
