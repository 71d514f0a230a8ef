"""What the decision does, and how it fades as steps become small."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import chain_keys, one_chain, quick_jit, run_chains, starts, target_on, transition_matrix
from exact_targets import target_named
from steppe.diagnostics.exact import target_distribution
from steppe.random import draws
from tiers import cases

STEP = 2.0
PAIRS = {
    "dmala": (steppe.dula(step_size=STEP), steppe.dmala(step_size=STEP)),
    "edmala": (
        steppe.edula(step_size=STEP, center_step_size=0.3, coupling_variance=1.0),
        steppe.edmala(step_size=STEP, center_step_size=0.3, coupling_variance=1.0),
    ),
    "edmala_glu": (
        steppe.edula_glu(step_size=STEP, coupling_variance=1.0),
        steppe.edmala_glu(step_size=STEP, coupling_variance=1.0),
    ),
}


@pytest.mark.parametrize("name", cases(PAIRS, fast=["edmala"]))
def test_unadjusted_is_metropolis_with_acceptance_forced(monkeypatch, name):
    target = target_on("ragged")
    unadjusted, adjusted = (recipe.build(target, audit=False) for recipe in PAIRS[name])
    keys, positions = chain_keys(1), starts(target.domain)
    _, free, _ = run_chains(unadjusted, keys, positions)
    monkeypatch.setattr(draws, "log_uniform", lambda key: jnp.full((), -jnp.inf))
    traced_anew = quick_jit(jax.vmap(lambda key, position: one_chain(adjusted, key, position)))
    _, forced, infos = traced_anew(keys, positions)
    assert np.all(infos.is_accepted)
    assert np.min(infos.acceptance_rate) < 0.5  # there was something to force
    np.testing.assert_array_equal(forced.position, free.position)
    # Two programs may add the same few hundred float32 terms of order one in another order.
    close = partial(np.testing.assert_allclose, rtol=0, atol=100 * float(np.finfo(np.float32).eps))
    jax.tree.map(close, forced, free)


def rejected_mass(step_size: float, target: steppe.Target) -> float:
    """Probability that `dmala` rejects, in stationarity: what it adds to the diagonal of `dula`."""
    adjusted, free = (
        np.diag(transition_matrix(make(step_size=step_size), target)) for make in (steppe.dmala, steppe.dula)
    )
    return float(target_distribution(target) @ (adjusted - free))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("domain", ["binary", "ragged"])
def test_rejection_of_dmala_vanishes_as_exp_of_minus_unit_over_two_alpha(domain):
    # A proposal that stays put is always accepted, and one flip has probability ~exp(−u/(2α)) with `u` the
    # squared length of the shortest move; its acceptance does not depend on α. Between α and α/2 the
    # logarithm of the rejected mass therefore falls by u/(2α), up to terms of order exp(−u/(2α)).
    target = target_named(domain, "smooth")
    unit = target.domain.squared_unit
    α = unit / 20
    masses = [rejected_mass(step_size, target) for step_size in (α, α / 2)]
    assert 0 < masses[0] < 1e-3
    assert np.log(masses[0] / masses[1]) == pytest.approx(unit / (2 * α), abs=100 * np.exp(-unit / (2 * α)))


@quick_jit
def mean_rejection(sampler, keys, position, deviations):
    def one(key, deviation):
        state = sampler.init(position)._replace(center=position + deviation)
        return 1 - sampler.step(key, state)[1].acceptance_rate

    return jnp.mean(jax.vmap(one)(keys, deviations))


@pytest.mark.usefixtures("float64")
def test_rejection_of_edmala_vanishes_as_center_step_to_the_power_three_halves():
    # With a position that never moves the center step is MALA for N(θ, η): the log ratio is
    # (α_a / 8η²)(|a − θ|² − |a' − θ|²) with |a' − a| ~ √α_a, so the mean rejection is
    # C α_a^{3/2} (1 + O(α_a)). The same normals at both steps: only the O(α_a) terms, here below 1 %, and no
    # noise in the ratio.
    target, η = target_on("binary"), 0.7
    keys = jax.random.split(jax.random.key(0), 4096)
    position = starts(target.domain)[0]
    deviations = np.sqrt(η) * jax.random.normal(jax.random.key(1), (4096, *target.domain.shape))
    rejections = [
        float(
            mean_rejection(
                steppe.edmala(step_size=1e-3, center_step_size=η * h, coupling_variance=η).build(target),
                keys,
                position,
                deviations,
            )
        )
        for h in (0.02, 0.005)
    ]
    assert 0 < rejections[0] < 0.01
    assert rejections[0] / rejections[1] == pytest.approx(4**1.5, rel=0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda ε: steppe.dmala(step_size=ε),
        lambda ε: steppe.edmala(step_size=ε, center_step_size=ε, coupling_variance=1.0),
    ],
)
def test_acceptance_goes_to_one_as_all_steps_go_to_zero(make):
    target = target_on("spin")
    rates = [
        float(
            run_chains(make(ε).build(target), chain_keys(3), starts(target.domain))[2].acceptance_rate.mean()
        )
        for ε in (2.0, 0.2, 0.002)
    ]
    assert rates == sorted(rates)
    assert rates[0] < 0.95
    assert 1 - rates[-1] < 1e-3
