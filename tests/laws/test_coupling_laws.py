"""Identities between samplers that differ only in how the center is tied to the position."""

import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import (
    are_identical,
    chain_keys,
    quick_jit,
    run_chains,
    starts,
    target_on,
    transition_matrix,
)
from exact_targets import center_for, target_named
from steppe.kernel.types import ChainState

LOOSE = 1e30  # a coupling variance at which the pull is lost in rounding, in float32 and float64
STEP = 2.0


def run(recipe, target, seed=1):
    sampler = recipe.build(target, audit=False)
    return run_chains(sampler, chain_keys(seed), starts(target.domain))


def assert_same(first, second):
    assert are_identical(first, second)


def assert_close(first, second):
    """The same sums of about 200 terms of order one, which other programs may add in another order."""
    np.testing.assert_allclose(first, second, rtol=0, atol=100 * float(np.finfo(np.float32).eps))


LOOSE_PAIRS = {
    "edula is dula": (
        steppe.edula(step_size=STEP, center_step_size=0.1, coupling_variance=LOOSE),
        steppe.dula(step_size=STEP),
    ),
    "edmala is dmala": (
        steppe.edmala(step_size=STEP, center_step_size=0.1, coupling_variance=LOOSE),
        steppe.dmala(step_size=STEP),
    ),
    "edula_glu is dula": (
        steppe.edula_glu(step_size=STEP, coupling_variance=LOOSE),
        steppe.dula(step_size=STEP),
    ),
    "edmala_glu is dmala": (
        steppe.edmala_glu(step_size=STEP, coupling_variance=LOOSE),
        steppe.dmala(step_size=STEP),
    ),
    "edmala_ou is dmala": (
        steppe.edmala_ou(step_size=STEP, coupling_variance=LOOSE, persistence=0.7),
        steppe.dmala(step_size=STEP),
    ),
    "robust_ensemble of one is dmala": (
        steppe.robust_ensemble(replicas=1, coupling_variance=LOOSE, step_size=STEP),
        steppe.dmala(step_size=STEP),
    ),
}


LOOSE_CASES = [(pair, "ragged") for pair in LOOSE_PAIRS] + [("edmala is dmala", "spin")]


@pytest.mark.parametrize(("pair", "domain"), LOOSE_CASES)
def test_loose_coupling_is_no_coupling(pair, domain):
    coupled, plain = (run(recipe, target_on(domain)) for recipe in LOOSE_PAIRS[pair])
    shape = plain[1].position.shape
    assert_same(coupled[1].position.reshape(shape), plain[1].position)
    assert_close(coupled[1].log_density.reshape(shape[:2]), plain[1].log_density)
    assert_same(coupled[2].is_accepted, plain[2].is_accepted)
    assert np.sum(plain[2].num_flips) > 50


def test_refresh_without_persistence_is_the_gibbs_like_update():
    target = target_on("ragged")
    assert_same(
        run(steppe.edmala_ou(step_size=STEP, coupling_variance=0.7, persistence=0.0), target),
        run(steppe.edmala_glu(step_size=STEP, coupling_variance=0.7), target),
    )


@pytest.mark.slow
def test_ensemble_of_one_is_the_gibbs_like_update():
    target = target_on("ragged")
    _, states, infos = run(steppe.robust_ensemble(replicas=1, coupling_variance=0.7, step_size=STEP), target)
    _, plain_states, plain_infos = run(steppe.edmala_glu(step_size=STEP, coupling_variance=0.7), target)
    assert_same(states.position[:, :, 0], plain_states.position)
    assert_same(states.center, plain_states.center)
    assert_same(infos.is_accepted, plain_infos.is_accepted)
    assert_close(infos.acceptance_rate, plain_infos.acceptance_rate)


def test_roughness_of_no_price_is_dmala():
    target = target_on("ragged")
    _, states, infos = run(steppe.roughness_tilted(strength=0.0, step_size=STEP), target)
    _, plain_states, plain_infos = run(steppe.dmala(step_size=STEP), target)
    assert_same(states, plain_states)
    assert_same(infos, plain_infos)


# ---- The paper's linearised coupling is the exact one at another step size --------------------------

ALPHA, ETA, CENTER_STEP = 1.3, 0.4, 0.05
PAPER_ALPHA = 1 / (1 / ALPHA + 1 / (2 * ETA))
FORMS = {
    "edmala_glu": (
        steppe.edmala_glu(step_size=ALPHA, coupling_variance=ETA, coupling_form="exact"),
        steppe.edmala_glu(step_size=PAPER_ALPHA, coupling_variance=ETA),
    ),
    "edula": (
        steppe.edula(
            step_size=ALPHA, center_step_size=CENTER_STEP, coupling_variance=ETA, coupling_form="exact"
        ),
        steppe.edula(step_size=PAPER_ALPHA, center_step_size=CENTER_STEP, coupling_variance=ETA),
    ),
    "edmala": (
        steppe.edmala(
            step_size=ALPHA, center_step_size=CENTER_STEP, coupling_variance=ETA, coupling_form="exact"
        ),
        steppe.edmala(step_size=PAPER_ALPHA, center_step_size=CENTER_STEP, coupling_variance=ETA),
    ),
}


@quick_jit
def position_logits(sampler, position, center):
    """Logits of the position given the center, whatever block they stand in."""
    proposal = sampler.recipe.blocks[-1].proposal
    proposal = getattr(proposal, "position", proposal)
    _, gradient = sampler.target.value_and_grad(position)
    return proposal.at(sampler.density, ChainState(position, center, jnp.zeros(()), gradient)).logits


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("domain", ["binary", "ragged"])
@pytest.mark.parametrize("name", ["edmala_glu", "edula"])
def test_exact_coupling_has_the_logits_of_the_linear_one_at_a_smaller_step(name, domain):
    target = target_named(domain, "smooth")
    position, center = starts(target.domain)[0], center_for(target.domain)
    exact, linear = (
        position_logits(recipe.build(target, audit=False), position, center) for recipe in FORMS[name]
    )
    np.testing.assert_allclose(exact, linear, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", [pytest.param("edula", marks=pytest.mark.slow), "edmala"])
def test_exact_coupling_walks_the_path_of_the_linear_one_at_a_smaller_step(name):
    exact, linear = (run(recipe, target_on("binary"))[1] for recipe in FORMS[name])
    assert_same(exact.position, linear.position)
    np.testing.assert_allclose(exact.center, linear.center, rtol=0, atol=1e-12)
    assert np.asarray(exact.position).std(axis=1).max() > 0


@pytest.mark.usefixtures("float64")
def test_exact_coupling_has_the_matrix_of_the_linear_one_at_a_smaller_step():
    target = target_named("ordinal", "steep")
    center = center_for(target.domain)
    exact, linear = (transition_matrix(recipe, target, center=center) for recipe in FORMS["edmala_glu"])
    np.testing.assert_allclose(exact, linear, rtol=0, atol=1e-13)
