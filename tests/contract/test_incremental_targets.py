"""A target that follows one-site changes is the same target, only cheaper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.boltzmann import machine
from contract.cases import chain_keys, one_chain, quick_jit, starts, transition_matrix
from steppe.kernel.blocks import site_gibbs
from steppe.kernel.blocks.site_gibbs import SiteGibbsBlock
from steppe.kernel.blocks.table_size import cheapest_table
from steppe.kernel.compose import recipe
from steppe.targets import ising, ising_lattice

DOMAINS = {"binary": steppe.Binary(4), "ordinal": steppe.Ordinal(3, [-1.0, 0.1, 0.8])}
BOUNDS = {"binary": (1.0, 3.0), "ordinal": (-2.0, 1.5)}
RECIPES = {
    "Gibbs-1": steppe.gibbs(),
    "BG-2": steppe.block_gibbs(block_size=2),
    "HB-3-1": steppe.hamming_ball(block_size=3, radius=1),
}
SINGLE_SITE = ("Gibbs-1", "HB-3-1")  # only these ask for a table of one-site differences
CASES = [("ordinal", "differences", name) for name in SINGLE_SITE]
CASES += [("ordinal", "incremental", name) for name in RECIPES]

# Two float64 computations of the same sums of a few dozen terms of order one.
TOLERANCE = 1e-13


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("domain", "form", "name"), CASES)
def test_other_form_of_a_target_has_the_same_transition_matrix(domain, form, name):
    plain, other = (machine(DOMAINS[domain], f) for f in ("plain", form))
    expected = transition_matrix(RECIPES[name], plain)
    np.testing.assert_allclose(transition_matrix(RECIPES[name], other), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("form", "name"), [("incremental", "BG-2"), ("differences", "Gibbs-1")])
def test_other_form_of_a_constrained_target_has_the_same_transition_matrix(form, name):
    targets = [machine(DOMAINS["binary"], f, bounds=BOUNDS["binary"]) for f in ("plain", form)]
    expected, found = (transition_matrix(RECIPES[name], target) for target in targets)
    is_valid = np.asarray(jax.vmap(targets[0].is_valid)(DOMAINS["binary"].enumerate()))
    assert 0 < is_valid.sum() < is_valid.size
    np.testing.assert_allclose(found[is_valid], expected[is_valid], rtol=0, atol=TOLERANCE)


@quick_jit
def states_of(sampler, key, position):
    return one_chain(sampler, key, position, 200)[1]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["BG-2", "Gibbs-3, systematic"])
def test_incremental_cache_after_200_steps_equals_a_fresh_one(name):
    domain = DOMAINS["ordinal"]
    target = machine(domain, "incremental")
    made = RECIPES.get(name) or steppe.gibbs(num_updates=3, scan="systematic")
    states = states_of(made.build(target), jax.random.key(4), starts(domain)[0])
    fresh = jax.vmap(target.incremental.init)(states.position)
    # 200 steps of at most 3 updates, each with a rounding error of half a unit in a number below 16.
    tolerance = 600 * 8 * np.finfo(np.float64).eps
    assert np.asarray(states.position).std() > 0
    np.testing.assert_allclose(states.memory[0].cache, fresh, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        states.log_density, jax.vmap(target.log_density)(states.position), rtol=0, atol=4 * tolerance
    )


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("scan", ["systematic", "random"])
@pytest.mark.parametrize("form", ["plain", "differences", "incremental"])
def test_events_lead_where_a_loop_over_sites_leads(form, scan):
    # One update after another is textbook Gibbs, whose matrices are exact; a table must not be noticed.
    domain = DOMAINS["ordinal"]
    target, size = machine(domain, form), 7

    def positions(table_size):
        sampler = recipe("gibbs", SiteGibbsBlock(size, scan, table_size=table_size)).build(target)
        run = quick_jit(jax.vmap(lambda key, start: one_chain(sampler, key, start, 60)[1].position))
        return np.asarray(run(chain_keys(5), starts(domain)))

    by_site = positions(1)
    assert 0.1 < (np.diff(by_site, axis=1) != 0).mean() < 0.9  # changes, and sites that stay
    for table_size in (2, 3):
        np.testing.assert_array_equal(positions(table_size), by_site)


@pytest.mark.usefixtures("float64")
def test_event_sweep_of_more_updates_than_are_drawn_together_has_the_same_distribution(monkeypatch):
    # 64 chains × 200 sweeps in parts of 3 updates; 27 states, 12 800 draws that follow each other. The mean
    # of U has a standard error below 0.02, and a wrong place of a part moves it by more than 0.2.
    monkeypatch.setattr(site_gibbs, "MAX_DRAWN", 3)
    domain = DOMAINS["ordinal"]
    target = machine(domain, "incremental")
    sampler = recipe("gibbs", SiteGibbsBlock(7, "systematic", table_size=2)).build(target)
    run = quick_jit(jax.vmap(lambda key, start: one_chain(sampler, key, start, 200)[1].log_density))
    found = np.asarray(run(chain_keys(6, 64), starts(domain, 64)))[:, 20:].mean()
    values = jax.vmap(target.log_density)(domain.enumerate())
    assert found == pytest.approx(float(jax.nn.softmax(values) @ values), abs=0.1)


def test_table_is_as_long_as_an_update_of_the_cache_is_dear():
    rng = np.random.default_rng(0)
    couplings = np.triu(rng.normal(size=(300, 300)), 1)
    assert cheapest_table(ising_lattice((12, 12), 0.3)) == 1
    assert 4 < cheapest_table(ising(couplings + couplings.T)) < 100
    assert cheapest_table(machine(DOMAINS["ordinal"], "differences")) == 3


def test_gradient_recipe_ignores_the_incremental_form():
    target = machine(DOMAINS["binary"], "incremental")
    assert steppe.dmala().build(target).init(starts(DOMAINS["binary"])[0]).memory == ((),)


def impossible_above_two(position):
    return jnp.where(jnp.sum(position) > 2, -jnp.inf, position @ jnp.arange(4.0))


def test_hamming_ball_with_a_table_of_differences_stays_in_the_support():
    # An intermediate point may be impossible, and differences to it are then −inf − (−inf).
    domain = DOMAINS["binary"]
    table = steppe.Target(impossible_above_two, domain).differences
    target = steppe.Target(impossible_above_two, domain, differences=table)
    states = states_of(
        steppe.hamming_ball(block_size=3, radius=1).build(target), jax.random.key(0), jnp.zeros(4)
    )
    assert np.isfinite(states.log_density).all()
    assert np.asarray(states.position).sum(axis=1).max() == 2
