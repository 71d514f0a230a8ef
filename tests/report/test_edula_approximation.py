"""What the explore section says about EDULA's distribution: how far its formula is from the exact one."""

import pytest

import steppe
from steppe.diagnostics.exact import stationary_distribution, total_variation, transition_matrix
from steppe.report.page.explore import EDULA_CHECKED, EDULA_ERROR
from steppe.targets.bernoulli import paper_bernoulli
from steppe.theory import effective_step_size


@pytest.mark.slow
@pytest.mark.parametrize(("step_size", "center_step_size", "coupling_variance"), EDULA_CHECKED)
def test_the_distribution_shown_for_edula_is_as_close_as_the_page_says(
    step_size, center_step_size, coupling_variance
):
    target = paper_bernoulli()
    exact = (
        steppe.edula(
            step_size=step_size, center_step_size=center_step_size, coupling_variance=coupling_variance
        )
        .stationary(target)
        .probabilities()
    )
    effective = effective_step_size(step_size, coupling_variance, center_step_size)
    shown = stationary_distribution(transition_matrix(steppe.dula(step_size=effective.value), target))
    assert total_variation(exact, shown) < EDULA_ERROR
