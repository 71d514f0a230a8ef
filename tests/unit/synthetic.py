"""Traces made by hand, of which it is known what should be said about them."""

import numpy as np

from steppe import Binary, Domain
from steppe.trace import Trace


def trace_of(
    levels: np.ndarray, domain: Domain | None = None, *, log_density=None, num_warmup_rows=0
) -> Trace:
    """A trace with the given levels, (chain, draw, [copy,] site), and `U` a fixed linear function of them."""
    domain = Binary(levels.shape[-1]) if domain is None else domain
    weights = np.linspace(0.3, 1.1, levels.shape[-1])
    log_density = levels @ weights if log_density is None else log_density
    shape = levels.shape[:2]
    moved = (levels[:, 1:] != levels[:, :-1]).reshape(shape[0], shape[1] - 1, -1).sum(axis=-1)
    arrays = {
        "levels": np.packbits(levels, axis=-1) if domain.is_two_level else levels,
        "log_density": log_density.astype(np.float32),
        "acceptance_rate": np.full(shape, 0.5, np.float32),
        "is_accepted": np.ones(shape, bool),
        "num_flips": np.concatenate([np.zeros((shape[0], 1), int), moved], axis=1),
        "num_nonfinite": np.zeros(shape, int),
    }
    return Trace(arrays, num_warmup_rows, domain)


def fair_bits(num_chains=4, num_draws=400, num_sites=6, seed=0, fraction=0.5) -> np.ndarray:
    """Independent bits, all chains alike."""
    uniform = np.random.default_rng(seed).random((num_chains, num_draws, num_sites))
    return (uniform < fraction).astype(np.uint8)


def without_levels(trace: Trace) -> Trace:
    """What `keep="stats"` leaves of a trace."""
    kept = {name: array for name, array in trace.arrays.items() if name != "levels"}
    return trace._replace(arrays=kept)
