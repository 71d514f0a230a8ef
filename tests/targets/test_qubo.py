"""Quadratic optimisation and cuts: objectives, every way to give a graph, annealing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import targets

BIPARTITE = [(i, j) for i in range(3) for j in range(3, 6)]


class NetworkxLike:
    """The three methods of a `networkx` graph that are used."""

    def __init__(self, triples, nodes, directed=False):
        self.nodes, self._triples, self._directed = nodes, triples, directed

    def edges(self, data, default):
        return [(u, v, default if w is None else w) for u, v, w in self._triples]

    def is_directed(self):
        return self._directed


def test_objective_of_a_triangular_matrix_is_the_quadratic_form_plus_offset():
    Q = np.triu(np.random.default_rng(0).normal(size=(7, 7)))
    target = targets.qubo(Q, offset=2.5, inverse_temperature=3.0)
    for x in np.asarray(target.domain.draw(jax.random.key(0), (5,))):
        np.testing.assert_allclose(target.objective(x), x @ Q @ x + 2.5, rtol=1e-5)
        np.testing.assert_allclose(target.log_density(x), -3.0 * (x @ Q @ x + 2.5), rtol=1e-5)


@pytest.mark.parametrize("spins", [True, False])
def test_cut_of_a_bipartite_graph_is_every_edge(spins):
    target = targets.max_cut(BIPARTITE, spins=spins, inverse_temperature=0.3)
    position = target.domain.from_levels(np.asarray([1, 1, 1, 0, 0, 0]))
    assert target.cut_value(position) == 9
    assert target.cut_value(target.domain.from_levels(np.zeros(6))) == 0
    np.testing.assert_allclose(target.log_density(position), 0.3 * 9, rtol=1e-6)


def test_edge_list_matrix_and_networkx_graph_are_the_same_cut():
    weights = np.random.default_rng(1).normal(size=9)
    matrix = np.zeros((6, 6))
    for (i, j), weight in zip(BIPARTITE, weights, strict=True):
        matrix[i, j] = matrix[j, i] = weight
    names = "abcdef"
    triples = [(names[i], names[j], w) for (i, j), w in zip(BIPARTITE, weights, strict=True)]
    given = [
        targets.max_cut(BIPARTITE, weights),
        targets.max_cut(matrix),
        targets.max_cut(NetworkxLike(triples, list(names))),
    ]
    position = given[0].domain.draw(jax.random.key(2))
    cuts = [target.cut_value(position) for target in given]
    np.testing.assert_allclose(cuts, cuts[0], rtol=1e-6)


def test_networkx_edges_without_weight_count_one_and_isolated_nodes_stay():
    target = targets.max_cut(NetworkxLike([("a", "b", None)], ["a", "lonely", "b"]))
    assert target.domain == steppe.Spin(3)
    assert target.cut_value(jnp.asarray([1.0, 1.0, -1.0])) == 1


def test_dense_and_sparse_evaluation_of_one_graph_agree():
    complete = [(i, j) for i in range(12) for j in range(i)]
    padded = targets.max_cut(complete, num_nodes=100)
    alone = targets.max_cut(complete)
    assert type(padded.bonds) is not type(alone.bonds)
    position = alone.domain.draw(jax.random.key(3))
    longer = jnp.concatenate([position, jnp.ones(88)])
    assert padded.cut_value(longer) == alone.cut_value(position)


def test_annealing_the_inverse_temperature_in_one_program_finds_the_best_cut():
    rng = np.random.default_rng(5)
    edges = np.asarray([(i, j) for i in range(12) for j in range(i) if rng.uniform() < 0.5])
    cut_values = jax.jit(jax.vmap(targets.max_cut(edges).cut_value))
    best = cut_values(targets.max_cut(edges).domain.enumerate()).max()

    @jax.jit
    def anneal(key):
        recipe = steppe.dmala(step_size=1.0)

        def step(position, inputs):
            key, beta = inputs
            sampler = recipe.build(targets.max_cut(edges, inverse_temperature=beta), audit=False)
            return sampler.step(key, sampler.init(position))[0].position, None

        start = targets.max_cut(edges).domain.draw(key)
        inputs = jax.random.split(key, 400), jnp.geomspace(0.1, 3.0, 400)
        return jax.lax.scan(step, start, inputs)[0]

    ends = jax.vmap(anneal)(jax.random.split(jax.random.key(0), 16))
    assert cut_values(ends).max() == best
