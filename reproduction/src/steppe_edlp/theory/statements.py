"""Small targets, and the curves on which statements are compared with exact numbers."""

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from steppe import samplers, theory
from steppe.diagnostics.exact import (
    proximal_matrix,
    stationary_law,
    target_law,
    total_variation,
    transition_matrix,
)
from steppe.domain import Binary
from steppe.target import Target
from steppe.targets.bernoulli import paper_bernoulli
from steppe.theory import Bound
from steppe_edlp.theory import paper
from steppe_edlp.work import Content

PAPER_BOX, WIDE_BOX = (-0.5, 1.5), (-1.0, 2.0)
# Slope of the center and variance of the paper's networks (COMPAS): where its drift theorem is applied.
PUBLISHED_CENTER = (0.01, 4.0)


def parabola(height: float, position: Array) -> Array:
    """One bit with a constant second derivative."""
    return jnp.sum(height * position**2 / 2 - height * position / 2)


def hidden_unit(position: Array) -> Array:
    """One bit seen by one hidden unit of a Boltzmann machine: neither quadratic nor multilinear."""
    return jnp.sum(jnp.logaddexp(0.0, 6 * position - 5))


def ring(field: Array, position: Array) -> Array:
    """Bits on a ring, each with its field and its two neighbours."""
    return field @ position + jnp.sum(position * jnp.roll(position, 1))


def flat_bit() -> Target:
    """One bit with `U = 0`."""
    return Target(Partial(parabola, 0.0), Binary(1))


def concave_bit() -> Target:
    """One bit with a concave extension: the only kind Theorem 5.6 is about."""
    return Target(Partial(parabola, -1.0), Binary(1))


def hidden_bit() -> Target:
    """The bit of `hidden_unit`."""
    return Target(hidden_unit, Binary(1))


def ring_of(num_bits: int) -> Target:
    """A quadratic target of a few bits."""
    field = np.random.default_rng(0).normal(size=num_bits).astype(np.float32)
    return Target(Partial(ring, field), Binary(num_bits))


def follow(xs: Sequence[float], statement: Callable[[float], Bound]) -> Content:
    """A bound and what it bounds, along a parameter."""
    found = [statement(x) for x in xs]
    return {
        "x": np.asarray(xs, float),
        "bound": np.array([min(one.value, 1e300) for one in found]),
        "exact": np.array([np.nan if one.exact is None else one.exact for one in found]),
        "holds": [one.holds_here for one in found],
        "assumptions": {name: bool(met) for name, met in found[0].assumptions.items()},
    }


# By statement: bound and exact number at a point of its curve.
BOUNDS: dict[str, Callable[[float], Bound]] = {
    "dula-four-bits": lambda α: paper.dula_bias(paper_bernoulli(), α),
    "dula-hidden-unit": lambda α: paper.dula_bias(hidden_bit(), α),
    "proposition-5-4": lambda α: paper.proposition_5_4(flat_bit(), α, 0.1, 0.1, center_box=PAPER_BOX),
    "theorem-5-5": lambda α: paper.theorem_5_5(flat_bit(), α, 0.1, 0.1, math.inf, center_box=PAPER_BOX),
    "theorem-5-6": lambda α_a: paper.theorem_5_6(concave_bit(), 1.0, α_a, 10.0, center_box=WIDE_BOX),
    "edula-bias": lambda α: theory.edula_bias_bound(ring_of(4), α, 0.5, 0.1),
    "glu-gap": lambda η: theory.glu_gap_bound(paper_bernoulli(), η),
}


def find_small_step_limit(step_size: float) -> Content:
    """Probability of the bit of `hidden_unit` under `dula` at a small step, and under `π`."""
    target = hidden_bit()
    exact = stationary_law(transition_matrix(samplers.dula(step_size=step_size), target))
    return {"limit": float(exact[1]), "target": float(target_law(target)[1])}


def compare_marginal(xs: Sequence[float]) -> Content:
    """Total variation between `π` and the positions of the joint distribution, over `η`."""
    target = paper_bernoulli()
    found = [stationary_law(proximal_matrix(target, x)) for x in xs]
    return {
        "x": np.asarray(xs),
        "distance": np.array([total_variation(p, target_law(target)) for p in found]),
    }


def compare_effective_step(xs: Sequence[float]) -> Content:
    """Total variation between `edula` and `dula` at `α_eff`, over `η` on a quadratic target of two bits."""
    target, step_size, center_step = ring_of(2), 0.2, 0.1
    distances = []
    for variance in xs:
        step = theory.effective_step_size(step_size, variance, center_step)
        recipe = samplers.edula(step_size=step_size, center_step_size=center_step, coupling_variance=variance)
        exact = recipe.log_law(target).positions()
        distances.append(total_variation(exact, theory.quadratic_law(target, step.inverse)))
    return {"x": np.asarray(xs), "distance": np.array(distances)}


def compare_drift(ratios: Sequence[float]) -> Content:
    """Factor by which the squared center is said to shrink, over `α_a/η`: printed and true."""
    target = paper_bernoulli()
    return {
        "x": np.asarray(ratios),
        "printed": np.array([paper.drift_theorem(target, ratio, 1.0).value for ratio in ratios]),
        "true": np.array([theory.drift_condition(target.domain, ratio, 1.0).factor for ratio in ratios]),
        "published": paper.drift_theorem(target, *PUBLISHED_CENTER).value,
    }
