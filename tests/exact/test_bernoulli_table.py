"""Stationary distributions on the paper's four bits: a table of exact values, to every printed digit.

Columns: mass of the two flat and of the two sharp modes, total variation distance to the target, and the
standard deviation of the eigenvalues of the multilinear Hessian under the distribution (their mean is 0).
"""

import inspect
from itertools import permutations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.diagnostics.center_distribution import (
    edula_kernel,
    edula_stationary,
    glu_transition_matrix,
    position_marginal,
)
from steppe.diagnostics.exact import (
    stationary_distribution,
    target_distribution,
    total_variation,
    transition_matrix,
)
from steppe.targets.bernoulli import PAPER_MODES, PAPER_PROBABILITIES, paper_bernoulli


class Row(NamedTuple):
    """Printed values; `None` where none was printed."""

    flat: str
    sharp: str
    distance: str
    eigen_std: str | None = None
    eigen_iqr: str | None = None


TARGET = Row(".1451", ".2926", ".0000", "2.646", "3.224")
UNIFORM = Row(".1250", ".1250", ".2495", "2.573", "3.093")

DULA = {
    0.1: Row(".1453", ".2897", ".0033", "2.643"),
    0.1225: Row(".1454", ".2854", ".0083", "2.638"),
    0.15: Row(".1458", ".2776", ".017"),
    0.2: Row(".1465", ".2595", ".0383", "2.611"),
    0.4: Row(".1476", ".1993", ".108", "2.554"),
    0.6: Row(".1467", ".1730", ".139", "2.532"),
    1.0: Row(".1445", ".1539", ".161", "2.519"),
    10.0: Row(".1387", ".1351", ".182", "2.509"),
}
GLU = {
    (0.2, 0.1): Row(".1451", ".2031", ".097"),
    (0.4, 0.1): Row(".1425", ".1596", ".149"),
    (0.2, 8.0): Row(".1465", ".2587", ".039"),
}
EDULA = {
    (0.2, 0.1, 0.1): Row(".1472", ".1726", ".1413", "2.531", "3.093"),
    (0.1, 0.1, 0.1): Row(".1458", ".2776", ".0174", "2.630", "3.224"),
    (0.4, 0.1, 0.1): Row(".1315", ".1184", ".212", "2.502"),
    # Its flat mass is 0.11756.
    (0.4, 0.1, 0.08): Row(".1176", ".1074", ".238", "2.506"),
}


# ---- the columns ---------------------------------------------------------------------------------------


def made(make, setting):
    """The recipe with hyper-parameters in the order of its signature."""
    return make(**dict(zip(inspect.signature(make).parameters, setting, strict=False)))


def mode_mass(distribution: np.ndarray, modes) -> float:
    return float(sum(distribution[int("".join(map(str, mode)), 2)] for mode in modes))


def eigenvalues() -> np.ndarray:
    """Eigenvalues of the Hessian of the multilinear log-density, state × 4.

    Its entries are mixed second differences of the table; the diagonal is 0.
    """
    table = np.log(PAPER_PROBABILITIES).reshape(2, 2, 2, 2)
    hessians = np.zeros((2, 2, 2, 2, 4, 4))
    for i, j in permutations(range(4), 2):
        hessians[..., i, j] = np.diff(np.diff(table, axis=i), axis=j)
    return np.linalg.eigvalsh(hessians.reshape(16, 4, 4))


def weighted_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), level)])


def columns(distribution: np.ndarray) -> tuple[float, ...]:
    values, weights = eigenvalues().ravel(), np.repeat(distribution / 4, 4)
    quartiles = [weighted_quantile(values, weights, level) for level in (0.25, 0.75)]
    return (
        mode_mass(distribution, PAPER_MODES.flat),
        mode_mass(distribution, PAPER_MODES.sharp),
        total_variation(distribution, target_distribution(paper_bernoulli())),
        float(np.sqrt(weights @ values**2)),
        quartiles[1] - quartiles[0],
    )


