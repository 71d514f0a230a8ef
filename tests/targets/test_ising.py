"""Ising and Potts models: their three forms are one model, at any size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import lattice_edges

import steppe
from steppe import targets

SHAPE = (4, 5)
FIELD = np.random.default_rng(0).normal(size=SHAPE)
SPINS = np.random.default_rng(1).choice([-1.0, 1.0], size=20)


@jax.jit
def value_and_grad(target, position):
    return target.value_and_grad(position)


def same_model_in_every_form(spins):
    edges = lattice_edges(SHAPE, periodic=True)
    matrix = np.zeros((20, 20))
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 0.3
    return [
        targets.ising_lattice(SHAPE, 0.3, FIELD, spins=spins),
        targets.ising(matrix, FIELD.ravel(), spins=spins),
        targets.ising_graph(edges, 0.3, field=FIELD.ravel(), spins=spins),
    ]


def test_lattice_matrix_and_graph_are_the_same_model_on_spins_and_bits():
    value, gradient = value_and_grad(same_model_in_every_form(True)[0], SPINS)
    for target in same_model_in_every_form(True)[1:]:
        np.testing.assert_allclose(value_and_grad(target, SPINS)[0], value, rtol=1e-5)
        np.testing.assert_allclose(value_and_grad(target, SPINS)[1], gradient, rtol=1e-5)
    for target in same_model_in_every_form(False):
        on_bits = value_and_grad(target, (SPINS + 1) / 2)
        np.testing.assert_allclose(on_bits[0], value, rtol=1e-5)
        np.testing.assert_allclose(on_bits[1], 2 * gradient, rtol=1e-5)


def test_ring_has_the_normaliser_of_the_transfer_matrix(float64):
    coupling, field, length = 0.7, 0.3, 9
    target = targets.ising_lattice(length, coupling, field)
    values = jax.vmap(target.log_density)(target.domain.enumerate())
    transfer = [[np.exp(coupling * s * t + field * (s + t) / 2) for t in (-1, 1)] for s in (-1, 1)]
    expected = np.log(np.trace(np.linalg.matrix_power(np.asarray(transfer), length)))
    np.testing.assert_allclose(jax.nn.logsumexp(values), expected, rtol=1e-12)


@pytest.mark.parametrize("magnetised", [0.5, 0.95])
def test_large_lattice_is_summed_to_the_last_digit_of_single_precision(magnetised):
    length, coupling = 256, 0.44
    rng = np.random.default_rng(3)
    spins = np.where(rng.uniform(size=(length, length)) < magnetised, 1.0, -1.0)
    field = rng.normal(size=(length, length))
    bonds = spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))
    expected = np.sum(coupling * bonds + field * spins)
    target = targets.ising_lattice((length, length), coupling, field)
    value = value_and_grad(target, jnp.asarray(spins.ravel(), jnp.float32))[0]
    # Twice the spacing of single-precision numbers there, or of the terms where they cancel.
    assert abs(value - expected) <= max(2 * np.spacing(np.float32(abs(expected))), 1e-4)


def test_sparse_graph_of_a_hundred_thousand_edges_is_evaluated_and_followed():
    rng = np.random.default_rng(4)
    num_sites, num_edges = 50_000, 100_000
    edges = rng.integers(num_sites, size=(num_edges, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.normal(size=len(edges))
    target = targets.ising_graph(edges, weights, num_sites)
    spins = rng.choice([-1.0, 1.0], size=num_sites)
    sums = np.zeros(num_sites)
    np.add.at(sums, edges[:, 0], weights * spins[edges[:, 1]])
    np.add.at(sums, edges[:, 1], weights * spins[edges[:, 0]])
    value, gradient = value_and_grad(target, spins)
    np.testing.assert_allclose(gradient, sums, atol=1e-4)
    np.testing.assert_allclose(value, spins @ sums / 2, atol=1e-2)
    sites = jnp.asarray(rng.integers(num_sites, size=5))
    followed = target.incremental.differences((), jnp.asarray(spins), sites)
    flips = np.where(spins[sites][:, None] == [-1, 1], 0, (-2 * spins * sums)[np.asarray(sites)][:, None])
    np.testing.assert_allclose(followed, flips, atol=1e-4)


def test_graph_with_a_hub_keeps_no_lists_and_gibbs_still_samples_it():
    star = [(0, leaf) for leaf in range(1, 2000)]
    target = targets.ising_graph(star, 0.01)
    assert target.incremental is None
    assert sum(leaf.size for leaf in jax.tree.leaves(target)) < 10 * len(star)
    sampler = steppe.gibbs().build(target)
    state = sampler.init(target.domain.draw(jax.random.key(0)))
    state, _ = jax.jit(sampler.step)(jax.random.key(1), state)
    np.testing.assert_allclose(state.log_density, target.log_density(state.position), atol=1e-3)


def test_graph_without_edges_is_a_product_of_its_fields():
    target = targets.ising_graph(np.zeros((0, 2), int), num_sites=3, field=[1.0, 2.0, 3.0])
    value, gradient = value_and_grad(target, np.asarray([1.0, -1.0, 1.0]))
    assert value == 2.0
    np.testing.assert_array_equal(gradient, [1.0, 2.0, 3.0])


def test_two_level_potts_is_an_ising_model_at_half_the_coupling():
    potts = targets.potts(SHAPE, 2, 0.8)
    ising = targets.ising_lattice(SHAPE, 0.4)
    levels = (SPINS > 0).astype(int)
    shift = 0.4 * len(lattice_edges(SHAPE, periodic=True))
    value = value_and_grad(potts, potts.domain.from_levels(levels))[0]
    np.testing.assert_allclose(value, value_and_grad(ising, SPINS)[0] + shift, rtol=1e-5)


def test_new_couplings_and_fields_never_recompile():
    traces = []

    @jax.jit
    def evaluate(target, position):
        traces.append(1)
        return target.value_and_grad(position)[0], target.differences(position)

    for number in (0.1, 0.2, 0.3):
        evaluate(targets.ising_lattice(SHAPE, number, number), SPINS)
    assert len(traces) == 1
    for number in (0.1, 0.2, 0.3):
        evaluate(targets.ising_graph([(0, 1), (1, 19)], number, field=number), SPINS)
    assert len(traces) == 2
