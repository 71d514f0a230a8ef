"""Every adjusted recipe leaves its distribution invariant, exactly, on every domain."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from jax.tree_util import Partial

import steppe
from exact_targets import DOMAIN_CASES, DOMAINS, STEEPNESS, center_for, polynomial_target, target_named
from steppe.diagnostics.exact import stationary_distribution, target_distribution, transition_matrix
from steppe.kernel.acceptance import Unadjusted
from steppe.kernel.blocks import site_gibbs
from steppe.kernel.blocks.metropolis import ProposalBlock

pytestmark = pytest.mark.usefixtures("float64")

TOLERANCE = 1e-12

REVERSIBLE = {
    "dmala": steppe.dmala(step_size=0.6),
    "dmala, small step": steppe.dmala(step_size=0.05),
    "dmala, large step": steppe.dmala(step_size=20.0),
    "dlmc": steppe.dlmc(step_size=0.6),
    "dlmc, long": steppe.dlmc(step_size=20.0),
    "pas-1": steppe.pas(max_flips=1),
    "pas-3": steppe.pas(max_flips=3),
    "pas-3, poisson": steppe.pas(max_flips=3, path_length="poisson", step_size=1.7),
    "gwg-1": steppe.gwg(),
    "gwg-2": steppe.gwg(num_flips=2),
    "gwg-3": steppe.gwg(num_flips=3),
    "dmala, barker": steppe.dmala(step_size=0.6, balancing="barker"),
    "dmala, exact": steppe.dmala(step_size=0.6, differences="exact"),
    "dmala, auto": steppe.dmala(step_size=0.6, differences="auto"),
    "gwg-2, min": steppe.gwg(num_flips=2, balancing="min"),
    "gwg-1, exact": steppe.gwg(differences="exact", balancing="barker"),
    "pas-3, max, exact": steppe.pas(max_flips=3, balancing="max", differences="exact"),
    "gibbs-1": steppe.gibbs(),
    "gibbs-2": steppe.gibbs(num_updates=2, scan="random"),
    "block gibbs-1": steppe.block_gibbs(block_size=1),
    "block gibbs-2": steppe.block_gibbs(block_size=2),
    "block gibbs-3": steppe.block_gibbs(block_size=3),
    "hamming ball-3-1": steppe.hamming_ball(block_size=3, radius=1),
    "hamming ball-3-2": steppe.hamming_ball(block_size=3, radius=2),
    "hamming ball-2-1": steppe.hamming_ball(block_size=2, radius=1),
}

COUPLED = {
    "edmala_glu": steppe.edmala_glu(step_size=0.6, coupling_variance=0.5),
    "edmala_glu, tight": steppe.edmala_glu(step_size=0.3, coupling_variance=0.05),
    "edmala_glu, exact coupling": steppe.edmala_glu(
        step_size=0.6, coupling_variance=0.5, coupling_form="exact"
    ),
    "edmala_ou": steppe.edmala_ou(step_size=0.6, coupling_variance=0.5, persistence=0.7),
}


def assert_reversible(matrix: np.ndarray, distribution: np.ndarray) -> None:
    flow = distribution[:, None] * matrix
    assert np.abs(matrix.sum(axis=1) - 1).max() <= TOLERANCE
    assert matrix.min() >= -TOLERANCE
    assert np.abs(distribution @ matrix - distribution).max() <= TOLERANCE
    assert np.abs(flow - flow.T).max() <= TOLERANCE


@pytest.mark.parametrize("steepness", STEEPNESS)
@pytest.mark.parametrize("domain", DOMAIN_CASES)
@pytest.mark.parametrize("name", REVERSIBLE)
def test_uncoupled_recipe_satisfies_detailed_balance(name, domain, steepness):
    target = target_named(domain, steepness)
    assert_reversible(transition_matrix(REVERSIBLE[name], target), target_distribution(target))


@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_cycle_of_step_sizes_leaves_the_target_invariant_without_being_reversible(domain):
    target = target_named(domain, "smooth")
    recipe = steppe.dmala_cyclical(step_size=2.0 * target.domain.squared_unit, cycle_length=3)
    distribution, matrix = target_distribution(target), transition_matrix(recipe, target)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= TOLERANCE
    assert np.abs(distribution @ matrix - distribution).max() <= TOLERANCE
    flow = distribution[:, None] * matrix
    assert np.abs(flow - flow.T).max() > TOLERANCE


@pytest.mark.parametrize("steepness", STEEPNESS)
@pytest.mark.parametrize("domain", ["binary", "spin"])
def test_swaps_are_reversible_and_keep_the_number_of_ones(domain, steepness):
    target = target_named(domain, steepness)
    block: Any = steppe.gibbs(num_swaps=1).build(target).recipe.blocks[0]
    matrix = np.asarray(site_gibbs.enumerate_swaps(block, steppe.gibbs().build(target).density))
    assert_reversible(matrix, target_distribution(target))
    ones = np.asarray(target.domain.to_levels(target.domain.enumerate())).sum(axis=1)
    assert matrix[ones[:, None] != ones].max() == 0
    recipe = steppe.gibbs(num_updates=2, num_swaps=2)
    both, distribution = transition_matrix(recipe, target), target_distribution(target)
    assert np.abs(distribution @ both - distribution).max() <= TOLERANCE


@pytest.mark.parametrize("num_updates", [2, 3])
@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_systematic_scan_leaves_the_target_invariant_without_being_reversible(domain, num_updates):
    target = target_named(domain, "smooth")
    distribution = target_distribution(target)
    matrix = transition_matrix(steppe.gibbs(num_updates=num_updates), target)
    assert np.abs(matrix.sum(axis=1) - 1).max() <= TOLERANCE
    assert np.abs(distribution @ matrix - distribution).max() <= TOLERANCE
    flow = distribution[:, None] * matrix
    assert np.abs(flow - flow.T).max() > TOLERANCE


@pytest.mark.parametrize("step_size", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_flow_accepts_everything_where_sites_are_independent(domain, step_size):
    shape = DOMAINS[domain].shape
    weights = np.random.default_rng(0).normal(size=shape)
    target = steppe.Target(Partial(linear_log_density, weights), DOMAINS[domain])
    recipe = steppe.dlmc(step_size=step_size)
    block: Any = recipe.blocks[0]
    forced = dataclasses.replace(recipe, blocks=(ProposalBlock(block.proposal, Unadjusted()),))
    distribution = target_distribution(target)
    assert_reversible(transition_matrix(forced, target), distribution)


def linear_log_density(weights, position):
    return (weights * position).sum()


def test_single_path_is_gibbs_with_gradients():
    target = target_named("ordinal", "smooth")
    matrices = [
        transition_matrix(recipe, target) for recipe in (steppe.pas(max_flips=1), steppe.gwg(num_flips=1))
    ]
    assert np.abs(matrices[0] - matrices[1]).max() <= TOLERANCE


@pytest.mark.parametrize("steepness", STEEPNESS)
@pytest.mark.parametrize("domain", DOMAIN_CASES)
@pytest.mark.parametrize("name", COUPLED)
def test_position_block_satisfies_detailed_balance_given_the_center(name, domain, steepness):
    target, recipe = target_named(domain, steepness), COUPLED[name]
    center = center_for(target.domain)
    squared = np.asarray((target.domain.enumerate() - center) ** 2).reshape(target.domain.num_states, -1)
    η: Any = recipe.parameters["coupling_variance"]
    stationary = np.log(target_distribution(target)) - squared.sum(1) / (2 * η)
    distribution = np.exp(stationary - stationary.max())
    assert_reversible(transition_matrix(recipe, target, center=center), distribution / distribution.sum())


@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_unadjusted_langevin_is_biased_and_its_bias_is_enumerated(domain):
    target = target_named(domain, "smooth")
    matrix = transition_matrix(steppe.dula(step_size=0.6), target)
    distribution = stationary_distribution(matrix)
    assert np.abs(distribution @ matrix - distribution).max() <= TOLERANCE
    assert np.abs(distribution - target_distribution(target)).max() > 1e-4


def test_a_recipe_with_default_hyper_parameters_has_the_matrix_of_its_domain():
    target = polynomial_target(steppe.Spin(2), 1.0)
    default, given = steppe.dmala(), steppe.dmala(step_size=0.2 * target.domain.squared_unit)
    np.testing.assert_allclose(
        transition_matrix(default, target), transition_matrix(given, target), rtol=0, atol=1e-7
    )
