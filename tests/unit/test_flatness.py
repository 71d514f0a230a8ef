"""Flatness measures against enumeration, against known figures of the 4-D target, and on bad input."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.stats import spearmanr

import steppe
from exact_targets import DOMAINS, target_named
from steppe.diagnostics import flatness
from steppe.diagnostics.flatness.log_tables import log_table, normalize_table
from steppe.errors import DomainError, RecipeError
from steppe.targets.bernoulli import paper_bernoulli

BERNOULLI = paper_bernoulli()
STATES = np.asarray(BERNOULLI.domain.enumerate())
TARGETS = {name: target_named(name, "smooth") for name in DOMAINS}
ROUNDING = 2e-5


def row(bits: str) -> int:
    return int(bits, 2)


@pytest.fixture(scope="module")
def gaps():
    return flatness.single_site_differences(BERNOULLI, STATES, within=0.5)


@pytest.fixture(scope="module")
def spectrum():
    return flatness.interaction_spectrum(BERNOULLI, STATES)


# ---- known figures of the 4-D target -----------------------------------------------------------------------


def test_gaps_of_the_paper_target_are_the_known_ones(gaps):
    assert gaps.exact_under_target["mean_absolute"] == pytest.approx(0.816, abs=5e-4)
    assert gaps.exact_under_target["log_density"] == pytest.approx(-2.573, abs=5e-4)
    assert gaps.mean_absolute[row("1100")] == pytest.approx(0.62, abs=5e-3)
    assert gaps.mean_absolute[row("0100")] == pytest.approx(0.12, abs=5e-3)


def test_gaps_are_the_differences_of_the_table(gaps):
    values = gaps.log_density.astype(float)
    for index, state in enumerate(STATES):
        flips = [row("".join(str(int(b)) for b in np.abs(state - bit))) for bit in np.eye(4)]
        change = values[flips] - values[index]
        figures = [np.abs(change).mean(), -change.mean(), -change.min(), np.mean(np.abs(change) <= 0.5)]
        found = [gaps.mean_absolute, gaps.mean_drop, gaps.max_drop, gaps.share_within]
        np.testing.assert_allclose([figure[index] for figure in found], figures, atol=ROUNDING)
    assert gaps.mean_log_density == pytest.approx(values.mean(), abs=ROUNDING)


# Eigenvalues of the 4×4 interaction matrix at each state, three decimals.
EIGENVALUES = {
    "0000": (-1.850, -0.696, -0.215, 2.761), "0001": (-3.098, 0.339, 0.552, 2.206),
    "0010": (-3.846, -1.318, -0.179, 5.343), "0011": (-7.108, 0.633, 2.697, 3.778),
    "0100": (-1.511, -0.719, 0.365, 1.866), "0101": (-2.463, -0.691, -0.237, 3.391),
    "0110": (-3.374, -1.272, 1.713, 2.934), "0111": (-4.033, -1.754, -0.585, 6.371),
    "1000": (-2.140, -0.430, 0.815, 1.755), "1001": (-1.082, -0.696, -0.639, 2.417),
    "1010": (-4.129, -0.506, 1.426, 3.209), "1011": (-4.086, -1.380, -0.393, 5.858),
    "1100": (-1.303, -0.684, 0.322, 1.666), "1101": (-2.703, -0.295, 0.818, 2.179),
    "1110": (-1.791, -1.051, 0.325, 2.517), "1111": (-5.104, -0.225, 1.598, 3.731),
}  # fmt: skip


def test_spectrum_of_the_paper_target_is_the_known_one(spectrum):
    expected = [EIGENVALUES["".join(str(int(bit)) for bit in state)] for state in STATES]
    np.testing.assert_allclose(spectrum.eigenvalues, expected, atol=6e-4)
    assert spectrum.exact_under_target["std"] == pytest.approx(2.6462, abs=1e-4)
    assert spectrum.exact_under_target["iqr"] == pytest.approx(3.2243, abs=1e-4)
    # Pooled over one copy of each state: population std, percentiles with linear interpolation.
    assert (spectrum.std, spectrum.iqr) == pytest.approx((2.5729, 3.0570), abs=1e-4)


def test_interaction_strength_is_blind_to_slopes(gaps, spectrum):
    strength = np.sqrt(np.mean(spectrum.eigenvalues**2, axis=1))
    assert strength[row("1100")] == pytest.approx(1.12, abs=5e-3)
    assert strength[row("0100")] == pytest.approx(1.27, abs=5e-3)
    entropy = flatness.local_entropy_enumerated(BERNOULLI, STATES, 1.0).value
    assert spearmanr(-strength, -gaps.mean_absolute)[0] == pytest.approx(0.80, abs=5e-3)
    assert spearmanr(-strength, entropy)[0] == pytest.approx(-0.11, abs=5e-3)


def test_paper_modes_are_the_local_maxima():
    basins = flatness.basin_mass(BERNOULLI)
    found = {"".join(str(int(bit)) for bit in mode) for mode in basins.modes}
    assert found == {"0100", "1001", "0010", "0111"}
    assert basins.mass.sum() == pytest.approx(1, abs=1e-12)


# ---- noise -----------------------------------------------------------------------------------------------

# Of 50 correct z-values one exceeds 5 with probability 3e-5; a drop off by .1 nats (20 errors) is seen.
MAX_Z = 5.0


def brute_force_noise(target, flip_fraction):
    """Exact `U − E U` of every state, over all pairs of states."""
    domain = target.domain
    levels = np.asarray(domain.to_levels(domain.enumerate())).astype(int)
    values = log_table(target).ravel()
    others = np.asarray(domain.num_levels) - 1
    per_site = np.where(levels[:, None] == levels, 1 - flip_fraction, flip_fraction / others)
    return values - per_site.prod(axis=2) @ values


def test_expected_gaps_of_orders_are_means_over_all_of_them():
    target = steppe.Target(lambda order: 0.3 * order[0], steppe.Permutation(4))
    every = target.domain.enumerate()
    gaps = flatness.single_site_differences(target, every)
    distribution = np.exp(0.3 * np.asarray(every)[:, 0])
    distribution /= distribution.sum()
    assert gaps.exact_under_target["log_density"] == pytest.approx(distribution @ gaps.log_density, abs=1e-6)
    assert gaps.exact_under_target["mean_absolute"] == pytest.approx(
        distribution @ gaps.mean_absolute, abs=1e-6
    )


@pytest.mark.parametrize(("target", "batch_size"), [(BERNOULLI, 5), (TARGETS["ragged"], 24)])
def test_noise_drop_agrees_with_the_exact_mean(target, batch_size):
    states = target.domain.enumerate()
    found = flatness.noise_drop(target, states, jax.random.key(0), 0.2, 512, batch_size=batch_size)
    exact = brute_force_noise(target, 0.2)
    assert np.abs((found.drop - exact) / found.standard_error).max() < MAX_Z
    distribution = normalize_table(log_table(target))
    assert found.exact_under_target["drop"] == pytest.approx(distribution @ exact, abs=ROUNDING)


def test_noise_of_a_state_depends_on_its_place_and_not_on_the_batches():
    first, second = (
        flatness.noise_drop(BERNOULLI, states, jax.random.key(0), 0.2, 512, batch_size=5).drop
        for states in (STATES, STATES[:5])
    )
    np.testing.assert_allclose(first[:5], second, atol=1e-6)


# ---- the spectrum depends on the extension, and on the scale of the levels --------------------------------


def coupled(strength, position):
    return strength * position[0] * position[1]


def test_interaction_of_spins_is_per_unit_of_both_levels():
    for domain, state in ((steppe.Binary(3), [0.0, 1, 0]), (steppe.Spin(3), [1.0, -1, 1])):
        target = steppe.Target(Partial(coupled, 0.7), domain)
        found = flatness.interaction_spectrum(target, jnp.array([state]))
        np.testing.assert_allclose(found.eigenvalues[0], [-0.7, 0, 0.7], atol=1e-5)


def exactly_two(position):
    return jnp.sum(position) == 2


def ramp(position):
    return position @ jnp.arange(4.0)


CONSTRAINED = steppe.Target(ramp, steppe.Binary(4), is_valid=exactly_two)


def test_spectrum_refuses_constraints():
    with pytest.raises(DomainError, match="constraint"):
        flatness.interaction_spectrum(CONSTRAINED, STATES)


def test_one_site_gaps_leave_invalid_neighbours_out():
    found = flatness.single_site_differences(CONSTRAINED, jnp.array([1.0, 1, 0, 0]))
    assert found.num_changes == 0
    assert np.isnan(found.mean_absolute)


# ---- shapes, progress, size --------------------------------------------------------------------------------


def test_figures_keep_the_leading_axes():
    states = STATES.reshape(2, 8, 4)
    assert flatness.single_site_differences(BERNOULLI, states).mean_absolute.shape == (2, 8)
    assert flatness.single_site_differences(BERNOULLI, states[0, 0]).mean_absolute.shape == ()


def test_progress_is_reported_and_changes_nothing(gaps):
    heard = []
    found = flatness.single_site_differences(
        BERNOULLI,
        STATES,
        within=0.5,
        batch_size=3,
        progress=lambda *counts: heard.append(counts),
        exact=False,
    )
    assert heard == [(3, 16), (6, 16), (9, 16), (12, 16), (15, 16), (16, 16)]
    np.testing.assert_allclose(found.mean_drop, gaps.mean_drop, atol=1e-6)


def rbm_log_density(weights, biases, position):
    hidden, visible = biases
    return jnp.sum(jax.nn.softplus(weights @ position + hidden)) + visible @ position


def rbm_differences(weights, biases, rises, falls, position):
    """`Σ_j log(1 + σ_j (e^{±W_ji} − 1))` with tables of `e^{±W} − 1`; ten factors share a logarithm."""
    hidden, visible = biases
    active = jax.nn.sigmoid(weights @ position + hidden)
    factors = 1 + active * jnp.where(position[:, None] == 0, rises, falls)
    gains = jnp.sum(jnp.log(jnp.prod(factors.reshape(position.size, -1, 10), axis=2)), axis=1)
    gains += (1 - 2 * position) * visible
    return jnp.where(position[:, None] == jnp.arange(2), 0, gains[:, None])


def rbm(num_visible, num_hidden):
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.05, (num_hidden, num_visible)).astype(np.float32)
    biases = tuple(rng.normal(0, 0.3, size).astype(np.float32) for size in (num_hidden, num_visible))
    rises, falls = np.expm1(weights.T), np.expm1(-weights.T)
    return steppe.Target(
        Partial(rbm_log_density, weights, biases),
        steppe.Binary(num_visible),
        differences=Partial(rbm_differences, weights, biases, rises, falls),
    )


@pytest.mark.slow
def test_784_sites_and_5000_states_take_seconds():
    target = rbm(784, 500)
    states = np.random.default_rng(1).integers(0, 2, (5000, 784)).astype(np.float32)
    start = time.process_time()
    gaps = flatness.single_site_differences(target, states)
    noise = flatness.noise_drop(target, states, jax.random.key(0), 0.05)
    ball = flatness.local_entropy_ball(target, states, 1, 0.3)
    seconds = time.process_time() - start
    assert np.isfinite(gaps.mean_absolute + noise.standard_error + ball.value).all()
    assert gaps.exact_under_target is None
    assert seconds < 60  # 13 processor seconds when written; two cores halve the wait


def test_differences_of_many_sites_are_used_as_given():
    target = rbm(784, 50)
    plain = steppe.Target(target.log_density, target.domain)
    states = np.random.default_rng(2).integers(0, 2, (2, 784)).astype(np.float32)
    fast, slow = (flatness.single_site_differences(one, states, batch_size=2) for one in (target, plain))
    # Without its own table a difference is one of two values of size 100 in float32.
    np.testing.assert_allclose(fast.mean_absolute, slow.mean_absolute, atol=1e-4)


# ---- bad input -------------------------------------------------------------------------------------------

KEY = jax.random.key(0)
LARGE = steppe.Target(jnp.sum, steppe.Binary(200))
ORDINAL = TARGETS["ordinal"]
THREE_LEVELS = np.asarray(ORDINAL.domain.enumerate())


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: flatness.noise_drop(BERNOULLI, STATES, KEY, 0.0), RecipeError, r"in \(0, 0.5\)"),
        (lambda: flatness.noise_drop(BERNOULLI, STATES, KEY, 0.5), RecipeError, r"in \(0, 0.5\)"),
        (lambda: flatness.noise_drop(BERNOULLI, STATES, KEY, 0.1, 1), RecipeError, "no error to state"),
        (lambda: flatness.single_site_differences(BERNOULLI, STATES, within=-1), RecipeError, "at least 0"),
        (lambda: flatness.local_entropy_enumerated(BERNOULLI, STATES, 0.0), RecipeError, "positive"),
        (lambda: flatness.local_entropy_enumerated(BERNOULLI, STATES[:, :3], 1.0), DomainError, "shape"),
        (lambda: flatness.local_entropy_enumerated(LARGE, np.zeros(200), 1.0), DomainError, "1048576"),
        (lambda: flatness.local_entropy_ball(BERNOULLI, STATES, 4), RecipeError, "1, 2 or 3"),
        (lambda: flatness.local_entropy_ball(BERNOULLI, STATES, 0), RecipeError, "1, 2 or 3"),
        (lambda: flatness.local_entropy_ball(BERNOULLI, STATES, 1, -2.0), RecipeError, "positive"),
        (lambda: flatness.local_entropy_ball(LARGE, np.zeros(200), 3), DomainError, "holds 1.33e"),
        (lambda: flatness.local_entropy(BERNOULLI, STATES, -1.0, KEY), RecipeError, "positive"),
        (lambda: flatness.local_entropy(BERNOULLI, STATES, 1.0, KEY, num_particles=4), RecipeError, "16"),
        (lambda: flatness.single_site_differences(LARGE, np.zeros(200), exact=True), DomainError, "1048576"),
        (lambda: flatness.basin_mass(LARGE), DomainError, "1048576"),
        (lambda: flatness.single_site_differences(BERNOULLI, STATES + 0.5), DomainError, "no level"),
        (lambda: flatness.single_site_differences(BERNOULLI, STATES[:, :2]), DomainError, "of shape"),
        (lambda: flatness.single_site_differences(BERNOULLI, STATES[:0]), DomainError, "of shape"),
        (lambda: flatness.interaction_spectrum(ORDINAL, THREE_LEVELS), DomainError, "two levels"),
        (lambda: flatness.occupancy(STATES, STATES[0]), DomainError, "list of states"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_results_name_what_they_carry():
    results = (
        flatness.SingleSiteDifferences, flatness.NoiseDrop, flatness.LocalEntropy, flatness.BasinMass,
        flatness.Occupancy, flatness.InteractionSpectrum,
    )  # fmt: skip
    for result, name in itertools.product(results, ("mean_log_density", "exact_under_target")):
        assert name in result._fields
