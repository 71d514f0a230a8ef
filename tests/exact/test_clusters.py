"""Swendsen–Wang and Wolff: transition matrices, draws, energies of lattices, and frustrated bonds.

False alarms: p-values of the draws are held against 1e-7; there are fewer than 20. The energy is held against
4 standard errors: once in 15 000.
"""

import jax
import numpy as np
import pytest
import scipy.stats

import steppe
from contract.cases import quick_jit
from kaufman import kaufman_energy
from steppe import targets
from steppe.diagnostics.exact import target_distribution, transition_matrix
from steppe.errors import RecipeError

FALSE_ALARM = 1e-7
CYCLE = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
TARGETS = {
    "lattice": lambda: targets.ising_lattice((2, 3), 0.4, periodic=False),
    "field": lambda: targets.ising_graph(CYCLE, [0.3, 0.8, 0.1, 0.5], field=[0.2, -0.7, 0.0, 0.4]),
    "balanced, bits": lambda: targets.ising_graph(CYCLE, [-0.6, 0.8, -0.4, 0.5], field=0.3, spins=False),
    "matrix": lambda: targets.ising(0.3 * (np.eye(4, k=1) + np.eye(4, k=-1)), [0.1, 0.0, -0.5, 0.2]),
    "max-cut of a tree": lambda: targets.max_cut(CYCLE[:3], [1.0, 2.0, 0.5], inverse_temperature=0.7),
    "potts": lambda: targets.potts(CYCLE[:3], 3, [0.5, 0.8, 0.3]),
    "potts, field": lambda: targets.potts(CYCLE[:3], 3, 0.6, [0.4, 0.0, -0.3]),
}
RECIPES = {"swendsen_wang": steppe.swendsen_wang(), "wolff": steppe.wolff()}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", RECIPES)
def test_clusters_satisfy_detailed_balance(name, target_name):
    target = TARGETS[target_name]()
    distribution, matrix = target_distribution(target), transition_matrix(RECIPES[name], target)
    flow = distribution[:, None] * matrix
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    assert np.abs(flow - flow.T).max() <= 1e-12


def p_value(counts, row):
    is_expected = row * counts.sum() > 5
    observed = np.append(counts[is_expected], counts[~is_expected].sum())
    expected = np.append(row[is_expected], max(row[~is_expected].sum(), 1e-12))
    return scipy.stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", RECIPES)
def test_draws_follow_the_matrix(name, target_name):
    target = TARGETS[target_name]()
    sampler, place = RECIPES[name].build(target), int(target_distribution(target).argmax())
    row = np.asarray(transition_matrix(RECIPES[name], target)[place], float)
    state = sampler.init(target.domain.enumerate()[place])
    keys = jax.random.split(jax.random.key(5), 20_000)
    ends = quick_jit(lambda keys: jax.vmap(sampler.step, (0, None))(keys, state)[0])(keys)
    counts = np.bincount(np.asarray(target.domain.index(ends.position)), minlength=len(row))
    assert p_value(counts, row) > FALSE_ALARM
    # Bonds closed as if it were colder are another kernel, and are seen.
    wrong = RECIPES[name].replace(inverse_temperature=1.5).build(target)
    other = np.asarray(wrong.recipe.blocks[0].transition_matrix(wrong.density, None)[place], float)
    assert p_value(counts, other) < FALSE_ALARM


@pytest.mark.parametrize("name", RECIPES)
def test_many_chains_step_as_each_of_them_alone(name):
    target = targets.ising_lattice((6, 6), 0.4, field=0.05)
    sampler = RECIPES[name].build(target)
    keys = jax.random.split(jax.random.key(2), 5)
    states = jax.vmap(sampler.init)(target.domain.draw(jax.random.key(1), (5,)))
    together, _ = jax.jit(jax.vmap(sampler.step))(keys, states)
    step = jax.jit(sampler.step)
    for chain, key in enumerate(keys):
        alone, _ = step(key, jax.tree.map(lambda leaf: leaf[chain], states))  # noqa: B023
        np.testing.assert_array_equal(together.position[chain], alone.position)


def test_kaufmans_sum_is_that_of_all_states():
    target = targets.ising_lattice((4, 4), 0.4)
    energies = np.asarray(jax.vmap(target.unscale)(target.domain.enumerate()) / 0.4, float)
    weights = np.exp(0.4 * (energies - energies.max()))
    assert kaufman_energy(4, 0.4) == pytest.approx(weights @ energies / weights.sum(), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "temperature"),
    [("swendsen_wang", 2.3), pytest.param("chromatic_gibbs", 3.0, marks=pytest.mark.slow)],
)
def test_mean_energy_of_a_lattice_is_kaufmans(name, temperature):
    coupling, length = 1 / temperature, 32
    target = targets.ising_lattice((length, length), coupling)
    run = steppe.sample(
        target, getattr(steppe, name)(), key=jax.random.key(0), num_chains=20, num_warmup=200, num_draws=400,
        keep="stats", progress=False,
    )  # fmt: skip
    means = run.trace.statistic("log_density").astype(float).mean(axis=1) / coupling
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert abs(means.mean() - kaufman_energy(length, coupling)) < 4 * error
    assert error < 0.01 * means.mean()


@pytest.mark.slow
@pytest.mark.parametrize(("length", "num_draws"), [(32, 2500), (64, 2400), (128, 1000)])
@pytest.mark.parametrize(("name", "temperature"), [("swendsen_wang", 2.3), ("chromatic_gibbs", 3.0)])
def test_mean_energies_of_larger_lattices_are_kaufmans_to_a_thousandth(name, temperature, length, num_draws):
    """Within 4 standard errors of 20 chains: one false alarm in 1300 seeds each."""
    coupling = 1 / temperature
    target = targets.ising_lattice((length, length), coupling)
    run = steppe.sample(
        target, getattr(steppe, name)(), key=jax.random.key(1), num_chains=20, num_warmup=num_draws // 4,
        num_draws=num_draws, keep="stats", progress=False,
    )  # fmt: skip
    means = run.trace.statistic("log_density").astype(float).mean(axis=1) / coupling
    error = means.std(ddof=1) / np.sqrt(len(means))
    exact = kaufman_energy(length, coupling)
    assert abs(means.mean() - exact) < 4 * error
    assert error < 0.001 * exact


@pytest.mark.parametrize("name", RECIPES)
def test_frustrated_bonds_are_refused_with_the_reason(name):
    with pytest.raises(RecipeError, match=r"frustrated: a cycle through site \d has an odd number"):
        RECIPES[name].build(targets.ising_graph(CYCLE, [1.0, 1.0, 1.0, -1.0]))
    with pytest.raises(RecipeError, match=r"favour disagreement"):
        RECIPES[name].build(targets.potts(CYCLE, 3, -0.5))
    with pytest.raises(RecipeError, match=r"not a sum over pairs"):
        RECIPES[name].build(targets.qubo(np.eye(3)))
