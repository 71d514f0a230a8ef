"""Samplers of orders leave their distribution invariant, exactly, with and without a center."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from contract.cases import quick_jit, transition_matrix
from steppe import targets
from steppe.diagnostics.exact import target_distribution
from steppe.kernel.proposals.permutation_moves import TABLED, apply_move, as_move, differences, is_move
from steppe.samplers.permutations import informed_permutation, uniform_permutation

pytestmark = pytest.mark.usefixtures("float64")

TOLERANCE = 1e-12
SIZES = (pytest.param(4, marks=pytest.mark.slow), 5)
COUPLING_VARIANCE = 0.3

RECIPES = {
    "informed swap": informed_permutation(moves="swap"),
    "informed two_opt": informed_permutation(moves="two_opt"),
    "informed insert": informed_permutation(moves="insert"),
    "informed, all kinds": informed_permutation(moves=("swap", "two_opt", "insert")),
    "uniform": uniform_permutation(moves=("swap", "two_opt", "insert", "or_opt")),
}


def lengths(size: int, symmetric: bool) -> np.ndarray:
    matrix = np.random.default_rng(size).uniform(0, 3, (size, size))
    return matrix + matrix.T if symmetric else matrix


def assert_reversible(matrix: np.ndarray, distribution: np.ndarray) -> None:
    flow = distribution[:, None] * matrix
    assert np.abs(matrix.sum(axis=1) - 1).max() <= TOLERANCE
    assert matrix.min() >= -TOLERANCE
    assert np.abs(distribution @ matrix - distribution).max() <= TOLERANCE
    assert np.abs(flow - flow.T).max() <= TOLERANCE


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", RECIPES)
def test_sampler_of_orders_satisfies_detailed_balance(name, size, symmetric):
    target = targets.tsp(lengths(size, symmetric))
    assert_reversible(transition_matrix(RECIPES[name], target), target_distribution(target))


@pytest.mark.parametrize("kind", TABLED)
def test_order_satisfies_detailed_balance_given_the_center(kind):
    size = 5
    target = targets.tsp(lengths(size, symmetric=False))
    center = np.random.default_rng(1).normal(0.3, 0.6, (size, size))
    recipe = informed_permutation(moves=kind, coupling_variance=COUPLING_VARIANCE)
    matrices = np.eye(size)[np.asarray(target.domain.enumerate(), int)]
    stationary = np.log(target_distribution(target)) - ((matrices - center) ** 2).sum((1, 2)) / (
        2 * COUPLING_VARIANCE
    )
    distribution = np.exp(stationary - stationary.max())
    matrix = transition_matrix(recipe, target, center=jnp.asarray(center))
    assert_reversible(matrix, distribution / distribution.sum())


def test_every_order_is_reached_by_every_recipe():
    target = targets.tsp(lengths(4, symmetric=False))
    for recipe in RECIPES.values():
        lazy = 0.5 * (np.eye(24) + transition_matrix(recipe, target))
        assert np.linalg.matrix_power(lazy, 64).min() > 0


@quick_jit
def moves_and_ends(target, positions):
    """Probability of every reversal of four places and where it leads, by state."""
    rows, columns = np.nonzero(is_move("two_opt", 4))

    def one(position):
        ends = [
            apply_move(("two_opt",), position, as_move("two_opt", *map(jnp.asarray, ij)))
            for ij in zip(rows, columns, strict=True)
        ]
        scores = 0.5 * differences(target, "two_opt", position)[rows, columns]
        return jax.nn.softmax(scores), target.domain.index(jnp.stack(ends))

    return jax.vmap(one)(positions)


def test_decision_without_the_reverse_normalisation_is_found_out():
    # The same proposal with acceptance min(1, π'/π): what one step does to the distribution must not look
    # small.
    target = targets.tsp(lengths(4, symmetric=False))
    distribution = target_distribution(target)
    weights, ends = (np.asarray(array) for array in moves_and_ends(target, target.domain.enumerate()))
    matrix = np.zeros((24, 24))
    for state, (q, reached) in enumerate(zip(weights, ends, strict=True)):
        np.add.at(matrix[state], reached, q * np.minimum(1, distribution[reached] / distribution[state]))
        matrix[state, state] = 1 - matrix[state].sum()
    assert np.abs(distribution @ matrix - distribution).max() > 1e-3


@quick_jit
def tables(target, positions):
    generic = steppe.Target(target.log_density, target.domain)
    return {
        kind: (
            jax.vmap(lambda x, kind=kind: differences(target, kind, x))(positions),
            jax.vmap(lambda x, kind=kind: differences(generic, kind, x))(positions),
        )
        for kind in TABLED
    }


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("size", [3, 5, 9])
def test_tables_are_the_differences_of_the_log_density_at_every_neighbour(size, symmetric):
    target = targets.tsp(lengths(size, symmetric), inverse_temperature=1.7)
    positions = target.domain.draw(jax.random.key(size), (5,))
    for kind, (fast, slow) in tables(target, positions).items():
        mask = is_move(kind, size)
        np.testing.assert_allclose(fast[:, mask], slow[:, mask], rtol=0, atol=TOLERANCE)
        assert np.isneginf(fast[:, ~mask]).all()


@quick_jit
def gains(coupling, position, center):
    """Log-density of the coupling at a position, and its gain by every move of every kind, both ways."""

    def log_density(order):
        matrix = jax.nn.one_hot(order.astype(int), len(order), dtype=center.dtype)
        return -jnp.sum((matrix - center) ** 2) * coupling.inverse_variance / 2

    by_kind = {}
    for kind in TABLED:
        rows, columns = np.nonzero(is_move(kind, len(position)))
        ends = jax.vmap(lambda i, j, kind=kind: apply_move((kind,), position, as_move(kind, i, j)))(
            rows, columns
        )
        table = coupling.move_differences(kind, position, center)
        by_kind[kind] = table[rows, columns], jax.vmap(log_density)(ends) - log_density(position)
    return (coupling.log_density_terms(position, center).sum(), log_density(position)), by_kind


def test_gains_of_the_coupling_are_those_of_the_one_hot_matrices():
    coupling = informed_permutation(moves="swap", coupling_variance=0.7).coupling
    rng = np.random.default_rng(0)
    here, by_kind = gains(coupling, jnp.asarray(rng.permutation(6), float), rng.normal(size=(6, 6)))
    np.testing.assert_allclose(*here, rtol=1e-12)
    for fast, slow in by_kind.values():
        np.testing.assert_allclose(fast, slow, rtol=0, atol=TOLERANCE)
