"""Mixtures of independent sites: exact differences, a closed-form local entropy, the planted landscape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.diagnostics.flatness import local_entropy_enumerated, single_site_differences
from steppe.errors import TargetError
from steppe.targets.mixture import (
    mixture,
    mixture_local_entropy,
    mixture_responsibilities,
    planted_mixture,
)

RNG = np.random.default_rng(0)
WEIGHTS = np.array([1.0, 2.0, 3.0])
BITS = RNG.uniform(0.02, 0.98, (3, 5))
LEVELS = RNG.dirichlet(np.ones(3), (3, 4))
TABLES = {"bits": BITS, "one-hot": LEVELS}

# float32 sums of a dozen terms of size up to ten.
ROUNDING = 2e-5

PLANTED = planted_mixture()


@pytest.mark.parametrize("kind", TABLES)
def test_log_density_is_a_normalised_log_probability(kind):
    target = mixture(WEIGHTS, TABLES[kind])
    values = jax.jit(jax.vmap(target.log_density))(target.domain.enumerate())
    assert abs(float(jax.nn.logsumexp(values))) < ROUNDING


def test_log_density_of_bits_is_the_formula():
    target, state = mixture(WEIGHTS, BITS), np.array([0, 1, 1, 0, 1])
    weights = WEIGHTS / WEIGHTS.sum()
    expected = np.log(weights @ np.prod(np.where(state == 1, BITS, 1 - BITS), axis=1))
    assert float(target.log_density(jnp.asarray(state, float))) == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("kind", TABLES)
def test_differences_and_gradient_are_exact(kind):
    target = mixture(WEIGHTS, TABLES[kind])
    plain = steppe.Target(target.log_density, target.domain)

    @jax.jit
    def compare(state):
        return (
            target.differences(state),
            plain.differences(state),
            target.value_and_grad(state)[1],
            jax.grad(target.log_density)(state),
        )

    for state in target.domain.draw(jax.random.key(0), (4,)):
        differences, expected, gradient, expected_gradient = compare(state)
        np.testing.assert_allclose(differences, expected, atol=ROUNDING)
        np.testing.assert_allclose(gradient, expected_gradient, atol=ROUNDING)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("variance", [0.1, 1.5])
def test_closed_form_local_entropy_equals_enumeration_at_states_and_between_them(kind, variance):
    target = mixture(WEIGHTS, TABLES[kind])
    states = np.asarray(target.domain.enumerate())
    between = np.random.default_rng(1).normal(0.5, 0.7, (3, *target.domain.shape))
    for centers in (states, between):
        expected = mixture_local_entropy(WEIGHTS, TABLES[kind], centers, variance)
        found = local_entropy_enumerated(target, centers, variance).value
        np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_closed_form_on_bits_is_a_product_over_matches():
    state, variance = np.array([1, 0, 0, 1, 1.0]), 0.4
    match = np.where(state == 1, BITS, 1 - BITS)
    factors = match + (1 - match) * np.exp(-1 / (2 * variance))
    expected = np.log(WEIGHTS / WEIGHTS.sum() @ factors.prod(axis=1))
    found = mixture_local_entropy(WEIGHTS, BITS, state, variance)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", TABLES)
def test_responsibilities_average_to_the_weights(kind):
    target = mixture(WEIGHTS, TABLES[kind])
    states = target.domain.enumerate()
    distribution = np.exp(np.asarray(jax.jit(jax.vmap(target.log_density))(states), float))
    found = distribution @ mixture_responsibilities(WEIGHTS, TABLES[kind], states)
    np.testing.assert_allclose(found, WEIGHTS / WEIGHTS.sum(), atol=ROUNDING)


# ---- the planted landscape: figures to three digits, as known from an independent enumeration ------------


@pytest.fixture(scope="module")
def planted_figures():
    """Flat responsibility, log-density and roughness of all 1024 states."""
    states = PLANTED.target.domain.enumerate()
    gaps = single_site_differences(PLANTED.target, states, exact=False)
    flat = mixture_responsibilities(PLANTED.weights, PLANTED.site_probabilities, states)[:, PLANTED.flat]
    return flat, gaps.log_density.astype(float), gaps.mean_absolute.astype(float)


def test_planted_patterns_are_four_flips_apart():
    distances = (PLANTED.patterns[:, None] != PLANTED.patterns).sum(axis=2)
    assert distances[~np.eye(7, dtype=bool)].min() >= 4


@pytest.mark.parametrize(
    ("strength", "flat_mass", "mean_log_density"),
    [(0.0, 0.220, -4.05), (0.25, 0.313, -4.49), (0.5, 0.420, -4.95), (1.0, 0.633, -5.80)],
)
def test_roughness_tilt_raises_the_flat_component_of_the_planted_mixture(
    planted_figures, strength, flat_mass, mean_log_density
):
    flat, log_density, roughness = planted_figures
    distribution = np.exp(log_density - strength * roughness)
    distribution /= distribution.sum()
    assert distribution @ flat == pytest.approx(flat_mass, abs=6e-4)
    assert distribution @ log_density == pytest.approx(mean_log_density, abs=6e-3)


@pytest.mark.parametrize(
    ("power", "flat_mass", "mean_log_density"), [(0.7, 0.414, -5.77), (0.5, 0.536, -7.02)]
)
def test_tempering_pays_more_log_density_for_the_same_flat_mass(
    planted_figures, power, flat_mass, mean_log_density
):
    flat, log_density, _ = planted_figures
    distribution = np.exp(power * log_density)
    distribution /= distribution.sum()
    assert distribution @ flat == pytest.approx(flat_mass, abs=6e-4)
    assert distribution @ log_density == pytest.approx(mean_log_density, abs=6e-3)


@pytest.mark.parametrize(("replicas", "variance", "flat_mass"), [(16, 2.0, 0.282), (4, 0.5, 0.009)])
def test_local_entropy_tilts_the_planted_mixture_by_known_amounts(
    planted_figures, replicas, variance, flat_mass
):
    flat, log_density, _ = planted_figures
    states = np.asarray(PLANTED.target.domain.enumerate())
    entropy = mixture_local_entropy(PLANTED.weights, PLANTED.site_probabilities, states, variance)
    scores = log_density + replicas * entropy
    distribution = np.exp(scores - scores.max())
    assert distribution @ flat / distribution.sum() == pytest.approx(flat_mass, abs=6e-4)


# ---- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "table", "message"),
    [
        ([1.0, 1.0], BITS, "shapes"),
        ([1.0, -1.0, 1.0], BITS, "positive"),
        ([1.0, np.nan, 1.0], BITS, "positive"),
        (WEIGHTS, np.where(BITS > 0.9, 1.0, BITS), "strictly between"),
        (WEIGHTS, np.full((3, 2), np.nan), "strictly between"),
        (WEIGHTS, 0.9 * LEVELS, "sum to 1"),
        (1.0, BITS, "shapes"),
    ],
)
def test_bad_mixtures_are_refused_with_a_sentence(weights, table, message):
    with pytest.raises(TargetError, match=message):
        mixture(weights, table)
