"""Restricted Boltzmann machines: layer-wise Gibbs, normalising constants, training, cost."""

import os
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import rbm_reference
from scipy import stats

import steppe
from steppe import targets
from steppe.targets.rbm_normalizer import anneal_rbm

RNG = np.random.default_rng(11)
W, B, BV = RNG.normal(size=(3, 4)), RNG.normal(size=3), RNG.normal(size=4)
FALSE_ALARM = 1e-6


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def states(num_bits):
    return np.asarray(list(product((0.0, 1.0), repeat=num_bits)))


def normalize_table(weights, hidden_bias, visible_bias, power=1.0):
    values = np.asarray([rbm_reference(weights, hidden_bias, visible_bias)(v) for v in states(4)])
    distribution = np.exp(power * (values - values.max()))
    return distribution / distribution.sum()


def layerwise_matrix():
    """`T(v, v') = Σ_h p(h | v) p(v' | h)`, by enumeration."""
    matrix = np.zeros((16, 16))
    for row, visible in enumerate(states(4)):
        on = sigmoid(W @ visible + B)
        for hidden in states(3):
            weight = np.prod(np.where(hidden == 1, on, 1 - on))
            back = sigmoid(hidden @ W + BV)
            matrix[row] += weight * np.prod(np.where(states(4) == 1, back, 1 - back), axis=1)
    return matrix


@jax.jit
def step_many(sampler, keys, positions):
    return jax.vmap(lambda key, x: sampler.step(key, sampler.init(x))[0])(keys, positions)


def p_value(target, positions, distribution):
    counts = np.bincount(target.domain.index(positions), minlength=16)
    return stats.chisquare(counts, distribution * len(positions)).pvalue


def test_layerwise_gibbs_moves_with_the_enumerated_probabilities():
    # 40 000 draws from one state: an error of 0.01 in a probability of 0.1 gives a p-value below 1e-9.
    target = targets.rbm(W, B, BV)
    start = jnp.asarray([1.0, 0.0, 0.0, 1.0])
    keys = jax.random.split(jax.random.key(0), 40_000)
    ends = step_many(targets.layerwise_gibbs().build(target), keys, jnp.tile(start, (40_000, 1)))
    row = layerwise_matrix()[int(target.domain.index(start))]
    assert p_value(target, ends.position, row) > FALSE_ALARM
    assert p_value(target, ends.position, np.roll(row, 1)) < FALSE_ALARM  # the gate can fail
    fresh = jax.vmap(target.log_density)(ends.position)
    np.testing.assert_allclose(ends.log_density, fresh, rtol=1e-5)


@pytest.mark.parametrize("inverse_temperature", [1.0, 0.4, 2.0])
def test_layerwise_gibbs_keeps_the_distribution_at_any_temperature(inverse_temperature):
    # Started from the distribution itself, 40 000 chains stay there; a chain that ignored the temperature
    # would move
    # to a distribution at distance 0.1 or more, a p-value far below 1e-9.
    target = targets.rbm(W, B, BV)
    distribution = normalize_table(W, B, BV, inverse_temperature)
    recipe = targets.layerwise_gibbs().replace(inverse_temperature=inverse_temperature)
    starts = states(4)[np.random.default_rng(1).choice(16, size=40_000, p=distribution)]
    keys = jax.random.split(jax.random.key(1), 40_000)
    ends = step_many(recipe.build(target), keys, jnp.asarray(starts, jnp.float32))
    assert p_value(target, ends.position, distribution) > FALSE_ALARM


def test_layerwise_gibbs_is_sampled_like_any_recipe():
    run = steppe.sample(
        targets.rbm(W, B, BV), targets.layerwise_gibbs(), key=jax.random.key(0), num_warmup=10, num_draws=50
    )
    assert run.description.evaluations_per_step == 1
    assert run.data["posterior"]["position"].shape == (4, 50, 4)


def test_layerwise_gibbs_refuses_other_targets():
    with pytest.raises(steppe.errors.TargetError, match=r"rbm\(...\)"):
        targets.layerwise_gibbs().build(targets.qubo(np.eye(3)))


@pytest.mark.parametrize(("num_hidden", "num_visible"), [(3, 9), (9, 3), (13, 14)])
def test_exact_normaliser_is_the_sum_over_all_states(num_hidden, num_visible, float64):
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(num_hidden, num_visible))
    b, bv = rng.normal(size=num_hidden), rng.normal(size=num_visible)
    visible = states(num_visible)
    inputs = visible @ weights.T + b
    expected = np.logaddexp.reduce(np.logaddexp(0, inputs).sum(axis=1) + visible @ bv)
    found = steppe.log_normalizer(targets.rbm(weights, b, bv), key=jax.random.key(0))
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    assert found.standard_error == 0


def test_annealed_normaliser_and_its_error_are_honest():
    # 40 independent runs: their standardised deviations have mean 0 ± 1/√40 and variance 1. The gates allow
    # 5 standard errors of the mean (false alarm 6e-7) and the 1e-6 tails of χ²₄₀ for the spread, so a bias
    # of one standard error or an error figure wrong by a factor 2 is found.
    exact = steppe.log_normalizer(targets.rbm(W, B, BV), key=jax.random.key(0)).value
    runs = [
        anneal_rbm(W, B, BV, key, num_chains=200, num_temperatures=100)
        for key in jax.random.split(jax.random.key(5), 40)
    ]
    deviations = np.asarray([(run.value - exact) / run.standard_error for run in runs])
    assert abs(deviations.mean()) < 5 / np.sqrt(len(runs))
    low, high = stats.chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], len(runs))
    assert low < np.sum(deviations**2) < high


