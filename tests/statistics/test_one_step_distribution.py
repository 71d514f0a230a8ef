"""Unadjusted recipes have no simple distribution to keep; one step of theirs has one that is known exactly.

False alarms: 18 p-values against 1e-7, that is 1.8e-6 in all. Seen: a total variation of 0.01 of the
position, a center mean off by 0.02 standard deviations, a center variance off by 2 %.
"""

import jax
import pytest
from one_step_distributions import one_step

import gates
import steppe
from exact_targets import target_named

RECIPES = {
    recipe.name: recipe
    for recipe in (
        steppe.dula(step_size=0.6),
        steppe.edula(step_size=0.6, center_step_size=0.4, coupling_variance=0.4),
        steppe.edula_glu(step_size=0.6, coupling_variance=0.4),
    )
}
# Not `edula_glu` on one-hot sites: a fresh center shakes all levels of a site, and no one-dimensional
# integral averages that out.
FAST = [("dula", "ordinal"), ("edula", "binary"), ("edula_glu", "ordinal")]
SLOW = [
    ("dula", "binary"),
    ("dula", "ragged"),
    ("edula", "ordinal"),
    ("edula", "ragged"),
    ("edula_glu", "binary"),
]


@pytest.mark.parametrize(
    ("name", "domain"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_one_unadjusted_step_has_the_distribution_of_the_formulas(name, domain):
    target, recipe = target_named(domain, "smooth"), RECIPES[name]
    expected = one_step(name, recipe.parameters, target)
    sampler = recipe.build(target, audit=False)
    p_values = gates.one_step_distribution(sampler, *expected, gates.NUM_CHAINS, jax.random.key(2))
    assert len(p_values) == (1 if expected.center_distribution is None else 3)
    assert min(p_values.values()) >= gates.FALSE_ALARM
