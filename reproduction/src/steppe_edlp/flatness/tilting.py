"""Flat mass against E[U], where both can be enumerated: the roughness tilt beside tempering."""

from collections.abc import Sequence
from types import SimpleNamespace

import jax
import numpy as np

from steppe import samplers, targets
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.occupancy import SmallTarget, visit
from steppe_edlp.work import Content

# Chains of a seed, and steps dropped.
NUM_CHAINS, NUM_WARMUP = 20, 500


def tilt_four_bits(seeds: Sequence[int], size: SimpleNamespace) -> Content:
    """Time in every state under the tilt, sampled and exact, with tempering at equal `E[U]`.

    Parameters
    ----------
    seeds
        Seeds of the chains.
    size
        Strengths, step size and draws.
    """
    target = paper_bernoulli()
    known = SmallTarget(target)
    run = {"num_chains": NUM_CHAINS, "num_warmup": NUM_WARMUP, "num_draws": size.num_draws}
    shares, exact = [], []
    for strength in size.strengths:
        recipe = samplers.roughness_tilted(strength=strength, step_size=size.tilt_step_size)
        shares.append(visit(recipe, target, seeds, **run).shares)
        exact.append(recipe.log_law(target).positions())
    tempered = [temper_to(known.log_density, one @ known.log_density) for one in exact]
    return {"shares": np.asarray(shares), "laws": np.asarray(exact), "tempered": np.asarray(tempered)}


def temper_to(log_density: np.ndarray, wanted: float) -> np.ndarray:
    """The distribution `exp(β U)` with a given `E[U]`; it rises with `β`, so `β` is found by bisection."""
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        is_low = temper(log_density, middle) @ log_density < wanted
        low, high = (middle, high) if is_low else (low, middle)
    return temper(log_density, (low + high) / 2)


def temper(log_density: np.ndarray, beta: float) -> np.ndarray:
    """The distribution `exp(β U)`."""
    logs = beta * log_density
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def tilt_mixture(strengths: Sequence[float], temperatures: Sequence[float]) -> Content:
    """Mass of the one flat component among six sharp ones in ten bits, against `E[U]`; all exact."""
    planted = targets.planted_mixture()
    target = planted.target
    states = target.domain.enumerate()
    log_density = np.asarray(jax.vmap(target.log_density)(states), float)
    responsibilities = targets.mixture_responsibilities(planted.weights, planted.site_probabilities, states)
    fraction = np.asarray(responsibilities[:, planted.flat], float)

    def tilt(strength: float) -> np.ndarray:
        return samplers.roughness_tilted(strength=strength, differences="exact").log_law(target).positions()

    found = {
        "tilted": [tilt(strength) for strength in strengths],
        "tempered": [temper(log_density, beta) for beta in temperatures],
    }
    return {key: np.array([(p @ fraction, p @ log_density) for p in many]) for key, many in found.items()}
