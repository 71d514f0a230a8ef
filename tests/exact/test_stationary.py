"""`recipe.stationary(target)` is what the recipe's own transition matrix leaves invariant."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from exact_targets import target_named
from steppe.diagnostics.exact import stationary_distribution, target_distribution, transition_matrix
from steppe.diagnostics.flatness import local_entropy_enumerated
from steppe.errors import DomainError, StationaryDistributionError
from steppe.samplers import ALL_RECIPES
from steppe.targets.bernoulli import paper_bernoulli

TOLERANCE = 1e-10
WITHOUT_CENTER = {
    "dmala": steppe.dmala(step_size=0.6),
    "dula": steppe.dula(step_size=0.6),
    "gibbs": steppe.gibbs(),
    "hot dmala": steppe.dmala(step_size=0.6).replace(inverse_temperature=0.3),
    "tilt by gradient": steppe.roughness_tilted(strength=1.5, step_size=0.6),
    "tilt by differences": steppe.roughness_tilted(strength=1.5, step_size=0.6, differences="exact"),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("recipe", WITHOUT_CENTER.values(), ids=WITHOUT_CENTER)
def test_enumerated_distribution_is_what_the_transition_matrix_leaves_invariant(recipe):
    target = target_named("ordinal", "smooth")
    distribution = recipe.stationary(target)
    invariant = stationary_distribution(transition_matrix(recipe, target))
    assert np.abs(distribution.probabilities() - invariant).max() <= TOLERANCE
    if not distribution.is_biased:
        logs = np.array([distribution.log_prob(position) for position in target.domain.enumerate()])
        assert np.abs(jax.nn.softmax(logs) - invariant).max() <= TOLERANCE


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["edmala", "edmala_glu", "edmala_ou"])
def test_coupled_recipes_have_the_joint_distribution_and_leave_the_position_the_target(name):
    target = target_named("ragged", "smooth")
    distribution = ALL_RECIPES[name](coupling_variance=0.5).stationary(target)
    assert np.abs(distribution.probabilities() - target_distribution(target)).max() <= TOLERANCE
    position, center = target.domain.draw(jax.random.key(0)), jnp.full(target.domain.shape, 0.3)
    tied = distribution.log_prob(position, center) - distribution.log_prob(position)
    np.testing.assert_allclose(tied, -jnp.sum((position - center) ** 2), rtol=1e-12)


def enumerated_ensemble(distribution, target, replicas):
    """Joint distribution of replicas and lattice center by brute force, through `distribution` itself."""
    states = target.domain.enumerate()
    cells = list(itertools.product(range(len(states)), repeat=replicas + 1))
    evaluate = jax.jit(jax.vmap(lambda cell: distribution.log_prob(states[cell[1:]], states[cell[0]])))
    logs = np.asarray(evaluate(jnp.asarray(cells)))
    return np.exp(logs - logs.max()).reshape((len(states),) * (replicas + 1))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("center_weight", [0.0, 0.7])
def test_marginals_of_an_ensemble_are_those_of_its_joint_distribution(center_weight):
    target = steppe.Target(lambda x: 1.3 * x[0] * x[1] - 0.4 * x[1] + 0.6 * x[2], steppe.Binary(3))
    distribution = steppe.robust_ensemble(
        replicas=2, coupling_variance=0.4, center="lattice", center_weight=center_weight
    ).stationary(target)
    joint = enumerated_ensemble(distribution, target, 2)
    joint /= joint.sum()
    assert np.abs(distribution.probabilities() - joint.sum(axis=(0, 2))).max() <= TOLERANCE
    center = distribution.center_log_prob(target.domain.enumerate())
    assert np.abs(jax.nn.softmax(center) - joint.sum(axis=(1, 2))).max() <= TOLERANCE


@pytest.mark.usefixtures("float64")
def test_two_replicas_about_a_real_center_are_weighted_by_local_entropy_at_twice_the_variance():
    target = target_named("binary", "smooth")
    distribution = steppe.robust_ensemble(replicas=2, coupling_variance=0.4).stationary(target)
    entropy = local_entropy_enumerated(target, target.domain.enumerate(), 0.8).value
    expected = target_distribution(target) * np.exp(entropy)
    assert np.abs(distribution.probabilities() - expected / expected.sum()).max() <= TOLERANCE


@pytest.mark.usefixtures("float64")
def test_many_replicas_about_a_real_center_agree_with_quadrature_over_it():
    target = steppe.Target(lambda x: 1.3 * x[0] * x[1] - 0.4 * x[1], steppe.Binary(2))
    distribution = steppe.robust_ensemble(replicas=3, coupling_variance=0.4).stationary(target)
    axis = np.linspace(-4, 5, 46)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    entropy = distribution.center_log_prob(grid) / 3
    states = np.asarray(target.domain.enumerate())
    ties = -((states[:, None] - grid) ** 2).sum(axis=-1) / 0.8
    weights = np.exp(2 * entropy + ties).sum(axis=1) * target_distribution(target)
    assert np.abs(distribution.probabilities() - weights / weights.sum()).max() <= 1e-8


@pytest.mark.slow
def test_unadjusted_coupled_distributions_have_the_printed_masses_on_the_papers_bits():
    sharp = [2, 7]
    masses = [
        float(recipe.stationary(paper_bernoulli()).probabilities()[sharp].sum())
        for recipe in (
            steppe.edula_glu(step_size=0.2, coupling_variance=0.1),
            steppe.edula(step_size=0.2, center_step_size=0.1, coupling_variance=0.1),
        )
    ]
    np.testing.assert_allclose(masses, [0.2031, 0.1726], atol=5.1e-5)


@pytest.mark.parametrize("make", [steppe.gwg, steppe.dula])
def test_distribution_of_a_function_with_a_numpy_array_of_its_own_is_known_after_sampling(make):
    """JAX remembers in which precision it met a NumPy array first; see `compute_in_double`."""
    field = np.linspace(-1, 1, 4)
    target = steppe.Target(lambda bits: jnp.sum(field * bits), steppe.Binary(4))
    steppe.sample(target, make(), key=jax.random.key(0), num_chains=1, num_warmup=4, num_draws=4)
    found = make().stationary(target).probabilities()
    if make is steppe.gwg:
        weights = np.exp(np.asarray(target.domain.enumerate()) @ field)
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-5)
    assert found.sum() == pytest.approx(1)


def test_every_recipe_states_its_distribution():
    for name, make in ALL_RECIPES.items():
        distribution = make().stationary(steppe.Target(jnp.sum, steppe.Binary(12)))
        assert distribution.is_biased == name.startswith(("dula", "edula"))
        assert ("biased" in distribution.description) == distribution.is_biased
        assert distribution.description.endswith(".")


BITS = steppe.Target(jnp.sum, steppe.Binary(12))
MANY = steppe.Target(jnp.sum, steppe.Binary(21))
MISTAKES = {
    "closed form of a biased distribution": (
        lambda: steppe.dula().stationary(BITS).log_prob(jnp.zeros(12)),
        StationaryDistributionError,
        "biased",
    ),
    "replicas without center": (
        lambda: steppe.robust_ensemble(replicas=2).stationary(BITS).log_prob(jnp.zeros((2, 12))),
        StationaryDistributionError,
        "2 replicas",
    ),
    "center without coupling": (
        lambda: steppe.dmala().stationary(BITS).center_log_prob(jnp.zeros(12)),
        StationaryDistributionError,
        "no distribution of a center",
    ),
    "too many positions": (lambda: steppe.dmala().stationary(MANY).probabilities(), DomainError, "2.1e+06"),
    "too many joint states": (
        lambda: steppe.robust_ensemble(replicas=3).stationary(BITS).probabilities(),
        DomainError,
        "6.9e+10",
    ),
    "center grid too large": (
        lambda: steppe.edula().stationary(BITS).probabilities(),
        DomainError,
        "grid of",
    ),
}


@pytest.mark.parametrize(("mistake", "error", "said"), MISTAKES.values(), ids=MISTAKES)
def test_distributions_that_cannot_be_had_are_refused(mistake, error, said):
    with pytest.raises(error) as caught:
        mistake()
    assert said in str(caught.value)
