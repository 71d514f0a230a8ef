"""What every recipe promises on every domain: it runs mapped and scanned, and keeps its books straight."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import (
    DOMAINS,
    NUM_CHAINS,
    NUM_STEPS,
    PUBLISHED_NAMES,
    RECIPES,
    VARIANTS,
    are_identical,
    chain_keys,
    one_chain,
    quick_jit,
    run_chains,
    starts,
    target_on,
)
from steppe.samplers import ALL_RECIPES

# Spins share their code with bits and one-hot sites of equal size with ragged ones: all recipes on all six
# domains run in the full suite, two recipes on all six and the rest on four in the fast one. A step without
# a decision is the beginning of one with it, block Gibbs and Hamming balls share their code with Gibbs, and
# variants with their recipe: the least regular domain is enough for them in the fast suite.
IN_FULL_SUITE = ("spin", "categorical")
ON_ALL_IN_FAST_SUITE = ("dmala", "gibbs")
ON_ONE_IN_FAST_SUITE = (
    "dula",
    "edula",
    "edula_glu",
    "edmala_glu",
    "edmala_ou",
    "roughness_tilted",
    "robust_ensemble",
    "block_gibbs",
    "hamming_ball",
    "dmala_cyclical",
    "parallel_tempering",
    "dlmc",
    "pas",
)


def case(name: str, domain: str):
    is_slow = domain in IN_FULL_SUITE and name not in ON_ALL_IN_FAST_SUITE
    is_slow |= domain != "ragged" and name in ON_ONE_IN_FAST_SUITE
    return pytest.param((name, domain), id=f"{name}-{domain}", marks=[pytest.mark.slow] * is_slow)


CASES = [case(name, domain) for name in ALL_RECIPES for domain in DOMAINS]
CASES += [case(name, "ragged") for name in VARIANTS]

CHAIN = 2


class Run(NamedTuple):
    """One recipe run on one domain, shared by all tests of this file."""

    target: steppe.Target
    sampler: Any
    start: Any
    states: Any
    infos: Any


@pytest.fixture(scope="module", params=CASES)
def run(request):
    name, domain_name = request.param
    target = target_on(domain_name)
    sampler = RECIPES[name].build(target, audit=False)
    return Run(target, sampler, *run_chains(sampler, chain_keys(1), starts(target.domain)))


@quick_jit
def evaluate(target, positions):
    return jax.vmap(target.value_and_grad)(positions)


def test_every_draw_is_in_the_domain(run):
    positions = np.asarray(run.states.position)
    copies = () if run.sampler.replicas is None else (run.sampler.replicas,)
    assert positions.shape == (NUM_CHAINS, NUM_STEPS, *copies, *run.target.domain.shape)
    assert run.target.domain.contains(positions)


def test_the_chain_moves(run):
    assert np.asarray(run.infos.num_flips).sum() > 0


def test_same_key_gives_the_same_draws_and_another_key_others(run):
    positions = starts(run.target.domain)
    again = run_chains(run.sampler, chain_keys(1), positions)
    assert are_identical(again, (run.start, run.states, run.infos))
    other = run_chains(run.sampler, chain_keys(2), positions)[1]
    assert not np.array_equal(other.position, run.states.position)


def test_chain_is_the_same_beside_other_chains(run):
    keys, positions = chain_keys(1), starts(run.target.domain)
    other_keys = chain_keys(7).at[CHAIN].set(keys[CHAIN])
    other_positions = positions[::-1].at[CHAIN].set(positions[CHAIN])
    others = run_chains(run.sampler, other_keys, other_positions)[1]
    for field in ("position", "log_density"):
        ours, theirs = np.asarray(getattr(run.states, field)), np.asarray(getattr(others, field))
        np.testing.assert_array_equal(ours[CHAIN], theirs[CHAIN])
        assert not np.array_equal(ours[0], theirs[0])


def test_state_carries_the_log_density_and_gradient_of_its_position(run):
    # float32 sums of about 200 terms of order one: 100 rounding units is far above their error and far
    # below the change in `U` of any flip.
    tolerance = 100 * float(np.finfo(np.float32).eps)
    positions = run.states.position
    lead = positions.shape[: positions.ndim - len(run.target.domain.shape)]
    values, gradients = evaluate(run.target, positions.reshape(-1, *run.target.domain.shape))
    values, gradients = values.reshape(lead), gradients.reshape(positions.shape)
    np.testing.assert_allclose(run.states.log_density, values, rtol=tolerance, atol=tolerance)
    if run.states.gradient is not None:
        np.testing.assert_allclose(run.states.gradient, gradients, rtol=tolerance, atol=tolerance)


def test_info_counts_what_happened(run):
    infos = jax.tree.map(np.asarray, run.infos)
    after = np.asarray(run.states.position)
    before = np.concatenate([np.asarray(run.start.position)[:, None], after[:, :-1]], axis=1)
    differs = (after != before).any(axis=-1) if len(run.target.domain.shape) == 2 else after != before
    np.testing.assert_array_equal(infos.num_flips, differs.sum(axis=tuple(range(2, differs.ndim))))
    assert not infos.num_nonfinite.any()
    assert np.all((infos.acceptance_rate >= 0) & (infos.acceptance_rate <= 1))
    assert np.all(infos.num_flips[~infos.is_accepted] == 0)


def test_state_and_info_keep_their_shapes_and_types(run):
    assert _signature(run.states, lead=2) == _signature(run.start, lead=1)
    assert run.infos.acceptance_rate.dtype == jnp.float32
    assert run.infos.is_accepted.dtype == bool
    assert jnp.issubdtype(run.infos.num_flips.dtype, jnp.integer)
    assert run.infos.num_nonfinite.dtype == jnp.int32
    assert all(leaf.shape == (NUM_CHAINS, NUM_STEPS) for leaf in run.infos[:4])


@pytest.mark.parametrize("domain_name", ["binary", "ragged"])
@pytest.mark.parametrize("name", [*ALL_RECIPES, *VARIANTS])
def test_scan_keeps_types_in_double_precision(float64, name, domain_name):
    # Tracing is enough: `lax.scan` refuses a carry whose type drifts.
    target = target_on(domain_name)
    sampler = RECIPES[name].build(target, audit=False)
    start, states, _ = jax.eval_shape(one_chain, sampler, jax.random.key(0), starts(target.domain)[0])
    assert _signature(states, lead=1) == _signature(start, lead=0)
    assert states.position.dtype == states.log_density.dtype == jnp.float64


@pytest.mark.parametrize("name", ALL_RECIPES)
def test_sampler_unpacks_into_init_and_step(name):
    target = target_on("binary")
    init, step = RECIPES[name].build(target, audit=False)
    key = jax.random.key(0)
    state, info = jax.eval_shape(lambda position: step(key, init(position, key)), starts(target.domain)[0])
    assert state.position.shape[-1:] == target.domain.shape
    assert info.is_accepted.shape == ()


@pytest.mark.parametrize("make", [steppe.edula, steppe.edmala])
def test_joint_recipe_can_draw_its_center_at_the_start(make):
    target = target_on("binary")
    sampler = make(center_start="conditional").build(target, audit=False)
    state = sampler.init(starts(target.domain)[0], jax.random.key(0))
    assert not np.any(np.asarray(state.center) == np.asarray(state.position))


@pytest.mark.parametrize("name", PUBLISHED_NAMES)
def test_published_name_is_the_default_of_a_recipe_tested_above(name):
    published = PUBLISHED_NAMES[name]
    default = RECIPES[published.name]
    assert (published.blocks, published.coupling) == (default.blocks, default.coupling)


def test_the_table_has_every_recipe():
    assert set(ALL_RECIPES) <= set(RECIPES)


def _signature(tree, lead: int):
    """Structure, shapes without `lead` leading axes, and types."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape[lead:], leaf.dtype) for leaf in leaves]
