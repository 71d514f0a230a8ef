"""A constant added to the log-density, and the names of the sites, change nothing."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import steppe
from contract.cases import chain_keys, run_chains, starts, transition_matrix
from exact_targets import DOMAINS, Cubic, arrays_of, center_for, cubic_log_density, polynomial_target

RECIPES = {
    "dmala": steppe.dmala(step_size=1.0),
    "edmala_glu": steppe.edmala_glu(step_size=1.0, coupling_variance=0.5),
    "gwg": steppe.gwg(num_flips=2),
    "gibbs": steppe.gibbs(),
    "block_gibbs": steppe.block_gibbs(block_size=2),
    "hamming_ball": steppe.hamming_ball(block_size=3, radius=1),
}
PATHS = {
    "dmala": steppe.dmala(step_size=1.0),
    "edmala": steppe.edmala(step_size=1.0, center_step_size=0.05, coupling_variance=0.5),
    "gwg": steppe.gwg(num_flips=2),
    "gibbs": steppe.gibbs(),
}


def shifted_log_density(shift, cubic: Cubic, position):
    return shift + cubic_log_density(*cubic, position)


def shifted(domain: steppe.Domain, shift: float) -> steppe.Target:
    cubic = arrays_of(polynomial_target(domain, 1.0))
    return steppe.Target(Partial(shifted_log_density, jnp.asarray(shift), cubic), domain)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", PATHS)
def test_shift_of_a_million_leaves_the_path_alone_in_double_precision(name):
    # Numbers near 1e6 are 1.2e-10 apart: the chance that a decision falls into that gap is 1e-8 per run.
    domain = DOMAINS["ordinal"]
    paths = [
        run_chains(PATHS[name].build(shifted(domain, shift), audit=False), chain_keys(1), starts(domain))[
            1
        ].position
        for shift in (0.0, 1e6)
    ]
    np.testing.assert_array_equal(*paths)
    assert np.asarray(paths[0]).std(axis=1).max() > 0


@pytest.mark.parametrize("name", ["dmala", "gwg", "gibbs"])
def test_shift_of_ten_thousand_moves_no_probability_by_more_than_its_resolution(name):
    # Both log-densities of a difference are rounded by at most half a unit, so every log-ratio is right to
    # one unit, and |min(1, r e^δ) − min(1, r)| ≤ e^|δ| − 1. The rest is float32 arithmetic of order 1e-6.
    unit = float(np.spacing(np.float32(1e4)))
    domain = DOMAINS["ordinal"]
    plain, moved = (transition_matrix(RECIPES[name], shifted(domain, shift)) for shift in (0.0, 1e4))
    assert np.abs(moved - plain).max() <= np.expm1(unit) + 1e-5


def relabelled(target: steppe.Target, order: list[int]) -> steppe.Target:
    """The same log-density with site `i` of the new target being site `order[i]` of the old one."""
    domain = target.domain
    width = domain.max_levels if len(domain.shape) == 2 else 1
    flat = (np.asarray(order)[:, None] * width + np.arange(width)).ravel()
    linear, quadratic, cubic = arrays_of(target)
    if isinstance(domain, steppe.Categorical):
        domain = steppe.Categorical(domain.num_sites, [domain.num_levels[site] for site in order])
    arrays = linear[flat], quadratic[np.ix_(flat, flat)], cubic[flat]
    return steppe.Target(Partial(cubic_log_density, *arrays), domain)


RELABELLED = [("ordinal", name) for name in RECIPES] + [("ragged", "dmala")]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("domain", "name"), RELABELLED)
def test_relabelling_sites_commutes_with_a_step(domain, name):
    old = polynomial_target(DOMAINS[domain], 3.0)
    order = [2, 0, 1]
    new = relabelled(old, order)
    center = center_for(old.domain) if name == "edmala_glu" else None
    before = transition_matrix(RECIPES[name], old, center=center)
    after = transition_matrix(
        RECIPES[name], new, center=None if center is None else center[np.asarray(order)]
    )
    rows = np.asarray(new.domain.index(old.domain.enumerate()[:, np.asarray(order)]))
    # Sums over sites in another order: a few rounding units.
    np.testing.assert_allclose(after[np.ix_(rows, rows)], before, rtol=0, atol=1e-14)
    assert np.abs(after - before).max() > 1e-3  # the relabelling was not idle


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["dmala", "edmala_glu", "gwg", "gibbs", "hamming_ball"])
def test_temperature_is_a_factor_on_the_log_density(name):
    domain, β = DOMAINS["ordinal"], 0.3
    cubic = arrays_of(polynomial_target(domain, 1.0))
    scaled = steppe.Target(
        Partial(cubic_log_density, β * cubic[0], β * cubic[1], np.cbrt(β) * cubic[2]), domain
    )
    center = center_for(domain) if name == "edmala_glu" else None
    cooled = transition_matrix(
        RECIPES[name].replace(inverse_temperature=β), polynomial_target(domain, 1.0), center=center
    )
    np.testing.assert_allclose(
        cooled, transition_matrix(RECIPES[name], scaled, center=center), rtol=0, atol=1e-13
    )
