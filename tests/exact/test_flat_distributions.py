"""The samplers that favour flat modes have exactly the distribution they claim."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import DOMAIN_CASES, polynomial_target, target_named
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.kernel.density import mean_roughness
from steppe.kernel.keys import Keys
from steppe.kernel.types import ChainState

pytestmark = pytest.mark.usefixtures("float64")

TOLERANCE = 1e-12


def normalised(stationary: np.ndarray) -> np.ndarray:
    distribution = np.exp(stationary - stationary.max())
    return distribution / distribution.sum()


def roughness(target: steppe.Target, differences: str) -> np.ndarray:
    """Mean absolute one-site difference of every position, by plain loops over the table."""
    domain, rough = target.domain, []
    positions = domain.enumerate()
    tables = np.asarray(difference_tables(target, differences == "exact"))
    for levels, table in zip(np.asarray(domain.to_levels(positions)), tables, strict=True):
        changes = [
            abs(float(table[site, level]))
            for site in range(domain.num_sites)
            for level in range(domain.num_levels[site])
            if level != levels[site]
        ]
        rough.append(np.mean(changes))
    return np.asarray(rough)


@partial(jax.jit, static_argnums=1)
def difference_tables(target: steppe.Target, exact: bool):
    def first_order(position):
        return target.domain.slopes(position, target.value_and_grad(position)[1])

    return jax.vmap(target.differences if exact else first_order)(target.domain.enumerate())


@pytest.mark.parametrize("differences", ["gradient", pytest.param("exact", marks=pytest.mark.slow)])
@pytest.mark.parametrize("domain", DOMAIN_CASES)
def test_roughness_tilt_satisfies_detailed_balance_for_its_own_distribution(domain, differences):
    target, strength = target_named(domain, "smooth"), 1.7
    recipe = steppe.roughness_tilted(strength=strength, step_size=0.6, differences=differences)
    distribution = normalised(np.log(target_distribution(target)) - strength * roughness(target, differences))
    matrix = transition_matrix(recipe, target)
    flow = distribution[:, None] * matrix
    assert np.abs(flow - flow.T).max() <= TOLERANCE
    assert np.abs(matrix - transition_matrix(steppe.dmala(step_size=0.6), target)).max() > 1e-3


def test_mean_roughness_leaves_out_invalid_neighbours():
    domain = steppe.Binary(2)
    table = jnp.asarray([[0.0, 3.0], [0.0, -jnp.inf]])
    assert float(mean_roughness(domain, jnp.zeros(2), table)) == 3.0


@pytest.mark.parametrize(
    ("tilted", "plain"),
    [
        (steppe.roughness_tilted(strength=0.0, step_size=0.6), steppe.dmala(step_size=0.6)),
        (
            steppe.roughness_tilted(strength=0.0, step_size=0.6, base="glu", coupling_variance=0.5),
            steppe.edmala_glu(step_size=0.6, coupling_variance=0.5),
        ),
    ],
    ids=["dmala", "glu"],
)
def test_tilt_of_strength_zero_is_its_base_bit_for_bit(tilted, plain):
    target = target_named("ordinal", "steep")
    assert_same_path(tilted.build(target), plain.build(target), target)


def test_one_replica_with_a_gaussian_center_is_edmala_glu_bit_for_bit():
    target = target_named("ragged", "smooth")
    ensemble = steppe.robust_ensemble(replicas=1, coupling_variance=0.5, step_size=0.6).build(target)
    assert_same_path(ensemble, steppe.edmala_glu(step_size=0.6, coupling_variance=0.5).build(target), target)


def assert_same_path(first, second, target, num_steps: int = 200) -> None:
    start = target.domain.draw(jax.random.key(3))
    keys = jax.random.split(jax.random.key(4), num_steps)

    def path(sampler):
        walk = jax.jit(lambda state: jax.lax.scan(lambda s, k: (sampler.step(k, s)[0],) * 2, state, keys))
        return walk(sampler.init(start))[1]

    one, other = path(first), path(second)
    assert bool(jnp.all(one.position.reshape(other.position.shape) == other.position))
    assert bool(jnp.all(one.log_density.reshape(other.log_density.shape) == other.log_density))
    if other.center is not None:
        assert bool(jnp.all(one.center == other.center))


# ---- the ensemble with a lattice center, enumerated ------------------------------------------------

ENSEMBLE_DOMAINS = {
    "bits": steppe.Binary(3),
    "ordinal": steppe.Ordinal(2, [-1.0, 0.1, 0.8]),
    "ragged": steppe.Categorical(2, [2, 3]),
}


def joint_log_distribution(target: steppe.Target, variance: float, center_weight: float) -> np.ndarray:
    """Log-probability of (center, copy, copy) over all triples of positions."""
    values = np.log(target_distribution(target))
    flat = np.asarray(target.domain.enumerate()).reshape(target.domain.num_states, -1)
    tied = -((flat[:, None] - flat[None]) ** 2).sum(-1) / (2 * variance)
    per_copy = values[None, :] + tied
    return center_weight * values[:, None, None] + per_copy[:, :, None] + per_copy[:, None, :]


@pytest.mark.parametrize("domain", ENSEMBLE_DOMAINS)
def test_ensemble_of_two_copies_and_a_lattice_center_leaves_the_joint_invariant(domain):
    target, variance = polynomial_target(ENSEMBLE_DOMAINS[domain], 2.0), 0.4
    recipe = steppe.robust_ensemble(replicas=2, coupling_variance=variance, step_size=0.6, center="lattice")
    distribution = normalised(joint_log_distribution(target, variance, 0.0))
    moved = redraw_center(recipe, target, distribution)
    assert np.abs(moved - distribution).max() <= TOLERANCE
    for index, center in enumerate(target.domain.enumerate()):
        matrix = transition_matrix(
            steppe.edmala_glu(step_size=0.6, coupling_variance=variance), target, center=center
        )
        moved[index] = matrix.T @ distribution[index] @ matrix
    assert np.abs(moved - distribution).max() <= TOLERANCE


def redraw_center(recipe, target, distribution: np.ndarray) -> np.ndarray:
    """Push the distribution through the center draw of the sampler, using its own logits."""
    sampler = recipe.build(target)
    positions = target.domain.enumerate()
    levels = np.asarray(target.domain.to_levels(positions))

    def log_probs(first, second):
        state = ChainState(jnp.stack([first, second]), None, None)
        draw = sampler.recipe.blocks[0].proposal.at(sampler.density, state)
        return jax.nn.log_softmax(draw.logits, axis=-1)

    over_pairs = jax.vmap(jax.vmap(log_probs, (None, 0)), (0, None))
    table = np.asarray(jax.jit(over_pairs)(positions, positions))
    center_distributions = np.exp(table[:, :, np.arange(levels.shape[1]), levels].sum(axis=-1))
    return distribution.sum(axis=0) * np.moveaxis(center_distributions, -1, 0)


def test_lattice_center_is_drawn_with_the_probabilities_of_its_logits():
    """χ² of 200 000 draws; false-alarm rate 1e-7, detects a total variation of 0.01."""
    from scipy.stats import chisquare

    target = polynomial_target(steppe.Binary(3), 2.0)
    sampler = steppe.robust_ensemble(
        replicas=2, coupling_variance=0.4, step_size=0.6, center="lattice"
    ).build(target)
    copies = target.domain.enumerate()[jnp.asarray([1, 6])]
    block: Any = sampler.recipe.blocks[0]
    draw = block.proposal.at(sampler.density, ChainState(copies, None, None))
    keys = jax.random.split(jax.random.key(5), 200_000)
    centers = jax.jit(jax.vmap(lambda key: draw.sample(Keys.of_step(key))))(keys)
    counts = np.bincount(np.asarray(target.domain.index(centers)), minlength=8)
    bits = np.asarray(target.domain.enumerate()).astype(int)
    log_probs = np.asarray(jax.nn.log_softmax(draw.logits, axis=-1))
    expected = np.exp(log_probs[np.arange(3), bits].sum(axis=1)) * len(keys)
    assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-7


def test_center_distribution_is_the_local_entropy_and_two_replicas_weigh_pi_with_it():
    """Marginals of the enumerated joint: exp(γU + yF) for the center; π·exp(F(2η)) for a Gaussian pair."""
    target, variance, weight = polynomial_target(steppe.Binary(3), 2.0), 0.4, 1.3
    values = np.log(target_distribution(target))
    flat = np.asarray(target.domain.enumerate())
    squared = ((flat[:, None] - flat[None]) ** 2).sum(-1)

    def local_entropy(eta: float) -> np.ndarray:
        return np.log(np.exp(values[None] - squared / (2 * eta)).sum(axis=1))

    distribution = normalised(joint_log_distribution(target, variance, weight))
    expected = normalised(weight * values + 2 * local_entropy(variance))
    assert np.abs(distribution.sum(axis=(1, 2)) - expected).max() <= TOLERANCE
    pair = values[:, None] + values[None] - squared / (4 * variance)
    assert (
        np.abs(normalised(pair).sum(axis=1) - normalised(values + local_entropy(2 * variance))).max() <= 1e-12
    )
