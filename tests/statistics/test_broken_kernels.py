"""Every gate rejects the kernels it is there for, at the size at which correct kernels pass it.

A broken kernel is rejected at 1e-7 or less; a correct one would be by accident once in ten million.
"""

import jax
import numpy as np
import pytest
from one_step_distributions import one_step

import gates
from broken import BROKEN, CACHE, CORRECT, FAULTLESS
from exact_targets import target_named

NUM_STEPS = gates.NUM_STEPS[:2]
KEY = jax.random.key(4)
STATISTICS = {
    "position distribution",
    "residual distribution",
    "residual variance",
    "residual and own coordinate",
    "residual and other coordinates",
    "jump symmetry",
    "cache",
    "one-step position distribution",
    "one-step center mean",
    "one-step center variance",
}


def runs(recipe, target):
    """Outcomes of a recipe from stationarity, as a generator: nothing is computed that is not asked for."""
    variance = recipe.parameters.get("coupling_variance")
    sampler = recipe.build(target)
    return gates.start_at_stationarity(sampler, target, variance, NUM_STEPS, gates.NUM_CHAINS, KEY)


def is_rejected(broken, target):
    if broken.gate.startswith("one-step"):
        expected = one_step("edula", broken.recipe.parameters, target)
        p_values = gates.one_step_distribution(broken.recipe.build(target), *expected, gates.NUM_CHAINS, KEY)
        return p_values[broken.gate] < gates.FALSE_ALARM
    if broken.gate == CACHE:
        sampler = broken.recipe.build(target)
        errors = (gates.same_as_fresh_cache(sampler, run.states) for run in runs(broken.recipe, target))
        return any(error > gates.CACHE_TOLERANCE for error in errors)
    return any(run.p_values[broken.gate] < gates.FALSE_ALARM for run in runs(broken.recipe, target))


def cases():
    """All faults; in the fast tests the first of every composition and gate."""
    met = set()
    for name, broken in BROKEN.items():
        kind = (jax.tree.structure(broken.recipe.blocks), broken.gate)
        yield pytest.param(name, marks=[pytest.mark.slow] * (kind in met))
        met.add(kind)


@pytest.mark.parametrize("name", list(cases()))
def test_gate_rejects_broken_kernel(name):
    assert is_rejected(BROKEN[name], target_named(BROKEN[name].domain, "smooth"))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTLESS)
def test_faulty_pieces_without_a_fault_take_the_steps_of_the_real_recipe(name):
    target = target_named("binary", "smooth")
    ends = [next(runs(recipe, target)).states for recipe in (FAULTLESS[name], CORRECT[name])]
    # The two programs round differently; one decision in 10⁵ may fall on the other side.
    differs = np.any(np.asarray(ends[0].position != ends[1].position), axis=1)
    assert differs.mean() <= 1e-5


def test_every_gate_has_a_broken_kernel_it_must_reject():
    assert {broken.gate for broken in BROKEN.values()} == STATISTICS
