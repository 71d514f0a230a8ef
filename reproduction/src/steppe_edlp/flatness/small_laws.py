"""Flat mass against E[U], where both can be enumerated: the roughness tilt beside tempering."""

from collections.abc import Callable, Sequence

import jax
import numpy as np

from steppe import samplers, targets
from steppe.diagnostics.exact import target_law
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.occupancy import Landscape, visit
from steppe_edlp.work import Content

STEP_SIZE = 0.4
STRENGTHS = (0.0, 0.5, 1.0, 2.0, 4.0)
MIXTURE_STRENGTHS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
MIXTURE_TEMPERATURES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)


def four_bits(seeds: Sequence[int], num_chains: int, num_warmup: int, num_draws: int) -> Content:
    """Occupancy of flat and sharp modes under the tilt, sampled and exact, with tempering at equal E[U].

    Parameters
    ----------
    seeds, num_chains, num_warmup, num_draws
        As in `occupancy.visit`.
    """
    target = paper_bernoulli()
    landscape = Landscape(target)
    shares, laws, tempered = [], [], []
    for strength in STRENGTHS:
        recipe = samplers.roughness_tilted(strength, STEP_SIZE)
        shares.append(
            visit(
                recipe, target, seeds, num_chains=num_chains, num_warmup=num_warmup, num_draws=num_draws
            ).shares
        )
        laws.append(recipe.log_law(target).positions())
        tempered.append(tempered_at(landscape.heights, laws[-1] @ landscape.heights))
    return {
        "shares": np.asarray(shares),
        "laws": np.asarray(laws),
        "tempered": np.asarray(tempered),
    }


def tempered_at(heights: np.ndarray, wanted: float) -> np.ndarray:
    """Law `exp(β U)` with a given `E[U]`; it rises with `β`, so `β` is found by bisection."""
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if tempered(heights, middle) @ heights < wanted else (low, middle)
    return tempered(heights, (low + high) / 2)


def tempered(heights: np.ndarray, beta: float) -> np.ndarray:
    """Law `exp(β U)`."""
    logs = beta * heights
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def mixture() -> Content:
    """Mass of the one flat component among six sharp ones in ten bits, against `E[U]`; all exact."""
    planted = targets.planted_mixture()
    target = planted.target
    states = target.domain.enumerate()
    heights = np.asarray(jax.vmap(target.log_density)(states), float)
    responsibilities = targets.mixture_responsibilities(planted.weights, planted.site_probabilities, states)
    share = np.asarray(responsibilities[:, planted.flat], float)

    def measured(law: Callable[[float], np.ndarray], numbers: Sequence[float]) -> np.ndarray:
        laws = [law(number) for number in numbers]
        return np.array([(one @ share, one @ heights) for one in laws])

    def tilted(strength: float) -> np.ndarray:
        return samplers.roughness_tilted(strength, differences="exact").log_law(target).positions()

    return {
        "tilted": measured(tilted, MIXTURE_STRENGTHS),
        "tempered": measured(lambda beta: tempered(heights, beta), MIXTURE_TEMPERATURES),
        "target": float(target_law(target) @ share),
    }
