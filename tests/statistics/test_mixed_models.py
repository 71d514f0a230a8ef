"""Mixed models: chains that start in the exact joint distribution of a Gaussian mixture stay in it."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy import stats

import steppe
from steppe.kernel.blocks.reals import GivenReals, HamiltonianBlock
from steppe.kernel.compose import Recipe, recipe
from steppe.kernel.density import JointDensity
from steppe.kernel.keys import Keys
from steppe.kernel.types import ChainState, StepInfo

pytest.importorskip("blackjax")

# Chance that a right kernel is refused, all figures of one test together.
FALSE_ALARM = 1e-4
NUM_CHAINS, NUM_STEPS = 20_000, 4
DATA = np.asarray([-1.6, -0.4, 0.3, 1.1, 1.9])
WEIGHT, PRIOR = 0.6, 2.0


def log_density(x: dict[str, Array]) -> Array:
    """Two components of variance 1 with weights 0.4 and 0.6, their means normal with deviation 2."""
    means = x["mu"][0] + x["z"] * (x["mu"][1] - x["mu"][0])
    prior = jnp.sum(x["z"]) * np.log(WEIGHT / (1 - WEIGHT)) - 0.5 * jnp.sum((x["mu"] / PRIOR) ** 2)
    return prior - 0.5 * jnp.sum((DATA - means) ** 2)


TARGET = steppe.Target(log_density, steppe.Product(z=steppe.Binary(5), mu=steppe.Real(2, scale=PRIOR)))
STATES = np.asarray(TARGET.domain.enumerate())


def marginalise() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of labels, means integrated out; mean and deviation of the means given labels."""
    chosen = np.stack([1 - STATES, STATES], axis=1)
    precision = chosen.sum(axis=2) + PRIOR**-2
    mean = (chosen @ DATA) / precision
    log_weight = STATES.sum(axis=1) * np.log(WEIGHT / (1 - WEIGHT)) - 0.5 * np.sum(DATA**2)
    log_weight = log_weight + 0.5 * np.sum(mean**2 * precision - np.log(precision), axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), mean, precision**-0.5


PROBABILITIES, MEANS, DEVIATIONS = marginalise()


def p_values(labels: np.ndarray, means: np.ndarray) -> list[float]:
    """Of the labels by a chi-square test, of every mean and their difference by Kolmogorov and Smirnov."""
    counts = np.bincount(labels, minlength=len(STATES))
    assert PROBABILITIES.min() * counts.sum() > 20  # as a chi-square test wants it
    found = [float(stats.chisquare(counts, PROBABILITIES * counts.sum()).pvalue)]
    for center, spread, values in (
        (MEANS[:, 0], DEVIATIONS[:, 0], means[:, 0]),
        (MEANS[:, 1], DEVIATIONS[:, 1], means[:, 1]),
        (MEANS[:, 1] - MEANS[:, 0], np.hypot(*DEVIATIONS.T), means[:, 1] - means[:, 0]),
    ):
        cdf = partial(_mix_cdf, center, spread)
        found.append(float(stats.kstest(values, cdf).pvalue))
    return found


def _mix_cdf(center: np.ndarray, spread: np.ndarray, at: np.ndarray) -> np.ndarray:
    return stats.norm.cdf((at[:, None] - center) / spread) @ PROBABILITIES


def run_from_stationarity(made: Recipe, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and means of independent chains, a few steps after exact draws."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(STATES), NUM_CHAINS, p=PROBABILITIES)
    means = MEANS[labels] + DEVIATIONS[labels] * rng.standard_normal((NUM_CHAINS, 2))
    sampler = made.build(TARGET)

    @jax.jit
    @jax.vmap
    def end(key: Array, position: Array, reals: Array) -> tuple[Array, Array]:
        state = sampler.init(position, key, reals)
        keys = jax.random.split(key, NUM_STEPS)
        last = jax.lax.scan(lambda state, key: (sampler.step(key, state)[0], None), state, keys)[0]
        assert last.reals is not None
        return TARGET.domain.index(last.position), last.reals

    keys = jax.random.split(jax.random.key(seed), NUM_CHAINS)
    labels, means = end(keys, jnp.asarray(STATES[labels]), jnp.asarray(means, jnp.float32))
    return np.asarray(labels), np.asarray(means, float)


def test_marginals_are_those_of_quadrature() -> None:
    grid = np.linspace(-12, 12, 121)
    means = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    table = []
    for state in STATES:
        centers = np.where(state == 1, means[..., 1:], means[..., :1])
        values = -0.5 * np.sum((DATA - centers) ** 2, axis=-1) - 0.5 * np.sum((means / PRIOR) ** 2, axis=-1)
        table.append(np.exp(values).sum() * (WEIGHT / (1 - WEIGHT)) ** state.sum())
    np.testing.assert_allclose(np.asarray(table) / np.sum(table), PROBABILITIES, rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "num_leapfrog"),
    [
        pytest.param(steppe.gibbs(), 5, id="gibbs", marks=pytest.mark.slow),
        pytest.param(steppe.dmala(step_size=0.5), 5, id="dmala"),
        pytest.param(steppe.dmala(step_size=0.5), 1, id="dmala and mala", marks=pytest.mark.slow),
    ],
)
def test_chains_stay_in_the_joint_distribution_of_a_mixture(base: Recipe, num_leapfrog: int) -> None:
    made = steppe.mixed(base, real_step_size=0.25, num_leapfrog=num_leapfrog)
    found = p_values(*run_from_stationarity(made, seed=1))
    assert min(found) > FALSE_ALARM / len(found)


class StaleHamiltonian(HamiltonianBlock):
    """Forgets to evaluate the sites where the trajectory ends."""

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """Keep the log-density and the gradient of the old real coordinates."""
        new, own, info = super().step(keys, density, state, own)
        return new._replace(log_density=state.log_density, gradient=state.gradient), own, info


class UncorrectedHamiltonian(HamiltonianBlock):
    """Moves by a density half as steep."""

    def step(
        self, keys: Keys, density: JointDensity, state: ChainState, own: tuple[()]
    ) -> tuple[ChainState, tuple[()], StepInfo]:
        """Move at twice the temperature."""
        warm = eqx.tree_at(lambda one: one.inverse_temperature, density, jnp.asarray(0.5))
        return super().step(keys, warm, state, own)


@pytest.mark.parametrize(
    "kind", [StaleHamiltonian, pytest.param(UncorrectedHamiltonian, marks=pytest.mark.slow)]
)
def test_a_broken_move_of_the_means_is_refused(kind: type[HamiltonianBlock]) -> None:
    within = steppe.dmala(step_size=0.5).blocks[0]
    made = recipe("broken", GivenReals(within), kind(jnp.asarray(0.25), 5))
    found = p_values(*run_from_stationarity(made, seed=1))
    assert min(found) < FALSE_ALARM / len(found)
