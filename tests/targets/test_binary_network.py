"""Binary networks against slow NumPy loops, their scales, their memory, their refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import targets
from steppe.errors import TargetError
from steppe.targets import binary_network_model
from steppe.targets.binary_network import BinaryNetwork

RNG = np.random.default_rng(5)
ROWS, FEATURES, HIDDEN = 11, 3, 4
X, Y = RNG.normal(size=(ROWS, FEATURES)), RNG.uniform(size=ROWS)
NUM_BITS = (FEATURES + 2) * HIDDEN + 1
PRESETS = ("well_posed", "published", "printed")
ROUNDING = 1e-11


def slow_output(bits, x, input_scale=1.0, output_scale=1.0, offset=0.0):
    """One network on one row, weight by weight, from the layout the paper's code has."""
    weights = [2 * bit - 1 for bit in bits]
    inner, b1 = weights[: FEATURES * HIDDEN], weights[FEATURES * HIDDEN : (FEATURES + 1) * HIDDEN]
    w2, b2 = weights[(FEATURES + 1) * HIDDEN : -1], weights[-1]
    total = b2
    for unit in range(HIDDEN):
        inputs = b1[unit] + sum(x[f] * inner[f * HIDDEN + unit] for f in range(FEATURES))
        total += w2[unit] * np.tanh(input_scale * inputs)
    return 1 / (1 + np.exp(-(output_scale * total + offset)))


def scales(preset):
    if preset != "well_posed":
        return {}
    mean = Y.mean()
    spread = 1.5 * Y.std() / (mean * (1 - mean))
    return {
        "input_scale": 1 / np.sqrt(FEATURES),
        "output_scale": spread / np.sqrt(HIDDEN),
        "offset": np.log(mean / (1 - mean)),
    }


def slow_log_density(preset):
    factor = {"well_posed": 500 / Y.var(), "published": 100, "printed": ROWS}[preset]

    def value(bits):
        squares = [(slow_output(bits, x, **scales(preset)) - y) ** 2 for x, y in zip(X, Y, strict=True)]
        return -factor * np.mean(squares)

    return value


def slow_gradient(function, bits, step=1e-5):
    gradient = np.empty(len(bits))
    for site in range(len(bits)):
        up, down = bits.copy(), bits.copy()
        up[site] += step
        down[site] -= step
        gradient[site] = (function(up) - function(down)) / (2 * step)
    return gradient


def slow_differences(function, bits):
    table = np.zeros((len(bits), 2))
    for site in range(len(bits)):
        moved = bits.copy()
        moved[site] = 1 - moved[site]
        table[site, int(moved[site])] = function(moved) - function(bits)
    return table


@jax.jit
def evaluate(target, stack):
    return (
        jax.vmap(target.value_and_grad)(stack),
        jax.lax.map(target.value_and_grad, stack),
        jax.lax.map(target.log_density, stack),
        jax.lax.map(target.differences, stack),
    )


@pytest.fixture
def small_blocks(monkeypatch):
    """Rows in blocks of unequal length, the last overlapping the one before."""
    monkeypatch.setattr(binary_network_model, "MAX_ACTIVATIONS", 4 * 3 * HIDDEN)
    jax.clear_caches()


