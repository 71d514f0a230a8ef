"""Where one unadjusted step leads from one state, exactly: the formulas of the oracle, enumerated."""

import itertools
from typing import NamedTuple

import numpy as np

import oracle
import steppe
from exact_targets import center_for
from twins import twin_of


class OneStep(NamedTuple):
    """A start (position, center) and the distributions of the next position and, if there is one, center."""

    start: tuple[np.ndarray, np.ndarray | None]
    distribution: np.ndarray
    center_distribution: tuple[np.ndarray, float] | None


def one_step(name: str, numbers: dict[str, float], target: steppe.Target) -> OneStep:
    """Distributions after one step of `dula`, `edula` or `edula_glu` from the middle of the domain."""
    twin = twin_of(target)
    position = np.asarray(target.domain.enumerate()[target.domain.num_states // 3], float)
    center = np.asarray(center_for(target.domain), float)
    α, η = numbers["step_size"], numbers.get("coupling_variance")

    def site_probs(center):
        log_probs = oracle.langevin_log_probs(twin.domain, position, twin.gradient, center, α, η)
        return [np.exp(site) for site in log_probs]

    if name == "dula":
        return OneStep((position, None), _product_distribution(site_probs(None)), None)
    if name == "edula":
        steps = numbers["center_step_size"], η
        mean = oracle.center_langevin_mean(twin.domain, position, center, *steps)
        return OneStep((position, center), _product_distribution(site_probs(center)), (mean, steps[0]))
    averaged = _averaged_over_fresh_centers(site_probs, position, η)
    return OneStep((position, center), _product_distribution(averaged), (position, η))


def _averaged_over_fresh_centers(site_probs, position, variance, num_nodes=60):
    """Probabilities of a site's levels when its center is `N(position, η)`, for one center per site."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    tables = [site_probs(position + np.sqrt(variance) * node) for node in nodes]
    return np.tensordot(weights / weights.sum(), np.array(tables), 1)


def _product_distribution(site_probs):
    """Probabilities of all positions, first site slowest."""
    return np.array([np.prod(levels) for levels in itertools.product(*site_probs)])
