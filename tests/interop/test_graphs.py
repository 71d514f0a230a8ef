"""dimod and networkx: the same energies as theirs, and the same best one as D-Wave's annealer."""

import jax
import numpy as np
import pytest

import steppe
from steppe.errors import TargetError
from steppe.interop import from_bqm, from_networkx, to_sampleset

dimod = pytest.importorskip("dimod", reason="needs dimod")
networkx = pytest.importorskip("networkx", reason="needs networkx")

VARTYPES = ("BINARY", "SPIN")


def random_bqm(vartype, num_variables=7, fraction=1.0, seed=0):
    """A model whose variables are named by strings, not by their place."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in rng.permutation(num_variables)]
    pairs = [(names[i], names[j]) for i in range(num_variables) for j in range(i)]
    kept = [pair for pair in pairs if rng.random() < fraction]
    linear = {name: rng.normal() for name in names}
    return dimod.BinaryQuadraticModel(linear, {pair: rng.normal() for pair in kept}, 1.75, vartype)


def weighted_graph():
    rng = np.random.default_rng(3)
    graph = networkx.gnp_random_graph(8, 0.5, seed=3)
    networkx.relabel_nodes(graph, {i: f"n{i}" for i in range(8)}, copy=False)
    for first, second in graph.edges:
        graph.edges[first, second]["weight"] = rng.normal()
    for node in graph.nodes:
        graph.nodes[node]["weight"] = rng.normal()
    return graph


@pytest.mark.parametrize("fraction", [1.0, 0.2])
@pytest.mark.parametrize("vartype", VARTYPES)
def test_energy_of_every_state_is_that_of_dimod(vartype, fraction):
    # A fraction of 0.2 of all pairs among 10 variables is stored as lists, a fraction of 1 as a matrix.
    bqm = random_bqm(vartype, 10 if fraction < 1 else 7, fraction)
    target = from_bqm(bqm, inverse_temperature=0.5)
    states = target.domain.enumerate()
    expected = bqm.energies((np.asarray(states), list(bqm.variables)))
    # Sums of at most 50 float32 terms of size 1.
    np.testing.assert_allclose(jax.vmap(target.energy)(states), expected, atol=2e-5)
    np.testing.assert_allclose(jax.vmap(target.log_density)(states), -0.5 * expected, atol=2e-5)


@pytest.mark.parametrize("vartype", VARTYPES)
def test_domain_follows_the_variable_type_and_slopes_are_exact(vartype):
    target = from_bqm(random_bqm(vartype))
    assert target.domain == {"BINARY": steppe.Binary(7), "SPIN": steppe.Spin(7)}[vartype]
    position = target.domain.draw(jax.random.key(0))
    slopes = target.domain.slopes(position, jax.jit(target.value_and_grad)(position)[1])
    brute = jax.jit(steppe.Target(target.log_density, target.domain).differences)(position)
    np.testing.assert_allclose(slopes, brute, atol=1e-5)


def test_draws_become_a_sampleset_with_the_same_energies():
    bqm = random_bqm("SPIN")
    target = from_bqm(bqm)
    positions = target.domain.draw(jax.random.key(1), (2, 3))
    samples = to_sampleset(bqm, positions)
    energies = jax.vmap(jax.vmap(target.energy))(positions).ravel()
    np.testing.assert_allclose(samples.record.energy, energies, atol=1e-5)
    named = dict(zip(bqm.variables, np.asarray(positions[0, 0]), strict=True))
    assert next(iter(samples.samples(sorted_by=None))) == named


@pytest.mark.slow
def test_annealing_finds_the_energy_that_simulated_annealing_of_dwave_finds():
    samplers = pytest.importorskip("dwave.samplers", reason="needs dwave-samplers")
    bqm = random_bqm("SPIN", num_variables=24, seed=5)
    best = samplers.SimulatedAnnealingSampler().sample(bqm, num_reads=50, num_sweeps=500, seed=1)
    cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.1, 10.0))
    ours = steppe.anneal(
        from_bqm(bqm), steppe.dmala(), cooling, key=jax.random.key(0), num_chains=16, num_steps=500
    )
    np.testing.assert_allclose(-ours.best_log_density.max(), best.first.energy, atol=1e-4)


def brute_force(graph, problem, position):
    """The log-density of a graph, edge by edge from its attributes."""
    value = dict(zip(graph.nodes, np.asarray(position), strict=True))
    edges, nodes = graph.edges(data="weight"), graph.nodes(data="weight")
    if problem == "max_cut":
        return sum(w for u, v, w in edges if value[u] != value[v])
    sign = 1 if problem == "ising" else -1
    return sign * (sum(w * value[u] * value[v] for u, v, w in edges) + sum(w * value[u] for u, w in nodes))


@pytest.mark.parametrize("problem", ["ising", "max_cut", "qubo"])
def test_graph_problem_has_the_value_its_edges_and_nodes_give(problem):
    graph = weighted_graph()
    if problem == "max_cut":
        for node in graph.nodes:
            del graph.nodes[node]["weight"]
    target = from_networkx(graph, problem, inverse_temperature=2.0)
    for position in target.domain.draw(jax.random.key(4), (6,)):
        expected = 2.0 * brute_force(graph, problem, position)
        np.testing.assert_allclose(target.log_density(position), expected, rtol=1e-4, atol=1e-5)


def test_parallel_edges_add_up_and_missing_weights_count_one():
    graph = networkx.MultiGraph([("a", "b"), ("b", "a")])
    target = from_networkx(graph, "ising")
    assert float(target.log_density(np.ones(2))) == 2.0


def refused():
    cubic = dimod.BinaryPolynomial({("x", "y", "z"): 1.0, ("x",): 2.0}, "SPIN")
    quadratic = dimod.BinaryPolynomial({("x", "y"): 1.0}, "SPIN")
    tagged = networkx.Graph([("a", "b")])
    tagged.nodes["a"]["weight"] = 1.0
    infinite = dimod.BinaryQuadraticModel({"a": np.inf}, {}, 0.0, "SPIN")
    return {
        "cubic polynomial": (lambda: from_bqm(cubic), r"term \('x', 'y', 'z'\) of 3 .*make_quadratic"),
        "quadratic polynomial": (lambda: from_bqm(quadratic), r"got BinaryPolynomial.*make_quadratic"),
        "constrained": (lambda: from_bqm(dimod.ConstrainedQuadraticModel()), "cqm_to_bqm"),
        "no model": (lambda: from_bqm({}), "got dict.*from_qubo"),
        "cubic dictionary": (lambda: from_bqm({("x", "y", "z"): 1.0}), r"term \('x', 'y', 'z'\) of 3"),
        "samples of no model": (lambda: to_sampleset({}, np.ones(7)), r"`to_sampleset\(bqm\)` needs a"),
        "samples of other sites": (
            lambda: to_sampleset(random_bqm("SPIN"), np.ones((2, 6))),
            r"7 sites that are -1 or 1.*got an array of shape \(2, 6\)",
        ),
        "samples of other values": (
            lambda: to_sampleset(random_bqm("SPIN"), np.zeros(7)),
            "that are -1 or 1.*values from 0 to 0",
        ),
        "empty": (lambda: from_bqm(dimod.BinaryQuadraticModel("SPIN")), "at least one variable"),
        "infinite bias": (lambda: from_bqm(infinite), r"node weight.*finite; got inf"),
        "temperature": (lambda: from_bqm(random_bqm("SPIN"), inverse_temperature=0), "positive; got 0"),
        "no graph": (lambda: from_networkx([(0, 1)]), "`NetworkxGraph`; got"),
        "problem": (lambda: from_networkx(tagged, "tsp"), "'max_cut' or 'qubo'; got 'tsp'"),
        "cut of weighted nodes": (lambda: from_networkx(tagged), "problem='ising'"),
        "directed": (lambda: from_networkx(networkx.DiGraph([(0, 1)]), "ising"), "to_undirected"),
        "loop": (lambda: from_networkx(networkx.Graph([(0, 0)]), "qubo"), "binds site 0 to itself"),
    }


@pytest.mark.parametrize("case", refused())
def test_refuses(case):
    call, message = refused()[case]
    with pytest.raises(TargetError, match=message):
        call()


def test_pairwise_targets_go_to_dimod_and_networkx_and_come_back():
    dimod = pytest.importorskip("dimod")
    networkx = pytest.importorskip("networkx")
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    for target in (
        steppe.targets.independent_set(edges, inverse_temperature=2.0),
        steppe.targets.max_cut(edges, [1.0, 2.0, -1.0, 0.5, 3.0]),
        steppe.targets.max_cut(edges, spins=False),
        steppe.targets.ising_lattice((2, 3), 0.4, 0.1, periodic=False),
    ):
        bqm = steppe.interop.to_bqm(target)
        for position in np.asarray(target.domain.draw(jax.random.key(0), (4,))):
            values = 2 * position - 1 if target.reads_bits_as_spins else position
            energy = bqm.energy(dict(enumerate(values.tolist())))
            np.testing.assert_allclose(-energy, float(target.unscale(position)), rtol=1e-5, atol=1e-5)
    assert networkx.utils.edges_equal(
        [(u, v) for u, v, _ in steppe.interop.to_networkx(steppe.targets.max_cut(edges)).edges(data=True)],
        edges,
    )
    with pytest.raises(steppe.errors.TargetError, match="bits or spins"):
        steppe.interop.to_bqm(steppe.targets.coloring(edges, 3))
    assert dimod.__version__


def test_groups_formulas_and_constraints_go_to_dimod_with_their_energies():
    pytest.importorskip("dimod")
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    tables = np.random.default_rng(0).normal(size=(4, 4, 3, 3))
    tables = (tables + tables.transpose(1, 0, 3, 2)) * (1 - np.eye(4))[:, :, None, None]
    for target in (
        steppe.targets.coloring(edges, 3, inverse_temperature=2.0),
        steppe.targets.partition(edges, 2, balance=0.3),
        steppe.targets.block_model(edges, 3, inside=0.7, between=0.2),
        steppe.targets.potts_tables(tables, [[0.1, 0.2, 0.3]] * 4),
        steppe.targets.cnf([[1, -2, 3], [-1, 4], [2, 3, 4], [-4]], [1, 2, 3, 4], inverse_temperature=2.0),
    ):
        model = steppe.interop.to_dimod(target)
        for position in np.asarray(target.domain.draw(jax.random.key(0), (4,))):
            levels = np.asarray(target.domain.to_levels(position)).astype(int)
            expected = -float(target.log_density(position)) / float(target.inverse_temperature)
            found = float(model.energy(dict(enumerate(levels.tolist()))))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_knapsack_and_linear_constraints_are_models_with_the_same_states_allowed():
    pytest.importorskip("dimod")
    qubo = steppe.targets.qubo([[-3.0, 1.0, 0.0], [0.0, -2.0, 0.5], [0.0, 0.0, -1.0]])
    for target in (
        steppe.targets.knapsack([3.0, 1.0, 2.0], [2.0, 1.0, 3.0], 4.0),
        steppe.targets.linear_constraints(qubo, [[1, 1, 1], [1, -1, 0]], lower=[1, 0], upper=[2, 0]),
    ):
        model = steppe.interop.to_dimod(target)
        for position in np.asarray(target.domain.enumerate()):
            sample = dict(enumerate(position.astype(int).tolist()))
            assert model.check_feasible(sample) == target.is_feasible(position)
            sign = -1 if isinstance(target, steppe.targets.Knapsack) else 1
            assert float(model.objective.energy(sample)) == sign * float(target.score(position))


def test_colourings_and_groups_go_to_networkx_with_every_edge():
    networkx = pytest.importorskip("networkx")
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    for target in (steppe.targets.coloring(edges, 3), steppe.targets.partition(edges)):
        graph = steppe.interop.to_networkx(target)
        assert networkx.utils.edges_equal(list(graph.edges()), edges)
    with pytest.raises(steppe.errors.TargetError, match="to_dimod"):
        steppe.interop.to_networkx(steppe.targets.potts_tables(np.zeros((3, 3, 2, 2))))
    with pytest.raises(steppe.errors.TargetError, match="formulas, knapsacks"):
        steppe.interop.to_dimod(steppe.targets.paper_bernoulli())


@pytest.mark.slow
def test_the_dimod_sampler_finds_the_ground_state_and_has_the_interface():
    dimod = pytest.importorskip("dimod")
    sampler = steppe.SteppeSampler()
    dimod.testing.assert_sampler_api(sampler)
    J = {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "d"): -2.0, ("a", "d"): 1.0}
    found = sampler.sample_ising({"a": 0.5}, J, num_reads=5, num_sweeps=30, seed=1)
    bqm = dimod.BinaryQuadraticModel.from_ising({"a": 0.5}, J)
    exact = dimod.ExactSolver().sample(bqm)
    assert found.first.energy == exact.first.energy
    assert found.record.num_occurrences.sum() == 5
    with pytest.raises(steppe.errors.RunError, match="num_reads"):
        sampler.sample(bqm, num_reads=0)
    with pytest.raises(steppe.errors.RunError, match="beta_range"):
        sampler.sample(bqm, beta_range=(1.0, 2.0, 3.0))


@pytest.mark.slow
def test_the_dimod_sampler_passes_the_tests_that_dimod_has_for_samplers():
    dimod = pytest.importorskip("dimod")
    import unittest

    @dimod.testing.load_sampler_bqm_tests(steppe.SteppeSampler)
    class Tests(unittest.TestCase):
        pass

    outcome = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(outcome)
    assert outcome.testsRun >= 30
    assert outcome.wasSuccessful(), [*outcome.errors, *outcome.failures][:1]


@pytest.mark.parametrize("seed", range(3))
def test_best_sets_of_nodes_weigh_what_networkx_finds_by_branch_and_bound(seed):
    graph = networkx.gnp_random_graph(12, 0.4, seed=seed)
    weights = np.random.default_rng(seed).integers(1, 6, 12)
    networkx.set_node_attributes(graph, dict(enumerate(weights.tolist())), "weight")
    _, largest_clique = networkx.max_weight_clique(graph)
    rest = networkx.complement(graph)
    rest.add_nodes_from(graph.nodes(data=True))
    _, largest_set = networkx.max_weight_clique(rest)
    wanted = {
        steppe.targets.clique: largest_clique,
        steppe.targets.independent_set: largest_set,
        steppe.targets.vertex_cover: weights.sum() - largest_set,
    }
    for problem, weight in wanted.items():
        target = problem(graph, weights)
        states = target.domain.enumerate()
        best = states[np.argmax(jax.vmap(target.log_density)(states))]
        assert target.is_feasible(best)
        assert float(target.score(best)) == weight
