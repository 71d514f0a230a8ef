"""Merging of modes: which are the same, which are better, which are alike."""

from functools import partial

import jax
import numpy as np
from jax import Array

from steppe.compiling import pad_rows, quick_jit
from steppe.target import Target

# Modes are called flat and sharp where the roughest flat one is less than half as rough as the smoothest
# sharp one.
MIN_RATIO = 2.0


def canonicalize(target: Target, states: np.ndarray) -> np.ndarray:
    """Write states that stand for the same thing the same way: a tour may start anywhere."""
    return np.asarray(_canonical(target, pad_rows(states)), states.dtype)[: len(states)]


@quick_jit
def _canonical(target: Target, states: Array) -> Array:
    return jax.vmap(target.canonical)(states)


def measure_distances(target: Target, state: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How far states are from one, in sites, places or edges."""
    return np.asarray(_distances(target, state, pad_rows(others)))[: len(others)]


@quick_jit
def _distances(target: Target, state: Array, others: Array) -> Array:
    return jax.vmap(partial(target.distance, state))(others)


def find_pareto_front(height: np.ndarray, flatness: np.ndarray) -> np.ndarray:
    """Boolean: no other is at least as high and as flat, and better in one."""
    is_no_worse = (height[:, None] >= height) & (flatness[:, None] >= flatness)
    is_better = (height[:, None] > height) | (flatness[:, None] > flatness)
    return np.logical_not((is_no_worse & is_better).any(axis=0))


def label_modes(roughness: np.ndarray) -> list[str]:
    """Name two groups of modes if their roughness leaves a gap of a factor between them."""
    ordered = np.sort(roughness)
    if len(ordered) < 2 or ordered[-1] <= 0:
        return ["–"] * len(roughness)
    ratios = ordered[1:] / np.maximum(ordered[:-1], 1e-6 * ordered[-1])
    widest = int(np.argmax(ratios))
    if ratios[widest] < MIN_RATIO:
        return ["–"] * len(roughness)
    return ["flat" if value <= ordered[widest] else "sharp" for value in roughness]
