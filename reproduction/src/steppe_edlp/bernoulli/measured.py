"""What is known of one sampler on the four bits."""

import dataclasses

import numpy as np

from steppe.kernel.compose import Recipe

# Standard deviation and interquartile range of the eigenvalues as printed in the paper.
PAPER_SPECTRUM = {
    "dula": (2.832, 3.466),
    "dmala": (2.700, 3.224),
    "edula": (2.401, 3.031),
    "edmala": (2.197, 2.747),
}


@dataclasses.dataclass(frozen=True)
class Measured:
    """One sampler: its exact law, windows as long as the paper's run, and what it is judged by.

    Attributes
    ----------
    recipe
        The sampler with its numbers.
    law
        Probability of every state, exact.
    windows
        Windows × states.
    shares, acceptance, flips
        Per seed, as in `occupancy.Visits`.
    """

    recipe: Recipe
    law: np.ndarray
    windows: np.ndarray
    shares: np.ndarray
    acceptance: np.ndarray
    flips: np.ndarray


def percentile(values: np.ndarray, one: float) -> float:
    """Share of values below one, in per cent."""
    return float(100 * np.mean(values < one))