def half_unit(printed: str) -> float:
    """Half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -len(printed.split(".")[1])


def assert_prints_as(distribution: np.ndarray, row: Row) -> None:
    for name, found, printed in zip(Row._fields, columns(distribution), row, strict=True):
        if printed is not None:
            assert abs(found - float(printed)) <= half_unit(printed), f"{name}: {found} is not {printed}"


# ---- exact distributions ------------------------------------------------------------------------------


@pytest.mark.usefixtures("float64")
def test_adjusted_langevin_has_the_targets_row():
    distribution = stationary_distribution(transition_matrix(steppe.dmala(step_size=0.4), paper_bernoulli()))
    assert_prints_as(distribution, TARGET)
    assert_prints_as(np.full(16, 1 / 16), UNIFORM)


@pytest.mark.usefixtures("float64")
def test_unadjusted_langevin_has_the_printed_distributions():
    for step_size, row in DULA.items():
        distribution = stationary_distribution(
            transition_matrix(steppe.dula(step_size=step_size), paper_bernoulli())
        )
        assert_prints_as(distribution, row)


@pytest.mark.usefixtures("float64")
def test_unadjusted_glu_has_the_printed_distributions():
    for setting, row in GLU.items():
        matrix = glu_transition_matrix(made(steppe.edula_glu, setting), paper_bernoulli())
        assert_prints_as(stationary_distribution(matrix), row)


def gaussian_start(nodes: np.ndarray, variance: float) -> np.ndarray:
    """Centers normal about every position: position × node × node × node × node."""
    positions = np.asarray(paper_bernoulli().domain.enumerate())
    bumps = np.exp(-((nodes - positions[..., None]) ** 2) / (2 * variance))
    return np.einsum("pa,pb,pc,pd->pabcd", *bumps.transpose(1, 0, 2))


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("setting", EDULA, ids=str)
def test_entropic_unadjusted_langevin_has_the_printed_distributions(setting):
    """Halving the spacing or adding a standard deviation of reach moves no column by more than 1e-5."""
    _, α_a, η = setting
    variance = η / (1 - α_a / (4 * η))
    reach = 5 * np.sqrt(variance)
    nodes = np.arange(-reach, 1 + reach + 0.25, 0.25)
    kernel = edula_kernel(made(steppe.edula, setting), paper_bernoulli(), nodes)
    mass = edula_stationary(kernel, gaussian_start(nodes, variance), tolerance=1e-7)
    assert_prints_as(position_marginal(mass), EDULA[setting])


# ---- the engine's own draws ----------------------------------------------------------------------------

NUM_CHAINS, NUM_BURN_IN, NUM_DRAWS = 2_000, 300, 2_000
# 12 comparisons at this many standard errors: one false alarm in 12 000 runs of the file. A sharp mass off
# by 6.6 standard errors (0.0035 at the paper's setting, 0.011 at the slow second one) is found out with
# probability 0.98. At the paper's setting a doubled α_a is off by 0.04, a center drawn afresh by 0.03.
MAX_STANDARD_ERRORS = 4.5


@jax.jit
def occupancy(sampler, key):
    """Fraction of draws in every state, chain × 16; chains are independent."""
    domain = sampler.target.domain
    start_key, run_key = jax.random.split(key)
    start = jax.vmap(sampler.init)(domain.draw(start_key, (NUM_CHAINS,)))

    def step(index, carry):
        states, counts = carry
        keys = jax.random.split(jax.random.fold_in(run_key, index), NUM_CHAINS)
        states, _ = jax.vmap(sampler.step)(keys, states)
        here = jax.nn.one_hot(domain.index(states.position), domain.num_states)
        return states, counts + jnp.where(index >= NUM_BURN_IN, here, 0)

    counts = jnp.zeros((NUM_CHAINS, domain.num_states))
    return jax.lax.fori_loop(0, NUM_BURN_IN + NUM_DRAWS, step, (start, counts))[1] / NUM_DRAWS


@pytest.mark.slow
@pytest.mark.parametrize("setting", EDULA, ids=str)
def test_draws_of_entropic_unadjusted_langevin_have_the_printed_distribution(setting):
    sampler, row = made(steppe.edula, setting).build(paper_bernoulli()), EDULA[setting]
    fractions = np.asarray(occupancy(sampler, jax.random.key(20)), float)
    sharp = np.array([mode_mass(fraction, PAPER_MODES.sharp) for fraction in fractions])
    flat = np.array([mode_mass(fraction, PAPER_MODES.flat) for fraction in fractions])
    spread = fractions @ (eigenvalues() ** 2).mean(axis=1)  # its mean is the square of `eigen_std`
    std, std_unit = float(row.eigen_std), half_unit(row.eigen_std)
    expected = (
        (flat, float(row.flat), half_unit(row.flat)),
        (sharp, float(row.sharp), half_unit(row.sharp)),
        (spread, std**2, 2 * std * std_unit),
    )
    for values, printed, rounding in expected:
        standard_error = values.std(ddof=1) / np.sqrt(NUM_CHAINS)
        assert abs(values.mean() - printed) <= MAX_STANDARD_ERRORS * standard_error + rounding
