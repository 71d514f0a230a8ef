"""The paper's statements and true ones, each along a curve of points at which the exact number is known."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from steppe import samplers, theory
from steppe.diagnostics.exact import (
    proximal_matrix,
    stationary_distribution,
    target_distribution,
    total_variation,
    transition_matrix,
)
from steppe.domain import Binary
from steppe.target import Target
from steppe.targets.bernoulli import paper_bernoulli
from steppe.theory import Bound
from steppe_edlp.experiment import Experiment
from steppe_edlp.request import Found, Request, Row
from steppe_edlp.theory import ergodicity, paper
from steppe_edlp.theory.confined import confined_chain
from steppe_edlp.work import Content, Work

# Every point of these integrates over centers in four dimensions.
SLOW = {"glu-gap", "marginal"}
CLOSED_FORM_POINTS = 60
# Steps after which the variance of a mean is compared with its limit, and how near it must be.
NUM_LIMIT_STEPS, NEAR = 4000, 0.02
# What float32 matrices and grids of centers leave of a distance that is zero.
ZERO = 1e-3
PAPER_BOX, WIDE_BOX = (-0.5, 1.5), (-1.0, 2.0)
# Slope of the center and variance of the paper's networks (COMPAS): where its drift theorem is applied.
PUBLISHED_CENTER = (0.01, 4.0)
# Coupling variance at which statements on ergodicity are looked at over α_a/η.
VARIANCE = 0.5


def parabola(height: float, position: Array) -> Array:
    """One bit with a constant second derivative."""
    return jnp.sum(height * position**2 / 2 - height * position / 2)


def hidden_unit(position: Array) -> Array:
    """One bit seen by one hidden unit of a Boltzmann machine: neither quadratic nor multilinear."""
    return jnp.sum(jnp.logaddexp(0.0, 6 * position - 5))


def ring(field: Array, position: Array) -> Array:
    """Bits on a ring, each with its field and its two neighbours."""
    return field @ position + jnp.sum(position * jnp.roll(position, 1))


FLAT_BIT = Target(Partial(parabola, 0.0), Binary(1))
CONCAVE_BIT = Target(Partial(parabola, -1.0), Binary(1))  # the only kind Theorem 5.6 is about
HIDDEN_BIT = Target(hidden_unit, Binary(1))


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
    "dula-hidden-unit": lambda α: paper.dula_bias(HIDDEN_BIT, α),
    "proposition-5-4": lambda α: paper.proposition_5_4(FLAT_BIT, α, 0.1, 0.1, center_box=PAPER_BOX),
    "theorem-5-5": lambda α: paper.theorem_5_5(FLAT_BIT, α, 0.1, 0.1, math.inf, center_box=PAPER_BOX),
    "theorem-5-6": lambda α_a: paper.theorem_5_6(CONCAVE_BIT, 1.0, α_a, 10.0, center_box=WIDE_BOX),
    "edula-bias": lambda α: theory.edula_bias_bound(ring_of(4), α, 0.5, 0.1),
    "glu-gap": lambda η: theory.glu_gap_bound(paper_bernoulli(), η),
    "minorization": lambda x: ergodicity.minorization_theorem(FLAT_BIT, 0.5, x * VARIANCE, VARIANCE),
    "harris": lambda x: ergodicity.check_harris(FLAT_BIT, 0.5, x * VARIANCE, VARIANCE),
    "geometric-rate": lambda x: ergodicity.geometric_rate(FLAT_BIT, 0.5, x * VARIANCE, VARIANCE),
    "edmala-drift": lambda x: ergodicity.edmala_drift(FLAT_BIT, 0.5, x * VARIANCE, VARIANCE),
    "edmala-minorization": lambda α_a: ergodicity.edmala_minorization(
        CONCAVE_BIT, 1.0, α_a, 10.0, center_box=WIDE_BOX
    ),
}


def find_small_step_limit(step_size: float) -> Content:
    """Probability of the bit of `hidden_unit` under `dula` at a small step, and under `π`."""
    target = HIDDEN_BIT
    exact = stationary_distribution(transition_matrix(samplers.dula(step_size=step_size), target))
    return {"limit": float(exact[1]), "target": float(target_distribution(target)[1])}


def compare_marginal(xs: Sequence[float]) -> Content:
    """Total variation between `π` and the positions of the joint distribution, over `η`."""
    target = paper_bernoulli()
    found = [stationary_distribution(proximal_matrix(target, x)) for x in xs]
    return {
        "x": np.asarray(xs),
        "distance": np.array([total_variation(p, target_distribution(target)) for p in found]),
    }


def compare_effective_step(xs: Sequence[float]) -> Content:
    """Total variation between `edula` and `dula` at `α_eff`, over `η` on a quadratic target of two bits."""
    target, step_size, center_step = ring_of(2), 0.2, 0.1
    distances = []
    for variance in xs:
        step = theory.effective_step_size(step_size, variance, center_step)
        recipe = samplers.edula(step_size=step_size, center_step_size=center_step, coupling_variance=variance)
        exact = recipe.stationary(target).probabilities()
        distances.append(total_variation(exact, theory.quadratic_distribution(target, step.inverse)))
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


def compare_limit_theorems() -> Content:
    """Variances of the two limit theorems: free centers beside batch means, confined ones over lengths."""
    free = ergodicity.compare_limit_theorem(HIDDEN_BIT, 0.3, 0.2, VARIANCE)
    chain = confined_chain(HIDDEN_BIT, 0.3, 0.2, VARIANCE, PAPER_BOX, is_adjusted=False)
    positions = np.repeat([0.0, 1.0], len(chain.matrix) // 2)
    limit = ergodicity.find_limit_variance(chain.matrix, positions)
    finite = ergodicity.find_mean_variance(chain.matrix, positions, NUM_LIMIT_STEPS)
    return {**free._asdict(), "limit": limit, "finite": finite}


COMPARISONS = {
    "marginal": compare_marginal,
    "effective-step": compare_effective_step,
    "drift": compare_drift,
}


def run(experiment: Experiment, request: Request, work: Work) -> Found:
    """Carry out the experiment."""
    size = experiment.size(request)
    grids = {key: _make_grid(key, ends, size) for key, ends in size.grids.items()}
    bounds = {key: partial(follow, grids[key], bound) for key, bound in BOUNDS.items()}
    others = {key: partial(compare, grids[key]) for key, compare in COMPARISONS.items()}
    vanishing = partial(find_small_step_limit, min(grids["dula-hidden-unit"]))
    found = work.all({**others, **bounds, "vanishing": vanishing, "limit": compare_limit_theorems})
    drift = found["drift"]
    return Found(
        rows={"bounds": [_describe(words, found[key]) for key, words in size.statements.items()]},
        facts={
            **{key: _summarize([found[key]]) for key in bounds},
            **{key: _describe_distances(found[key]) for key in ("marginal", "effective-step")},
            "dula": _summarize([found[key] for key in ("dula-four-bits", "dula-hidden-unit")]),
            "vanishing": _describe_limit(found["vanishing"]),
            "limit": _describe_limit_theorems(found["limit"]),
            "drift": {
                "published": drift["published"],
                "is_contraction": drift["published"] < 1,
                "largest": drift["true"].max(),
            },
        },
        arrays={
            **{key: np.stack([found[key][name] for name in ("x", "bound", "exact")]) for key in bounds},
            "drift": np.stack([drift[name] for name in ("x", "printed", "true")]),
        },
    )


def _make_grid(key: str, ends: Sequence[float], size: Any) -> list[float]:
    num_points = size.num_slow_points if key in SLOW else size.num_points
    num_points = CLOSED_FORM_POINTS if key == "drift" else num_points
    return [round(float(x), 5) for x in np.geomspace(ends[0], ends[1], num_points)]


def _describe(words: Mapping[str, str], one: Content) -> Row:
    place = _find_most_telling(one, words["claim"])
    unmet = [name for name, met in one["assumptions"].items() if not met]
    return {
        **words,
        "at": f"{words['at']} = {one['x'][place]:g}",
        "bound": float(one["bound"][place]),
        "exact": float(one["exact"][place]),
        "true": sum(held is True for held in one["holds"]),
        "points": len(one["holds"]),
        "assumptions": ", ".join(unmet) or "all met",
    }


def _find_most_telling(one: Content, relation: str) -> int:
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(one["exact"] / one["bound"])
    return int(np.nanargmax(excess if relation.endswith("≤") else -excess))


def _summarize(curves: Sequence[Content]) -> dict[str, Any]:
    """Whether a statement is true at every point where that is known, with the first where it is not."""
    decided = [held for one in curves for held in one["holds"] if held is not None]
    worst = min(curves, key=lambda one: np.mean([held is True for held in one["holds"]]))
    place = next((number for number, held in enumerate(worst["holds"]) if held is False), 0)
    x, bound, exact = (worst[name][place] for name in ("x", "bound", "exact"))
    counted = f"True at {sum(decided)} of {len(decided)} points."
    return {
        "holds": all(decided),
        "fraction": float(np.mean(decided)),
        "counted": counted,
        "found": f"{counted} At {x:g} it claims {bound:.3g}, and the exact number is {exact:.3g}.",
    }


def _describe_distances(one: Content) -> dict[str, Any]:
    largest = float(one["distance"].max())
    return {"largest": largest, "is_zero": largest < ZERO, "first": one["x"].min(), "last": one["x"].max()}


def _describe_limit(one: Content) -> dict[str, Any]:
    difference = one["limit"] - one["target"]
    return {**one, "difference": difference, "is_zero": abs(difference) < ZERO}


def _describe_limit_theorems(one: Content) -> dict[str, Any]:
    ratio = one["finite"] / one["limit"]
    is_met = one["low"] <= one["exact"] <= one["high"]
    return {**one, "ratio": ratio, "holds": is_met and abs(ratio - 1) < NEAR}
