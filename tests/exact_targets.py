"""Small targets on every domain, smooth and steep, on which exact tests are made."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import steppe
from tiers import cases

DOMAINS = {
    "binary": steppe.Binary(4),
    "spin": steppe.Spin(4),
    "ordinal": steppe.Ordinal(3, [-1.0, 0.1, 0.8]),
    "categorical": steppe.Categorical(3, 3),
    "ragged": steppe.Categorical(3, [2, 3, 4]),
}
# Spins share their code with bits, one-hot sites of equal size with ragged ones: they run in the full suite.
DOMAIN_CASES = cases(DOMAINS, slow=("spin", "categorical"))
STEEPNESS = {"smooth": 1.0, "steep": 12.0}


def polynomial_target(domain: steppe.Domain, scale: float, seed: int = 5) -> steppe.Target:
    """A cubic log-density: neither quadratic nor multilinear, so that no identity helps by accident."""
    rng = np.random.default_rng(seed)
    size = sum(map(np.size, jax.tree.leaves(domain.unflatten(np.zeros(domain.shape)))))
    linear = scale * rng.normal(size=size) / np.sqrt(size)
    quadratic = scale * rng.normal(size=(size, size)) / size
    cubic = np.cbrt(scale) * rng.normal(size=size) / np.sqrt(size)
    return steppe.Target(Partial(cubic_log_density, linear, quadratic, cubic), domain)


Cubic = tuple[Any, Any, Any]  # its three arrays


def arrays_of(target: Any) -> Cubic:
    """The three arrays of a target made by `polynomial_target`."""
    return target._functions.log_density.args


def cubic_log_density(linear, quadratic, cubic, position):
    leaves = [leaf.ravel() for leaf in jax.tree.leaves(position)]
    x = leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves)
    return linear @ x + x @ quadratic @ x + (cubic @ x) ** 3


def target_named(domain_name: str, steepness: str) -> steppe.Target:
    return polynomial_target(DOMAINS[domain_name], STEEPNESS[steepness])


def center_for(domain: steppe.Domain, seed: int = 0) -> jnp.ndarray:
    """A center off every position."""
    mask = 1.0 if domain.coordinate_mask is None else domain.coordinate_mask
    return jnp.asarray(np.random.default_rng(seed).normal(0.4, 0.7, domain.shape) * mask)
