"""Targets: a log-density on a domain, wrapped or subclassed."""

from steppe.target.log_density import Incremental, LogDensity, Offers, Target, ValueAndGrad, hold_reals
from steppe.target.wrapped import WrappedTarget

__all__ = ["Incremental", "LogDensity", "Offers", "Target", "ValueAndGrad", "WrappedTarget", "hold_reals"]
