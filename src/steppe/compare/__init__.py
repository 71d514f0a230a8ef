"""Samplers on one target with equal budgets, each tuned by the same rule."""

from steppe.compare.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
