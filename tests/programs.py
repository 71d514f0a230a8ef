"""Compiled functions, and how many programs they keep."""

from typing import Any


def count_programs(compiled: Any) -> int:
    """How many programs a function under `jax.jit` was compiled to so far."""
    return compiled._cache_size()
