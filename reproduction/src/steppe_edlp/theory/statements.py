"""Small targets, and the curves on which statements are compared with exact numbers."""

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


def curve(xs: Sequence[float], statement: Callable[[float], Bound]) -> Content:
    """A bound and what it bounds, along a parameter."""
    found = [statement(x) for x in xs]
    return {
        "x": np.asarray(xs, float),
        "bound": np.array([min(one.value, 1e300) for one in found]),
        "exact": np.array([np.nan if one.exact is None else one.exact for one in found]),
        "holds": [one.holds_here for one in found],
        "assumptions": {name: bool(met) for name, met in found[0].assumptions.items()},
    }


def dula_on_four_bits(xs: Sequence[float]) -> Content:
    """Bias of `dula` over `α`, as printed."""
    target = paper_bernoulli()
    return curve(xs, lambda x: paper.dula_bias(target, x))


def dula_on_a_hidden_unit(xs: Sequence[float]) -> Content:
    """The same where a gradient is not a difference; also the law that `α → 0` leads to."""
    target = hidden_bit()
    found = curve(xs, lambda x: paper.dula_bias(target, x))
    law = stationary_law(transition_matrix(samplers.dula(min(xs)), target))
    return {**found, "limit": float(law[1]), "target": float(target_law(target)[1])}


def proposition_5_4(xs: Sequence[float]) -> Content:
    """Bias of `edula` over `α` on one bit, as printed."""
    target = flat_bit()
    return curve(xs, lambda x: paper.proposition_5_4(target, x, 0.1, 0.1, center_box=PAPER_BOX))


def theorem_5_5(xs: Sequence[float]) -> Content:
    """Distance after infinitely many steps over `α` on one bit, as printed."""
    target = flat_bit()
    return curve(xs, lambda x: paper.theorem_5_5(target, x, 0.1, 0.1, float("inf"), center_box=PAPER_BOX))


def theorem_5_6(xs: Sequence[float]) -> Content:
    """Gap of `edmala` over `α_a` on one bit, as printed."""
    target = concave_bit()
    return curve(xs, lambda x: paper.theorem_5_6(target, 1.0, x, 10.0, center_box=WIDE_BOX))


def edula_bias(xs: Sequence[float]) -> Content:
    """Bias of `edula` over `α` on a ring, by the bound that is true of quadratic log-densities."""
    target = ring_of(4)
    return curve(xs, lambda x: theory.edula_bias_bound(target, x, 0.5, 0.1))


def glu_gap(xs: Sequence[float]) -> Content:
    """Gap of the Gibbs-like sampler with exact draws over `η` on the four bits."""
    target = paper_bernoulli()
    return curve(xs, lambda x: theory.glu_gap_bound(target, x))


def marginal(xs: Sequence[float]) -> Content:
    """Total variation between `π` and the positions of the joint law, over `η`."""
    target = paper_bernoulli()
    laws = [stationary_law(proximal_matrix(target, x)) for x in xs]
    return {
        "x": np.asarray(xs),
        "distance": np.array([total_variation(law, target_law(target)) for law in laws]),
    }


def effective_step(xs: Sequence[float]) -> Content:
    """Total variation between `edula` and `dula` at `α_eff`, over `η` on a quadratic target of two bits."""
    target, step_size, center_step = ring_of(2), 0.2, 0.1
    distances, steps = [], []
    for variance in xs:
        step = theory.effective_step_size(step_size, variance, center_step)
        law = samplers.edula(step_size, center_step, variance).log_law(target).positions()
        distances.append(total_variation(law, theory.quadratic_law(target, step.inverse)))
        steps.append(step.inverse)
    return {"x": np.asarray(xs), "distance": np.array(distances), "inverse": np.array(steps)}


def drift(ratios: Sequence[float]) -> Content:
    """Factor by which the squared center is said to shrink, over `α_a/η`: printed and true."""
    domain = paper_bernoulli()
    printed = [paper.drift_theorem(domain, ratio, 1.0) for ratio in ratios]
    true = [theory.drift_condition(domain.domain, ratio, 1.0) for ratio in ratios]
    published = paper.drift_theorem(domain, *PUBLISHED_CENTER)
    return {
        "x": np.asarray(ratios),
        "printed": np.array([one.value for one in printed]),
        "true": np.array([one.factor for one in true]),
        "published": published.value,
    }