@pytest.mark.slow
def test_both_layers_have_the_normaliser_and_the_visible_distribution_of_one():
    # Two estimates at five standard errors (false alarm 6e-7 each) against a sum.
    target = targets.rbm(W, B, BV)
    exact = steppe.log_normalizer(target, key=jax.random.key(0))
    assert steppe.log_normalizer(target.with_hidden(), key=jax.random.key(0)).value == pytest.approx(
        exact.value, rel=1e-5
    )
    found = steppe.log_normalizer(target, key=jax.random.key(3), exact=False, num_temperatures=200)
    assert found.annealed is not None
    for estimate in (found.tempered, found.annealed):
        assert abs(estimate.value - exact.value) < 5 * estimate.standard_error < 0.5


def test_base_bias_changes_the_path_but_not_the_answer():
    exact = steppe.log_normalizer(targets.rbm(W, B, BV), key=jax.random.key(0)).value
    run = anneal_rbm(W, B, BV, jax.random.key(1), base_bias=0.5, num_chains=200, num_temperatures=100)
    assert abs(run.value - exact) < 5 * run.standard_error < 0.5  # false alarm 6e-7


def test_machine_under_training_is_made_inside_a_compiled_function():
    data = states(4)

    @jax.jit
    def gradient_of_free_energy(weights):
        return jax.grad(lambda w: jnp.mean(jax.vmap(targets.rbm(w, B, BV).log_density)(data)))(weights)

    expected = np.mean([np.outer(sigmoid(W @ v + B), v) for v in data], axis=0)
    np.testing.assert_allclose(gradient_of_free_energy(W), expected, rtol=1e-5)


def test_new_weights_never_recompile():
    traces = []

    @jax.jit
    def step(sampler, key, state):
        traces.append(1)
        return sampler.step(key, state)

    for seed in range(3):
        weights = np.random.default_rng(seed).normal(size=(3, 4))
        sampler = steppe.edmala().build(targets.rbm(weights, B + seed, BV - seed))
        step(sampler, jax.random.key(0), sampler.init(jnp.zeros(4)))
    assert len(traces) == 1


def flops_of_step(recipe, num_visible):
    target = targets.rbm(np.zeros((400, num_visible)), 0.0, 0.0)
    sampler = recipe.build(target)
    state = jax.eval_shape(sampler.init, jnp.zeros(num_visible))
    lowered = jax.jit(sampler.step).lower(jax.random.key(0), state)
    return lowered.compile().cost_analysis()["flops"]


def test_hamming_ball_costs_the_hidden_layer_only():
    # One full product is 2·400·visible operations; a step may cost a few per visible site for copies.
    recipe = steppe.hamming_ball(block_size=4, radius=1)
    more = flops_of_step(recipe, 3000) - flops_of_step(recipe, 1000)
    assert more < 0.05 * 2 * 400 * 2000


def test_cached_inputs_drift_by_rounding_only():
    # An update rounds every input (size up to 32) by at most 2⁻²⁰ and the log-density (up to 1024) by at most
    # 2⁻¹⁵. 20 000 independent roundings add up to about √20000 times a third of that, 5e-5 and 1.4e-3; the
    # gates are ten times as wide.
    rng = np.random.default_rng(3)
    target = targets.rbm(rng.normal(size=(50, 60)), 0.0, 0.0)
    sampler = steppe.gibbs(num_updates=20_000).build(target)
    state, _ = jax.jit(sampler.step)(jax.random.key(1), sampler.init(jnp.zeros(60)))
    fresh = target.incremental.init(state.position)
    assert np.abs(np.asarray(state.memory[0].cache) - np.asarray(fresh)).max() < 5e-4
    np.testing.assert_allclose(state.log_density, target.log_density(state.position), rtol=0, atol=0.014)


@pytest.mark.slow
@pytest.mark.skipif("STEPPE_DATA" not in os.environ, reason="set STEPPE_DATA to a directory with the data")
def test_published_machine_has_the_published_normaliser_and_test_likelihood():
    """Salakhutdinov and Murray 2008, CD25: log Z 451.28 and -86.34 nats on the binarised MNIST test set."""
    from scipy.io import loadmat

    data = Path(os.environ["STEPPE_DATA"])
    machine = loadmat(data / "rbm_checkpoints" / "mnistvh_CD25.mat")
    train = loadmat(data / "mnist_binarized" / "binarized_mnist_train.mat")["X"]
    test = loadmat(data / "mnist_binarized" / "binarized_mnist_test.mat")["X"]
    mean = (train.sum(axis=0) + 5.0) / (len(train) + 10.0)
    target = targets.rbm(machine["vishid"].T, machine["hidbiases"].ravel(), machine["visbiases"].ravel())
    layers = target.weights, target.hidden_bias, target.visible_bias
    annealed = anneal_rbm(*layers, jax.random.key(0), base_bias=np.log(mean / (1 - mean)))
    value, error = annealed.value, annealed.standard_error
    values = jax.jit(jax.vmap(target.log_density))(jnp.asarray(test, jnp.float32))
    # The published figures are annealed estimates as well, with a standard error of about 0.1. Five combined
    # standard errors: false alarm 6e-7; a normaliser off by 1 nat is found.
    allowed = 5 * np.hypot(error, 0.1)
    assert error < 0.15
    assert abs(value - 451.28) < allowed
    assert abs(float(values.mean()) - value - -86.34) < allowed
