"""The authors' 25 spins: a hand-made matrix, and its distribution by sums over groups of spins.

Notation: `x ∈ {−1, 1}²⁵`, `U(x) = 0.1 xᵀ G x + 0.2 Σ x`, with `G = 10` on both diagonals and rows 10 to 14 of
ones. Spins `i` and `24 − i` outside these rows are pairs; with `P` the sum of `x x'` over the ten pairs, `R`
the sum of the five spins of the rows of ones and `S` that of the twenty others,
`U = 20 + 2 P + 0.1 R (R + S) + 0.2 (R + S)`.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import Binary, Target

NUM_SPINS, NUM_PAIRS, NUM_ONES = 25, 10, 5
FIELD, SCALE, STRONG = 0.2, 0.1, 10.0


def make_matrix() -> np.ndarray:
    """`G` as the authors make it: diagonals first, then the rows of ones over them."""
    matrix = STRONG * np.maximum(np.eye(NUM_SPINS), np.eye(NUM_SPINS)[::-1])
    matrix[NUM_PAIRS : NUM_PAIRS + NUM_ONES] = 1.0
    return matrix


def make_target() -> Target:
    """The log-density over bits `θ = (x + 1) / 2`, as the authors sample it."""
    couplings = SCALE * make_matrix()

    def log_density(bits: Array) -> Array:
        spins = 2 * bits - 1
        return spins @ (jnp.asarray(couplings, bits.dtype) @ spins) + FIELD * jnp.sum(spins)

    return Target(log_density, Binary(NUM_SPINS))


class Exact(NamedTuple):
    """What is known of the model.

    Attributes
    ----------
    log_density
        `E[U]`.
    spread
        Standard deviation of `U`.
    magnetization
        Probability of 0 to 25 spins up.
    """

    log_density: float
    spread: float
    magnetization: np.ndarray


def sum_exactly() -> Exact:
    """Sum over groups: spins up in the rows of ones, pairs both up, both down, and mixed."""
    weights, values, ups = [], [], []
    for rows_up in range(NUM_ONES + 1):
        for both_up in range(NUM_PAIRS + 1):
            for both_down in range(NUM_PAIRS + 1 - both_up):
                mixed = NUM_PAIRS - both_up - both_down
                up = rows_up + 2 * both_up + mixed
                total, rows = 2 * up - NUM_SPINS, 2 * rows_up - NUM_ONES
                aligned = both_up + both_down - mixed
                fixed = SCALE * STRONG * 2 * NUM_PAIRS
                values.append(fixed + 2 * SCALE * STRONG * aligned + SCALE * rows * total + FIELD * total)
                count = math.comb(NUM_ONES, rows_up) * 2**mixed
                count *= math.factorial(NUM_PAIRS) // (
                    math.factorial(both_up) * math.factorial(both_down) * math.factorial(mixed)
                )
                weights.append(math.log(count) + values[-1])
                ups.append(up)
    log_weights = np.array(weights)
    probabilities = np.exp(log_weights - log_weights.max())
    probabilities /= probabilities.sum()
    energy = np.array(values)
    mean = float(probabilities @ energy)
    spread = float(np.sqrt(probabilities @ (energy - mean) ** 2))
    return Exact(mean, spread, np.bincount(ups, probabilities, NUM_SPINS + 1))
