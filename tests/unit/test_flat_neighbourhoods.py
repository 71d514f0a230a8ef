"""Sums over neighbourhoods, and climbing to local maxima, against brute force over all states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import DOMAINS, target_named
from steppe.diagnostics import flatness
from steppe.diagnostics.flatness.exact_entropy import ball_size
from steppe.diagnostics.flatness.log_tables import log_table, normalize_table
from steppe.errors import DomainError
from steppe.targets.bernoulli import paper_bernoulli
from steppe.targets.mixture import mixture, planted_mixture

BERNOULLI = paper_bernoulli()
STATES = np.asarray(BERNOULLI.domain.enumerate())
TARGETS = {name: target_named(name, "smooth") for name in DOMAINS}
ROUNDING = 2e-5

# Of ten correct z-values one exceeds 5 with probability 6e-6; a share off by .04 (5 errors) is seen.
MAX_Z = 5.0


# ---- sums over a neighbourhood ---------------------------------------------------------------------------


def brute_force_entropy(target, coupling_variance, radius=None):
    """`log Σ exp` over all pairs of states, restricted to few changed sites."""
    states = np.asarray(target.domain.enumerate(), float)
    values = log_table(target).ravel()
    flat = states.reshape(len(states), -1)
    squared = ((flat[:, None] - flat) ** 2).sum(-1)
    scores = values - squared / (2 * coupling_variance)
    if radius is not None:
        changed = (states[:, None] != states).reshape(len(states), len(states), target.domain.num_sites, -1)
        scores = np.where(changed.any(-1).sum(-1) <= radius, scores, -np.inf)
    return np.logaddexp.reduce(scores, axis=1)


@pytest.mark.parametrize("domain", DOMAINS)
def test_enumerated_local_entropy_is_the_sum_over_all_states(domain):
    target = TARGETS[domain]
    found = flatness.local_entropy_enumerated(target, target.domain.enumerate(), 0.6)
    np.testing.assert_allclose(found.value, brute_force_entropy(target, 0.6), atol=ROUNDING)
    assert not found.standard_error.any()


@pytest.mark.parametrize(
    ("domain", "radius"), [("binary", 1), ("ragged", 2), pytest.param("binary", 3, marks=pytest.mark.slow)]
)
def test_ball_is_the_sum_over_states_with_few_changes(domain, radius):
    target = TARGETS[domain]
    states = target.domain.enumerate()
    found = flatness.local_entropy_ball(target, states, radius, 0.6)
    expected = brute_force_entropy(target, 0.6, radius)
    np.testing.assert_allclose(found.value, expected, atol=ROUNDING)
    distribution = np.exp(found.log_density - np.logaddexp.reduce(found.log_density))
    assert found.exact_under_target["value"] == pytest.approx(distribution @ expected, abs=ROUNDING)


def test_plain_ball_mass_counts_states_of_a_flat_landscape():
    target = steppe.Target(lambda x: 0.0 * jnp.sum(x), steppe.Categorical(4, [2, 3, 2, 4]))
    found = flatness.local_entropy_ball(target, target.domain.enumerate()[:1], 2)
    assert np.exp(found.value[0]) == pytest.approx(ball_size(target.domain, 2), rel=1e-5)
    assert ball_size(target.domain, 2) == 1 + 7 + (2 + 1 + 3 + 2 + 6 + 3)


def exactly_two(position):
    return jnp.sum(position) == 2


def ramp(position):
    return position @ jnp.arange(4.0)


def test_ball_reaches_valid_states_behind_invalid_ones():
    target = steppe.Target(ramp, steppe.Binary(4), is_valid=exactly_two)
    found = flatness.local_entropy_ball(target, jnp.array([1.0, 1, 0, 0]), 2)
    swaps = [1.0, 2, 3, 3, 4]  # all pairs but {2, 3} can be reached by moving one of two bits
    assert found.value == pytest.approx(np.logaddexp.reduce(swaps), abs=ROUNDING)


# ---- climbing --------------------------------------------------------------------------------------------


def test_climb_takes_the_best_change_until_none_improves():
    target = target_named("ragged", "steep")
    states = target.domain.enumerate()
    climbed = flatness.local_search(target, states)
    values = log_table(target).ravel()
    best = np.asarray(jax.jit(jax.vmap(target.differences))(states), float).max(axis=(1, 2))
    ends = np.asarray(target.domain.index(jnp.asarray(climbed.modes)))
    assert climbed.is_converged.all()
    assert best[ends].max() <= 1e-4
    assert (climbed.num_steps[best <= 1e-4] == 0).all()
    np.testing.assert_allclose(climbed.mode_log_density, values[ends], rtol=1e-5)
    masses = flatness.basin_mass(target)
    distribution = np.exp(values - np.logaddexp.reduce(values))
    climbing = [
        distribution[ends == np.asarray(target.domain.index(jnp.asarray(mode)))].sum()
        for mode in masses.modes
    ]
    np.testing.assert_allclose(masses.mass, climbing, atol=1e-6)


def test_climb_ends_at_the_patterns_of_the_planted_mixture():
    planted = planted_mixture()
    climbed = flatness.local_search(planted.target, planted.patterns)
    np.testing.assert_array_equal(climbed.modes, planted.patterns)
    masses = flatness.basin_mass(planted.target)
    assert {tuple(p) for p in planted.patterns} <= {tuple(m) for m in masses.modes.astype(int)}


def test_climb_stops_where_it_is_told_to():
    target = mixture([1.0], np.full((1, 12), 0.9))
    climbed = flatness.local_search(target, np.zeros(12), max_steps=5)
    assert not climbed.is_converged
    assert climbed.modes.sum() == climbed.num_steps == 5
    with pytest.raises(DomainError, match="max_steps"):
        flatness.basin_mass(target, np.zeros((1, 12)), max_steps=5)


def test_sampled_basins_and_occupancy_come_with_errors_and_exact_shares():
    distribution = normalize_table(log_table(BERNOULLI))
    drawn = STATES[np.random.default_rng(0).choice(16, 4000, p=distribution)]
    basins = flatness.basin_mass(BERNOULLI, drawn)
    assert np.abs((basins.mass - basins.exact_under_target) / basins.standard_error).max() < MAX_Z
    found = flatness.occupancy(drawn.reshape(4, 1000, 4), basins.modes, target=BERNOULLI)
    assert np.abs((found.fraction - found.exact_under_target) / found.standard_error).max() < MAX_Z
    fewer = flatness.occupancy(drawn, basins.modes, effective_size=1000)
    np.testing.assert_allclose(fewer.standard_error / found.standard_error, 2, rtol=0.05)
    assert fewer.mean_log_density is None


def test_a_share_of_zero_is_not_certain():
    found = flatness.occupancy(np.zeros((10, 3)), np.ones((1, 3)))
    assert found.fraction == 0
    assert 0.05 < found.standard_error[0] < 0.2
