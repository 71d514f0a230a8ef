"""Targets: a log-density on a domain, wrapped or subclassed."""

from steppe.target.base import Incremental, LogDensity, Offers, Target, ValueAndGrad, WrappedTarget

__all__ = ["Incremental", "LogDensity", "Offers", "Target", "ValueAndGrad", "WrappedTarget"]
