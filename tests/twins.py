"""The exact test targets written a second time, in plain NumPy, for the oracle."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax.tree_util import Partial

import oracle
import steppe
from exact_targets import STEEPNESS, cubic_log_density, target_named

# Compiling takes most of the time of a test whose program runs once; the HLO is the same.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class Twin(NamedTuple):
    """A target in the oracle's words; domain, log-density and gradient are its first arguments."""

    domain: oracle.ScalarSites | oracle.OneHotSites
    log_density: Callable[[np.ndarray], float]
    gradient: Callable[[np.ndarray], np.ndarray]


def oracle_domain(domain: steppe.Domain) -> oracle.ScalarSites | oracle.OneHotSites:
    if isinstance(domain, steppe.Categorical):
        return oracle.OneHotSites(domain.num_levels)
    assert isinstance(domain, steppe.Ordinal)
    return oracle.ScalarSites(domain.levels, domain.num_sites)


def twin_of(target: steppe.Target) -> Twin:
    """The NumPy twin of a target made of `cubic_log_density`, from the same three arrays."""
    linear, quadratic, cubic = (np.asarray(leaf) for leaf in jax.tree.leaves(target))

    def log_density(position):
        x = position.ravel()
        return float(linear @ x + x @ quadratic @ x + (cubic @ x) ** 3)

    def gradient(position):
        x = position.ravel()
        slope = linear + (quadratic + quadratic.T) @ x + 3 * (cubic @ x) ** 2 * cubic
        return slope.reshape(position.shape)

    return Twin(oracle_domain(target.domain), log_density, gradient)


def both_steepnesses(domain: str) -> list[steppe.Target]:
    return [target_named(domain, steepness) for steepness in STEEPNESS]


def quadratic_target(domain: steppe.Domain, scale: float = 1.0, seed: int = 3) -> steppe.Target:
    """A quadratic log-density, as a `cubic_log_density` without its cubic part."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(domain.shape))
    linear = scale * rng.normal(size=size)
    quadratic = scale * rng.normal(size=(size, size)) / np.sqrt(size)
    return steppe.Target(Partial(cubic_log_density, linear, quadratic, np.zeros(size)), domain)