@pytest.mark.usefixtures("float64", "small_blocks")
@pytest.mark.parametrize("preset", PRESETS)
def test_every_path_matches_the_slow_network(preset):
    target = targets.binary_network(X, Y, HIDDEN, preset=preset)
    assert target.domain == steppe.Binary(NUM_BITS)
    slow = slow_log_density(preset)
    stack = np.random.default_rng(1).integers(0, 2, (3, NUM_BITS)).astype(float)
    (values, gradients), (single, single_gradients), densities, tables = evaluate(target, jnp.asarray(stack))
    expected = [slow(bits) for bits in stack]
    for found in (values, single, densities):
        np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    np.testing.assert_allclose(gradients, single_gradients, rtol=ROUNDING, atol=ROUNDING)
    # A difference quotient of step 1e-5 of a value of order 1000 is good to 1e-8 of it.
    np.testing.assert_allclose(gradients[0], slow_gradient(slow, stack[0]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tables[0], slow_differences(slow, stack[0]), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("float64")
def test_the_incremental_form_follows_single_flips_of_every_kind_of_weight():
    target = targets.binary_network(X, Y, HIDDEN)
    incremental = target.incremental
    position = jnp.asarray(np.random.default_rng(2).integers(0, 2, NUM_BITS).astype(float))
    memory = incremental.init(position)
    sites = jnp.arange(NUM_BITS)
    follow, at = jax.jit(incremental.update), jax.jit(incremental.differences)
    for site in (0, 5, FEATURES * HIDDEN + 1, (FEATURES + 1) * HIDDEN + 2, NUM_BITS - 1, 5):
        np.testing.assert_allclose(
            at(memory, position, sites), target.differences(position), rtol=1e-9, atol=1e-9
        )
        level = 1 - int(position[site])
        memory = follow(memory, position, site, jnp.asarray(level))
        position = position.at[site].set(level)
        stays = follow(memory, position, site, jnp.asarray(level))
        fresh = incremental.init(position)
        for after, kept, wanted in zip(memory, stays, fresh, strict=True):
            np.testing.assert_allclose(after, wanted, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(kept, wanted, rtol=1e-9, atol=1e-9)


def test_a_large_table_has_no_incremental_form():
    x, y = np.zeros((2**15, 1)), np.full(2**15, 0.5)
    assert targets.binary_network(x, y, 64).incremental is not None
    assert targets.binary_network(x, y, 65).incremental is None


@pytest.mark.usefixtures("float64")
def test_predictions_and_their_figures_match_the_slow_network():
    target = targets.binary_network(X, Y, HIDDEN, preset="published")
    positions = jnp.asarray(np.random.default_rng(3).integers(0, 2, (2, 3, NUM_BITS)).astype(float))
    new_x, new_y = RNG.normal(size=(5, FEATURES)), RNG.uniform(size=5)
    slow = np.asarray([[[slow_output(bits, x) for x in new_x] for bits in chain] for chain in positions])
    np.testing.assert_allclose(target.predictions(positions, new_x), slow, rtol=ROUNDING)
    mean = slow.mean((0, 1))
    np.testing.assert_allclose(target.posterior_mean(positions, new_x), mean, rtol=ROUNDING)
    assert target.rmse(positions, new_x, new_y) == pytest.approx(np.sqrt(np.mean((mean - new_y) ** 2)))
    likelihood = -np.mean((slow - new_y) ** 2, axis=-1)
    np.testing.assert_allclose(target.log_likelihood(positions, new_x, new_y), likelihood, rtol=ROUNDING)


def test_temperature_is_a_leaf_and_changes_nothing_else():
    target = targets.binary_network(X, Y, HIDDEN)
    hot = target.with_temperature(30.0)
    assert isinstance(hot, BinaryNetwork)
    assert float(hot.temperature) == 30
    traces = []

    @jax.jit
    def value(target, position):
        traces.append(position)
        return target.log_density(position)

    position = jnp.ones(NUM_BITS)
    ratio = float(target.temperature) / 30
    np.testing.assert_allclose(value(target, position), ratio * value(hot, position), rtol=1e-5)
    assert len(traces) == 1
    annealed = jax.jit(lambda t: target.with_temperature(t).log_density(position))
    np.testing.assert_allclose(annealed(30.0), value(hot, position), rtol=1e-6)


def test_well_posed_random_networks_predict_the_mean_with_the_spread_of_the_data():
    # 200 random networks of 25 units, outputs of spread 0.05 and nearly independent between networks: the
    # standard error of the mean is below 0.005 and that of the spread below 7 %, so both bounds are beyond
    # four standard errors. Without the scales the spread would be six times that of the data.
    rng = np.random.default_rng(7)
    for features in (4, 80):
        x, y = rng.normal(size=(50, features)), 0.3 + 0.05 * rng.normal(size=50)
        target = targets.binary_network(x, y, 25)
        outputs = target.predictions(target.domain.draw(jax.random.key(0), (200,)), x)
        assert float(outputs.mean()) == pytest.approx(y.mean(), abs=0.02)
        assert 0.5 * y.std() < float(outputs.std()) < 2 * y.std()


def test_every_langevin_sampler_and_gibbs_run_on_it():
    target = targets.binary_network(X, Y, HIDDEN, preset="published")
    position = jnp.zeros(NUM_BITS)
    for recipe in (steppe.dmala(), steppe.gibbs()):
        sampler = recipe.build(target)
        state, _ = jax.jit(sampler.step)(jax.random.key(0), sampler.init(position))
        np.testing.assert_allclose(state.log_density, target.log_density(state.position), rtol=1e-4)


def test_memory_of_a_step_does_not_grow_with_the_rows():
    # Adult with 50 networks of 100 units: activations of all rows at once would be 600 MB apiece.
    x, y = np.zeros((30_000, 88), np.float32), np.full(30_000, 0.25, np.float32)
    target = targets.binary_network(x, y, 100)
    stack = jax.ShapeDtypeStruct((50, target.domain.num_sites), jnp.float32)
    step = jax.jit(lambda target, stack: jax.vmap(target.value_and_grad)(stack))
    memory = step.lower(target, stack).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 100e6


REFUSED = {
    "no hidden unit": (lambda: targets.binary_network(X, Y, 0), r"hidden=.*at least 1; got 0"),
    "rows that do not match": (lambda: targets.binary_network(X, Y[1:], 2), r"`y`.*11; got 10"),
    "targets out of range": (lambda: targets.binary_network(X, Y + 1, 2), r"`y`.*\[0, 1\].*Map it"),
    "empty table": (lambda: targets.binary_network(X[:0], Y[:0], 2), r"x=.*rows and columns.*\(0, 3\)"),
    "NaN": (lambda: targets.binary_network(X * np.nan, Y, 2), r"x=.*finite"),
    "one axis": (lambda: targets.binary_network(Y, Y, 2), r"x=.*2 axes"),
    "no such preset": (lambda: targets.binary_network(X, Y, 2, preset="best"), r"preset=.*'well_posed' or"),
    "temperature": (lambda: targets.binary_network(X, Y, 2, temperature=0), r"temperature=.*positive; got 0"),
    "traced data": (lambda: jax.jit(lambda x: targets.binary_network(x, Y, 2))(X), "outside `jit`"),
    "other positions": (
        lambda: targets.binary_network(X, Y, 2).predictions(jnp.zeros(3), X),
        r"of 11 bits.*got \(3,\)",
    ),
    "other features": (
        lambda: targets.binary_network(X, Y, 2).predictions(jnp.zeros(11), X[:, 1:]),
        r"3 inputs; got a table of shape \(11, 2\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case):
    build, complaint = REFUSED[case]
    with pytest.raises(TargetError, match=complaint):
        build()


def test_a_mean_of_zero_or_one_still_has_finite_scales():
    target = targets.binary_network(X, np.zeros(ROWS), HIDDEN)
    assert np.isfinite(target.log_density(jnp.zeros(NUM_BITS)))
