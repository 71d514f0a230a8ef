"""Bad input is refused with the function, the field and a remedy named."""

import jax
import numpy as np
import pytest

from steppe import targets
from steppe.errors import TargetError
from steppe.targets.rbm_normalizer import anneal_rbm

J = np.asarray([[0.0, 1.0], [1.0, 0.0]])
EDGES = [(0, 1), (1, 2)]
KEY = jax.random.key(0)


class Directed:
    nodes = (0, 1)

    def edges(self, data, default):
        return [(0, 1, 1.0)]

    def is_directed(self):
        return True


REFUSED = {
    "asymmetric coupling": (lambda: targets.ising([[0, 1], [2, 0]]), r"ising\(J=...\).*symmetric.*\(0, 1\)"),
    "non-square coupling": (lambda: targets.ising(np.ones((2, 3))), r"J=.*square matrix.*\(2, 3\)"),
    "coupling of a site to itself": (lambda: targets.ising(np.eye(2)), r"J=.*zero diagonal.*site 0"),
    "NaN coupling": (lambda: targets.ising([[0, np.nan], [np.nan, 0]]), r"J=.*finite.*nan at index \[0, 1\]"),
    "no matrix": (lambda: targets.ising("spins"), r"J=.*real numbers; got 'spins'"),
    "field of the wrong length": (lambda: targets.ising(J, [1, 2, 3]), r"ising\(h=...\).*\(2,\); got \(3,\)"),
    "negative length": (lambda: targets.ising_lattice((3, -1), 1.0), r"shape=.*at least 1; got -1"),
    "no axis": (lambda: targets.ising_lattice((), 1.0), r"shape=.*at least one axis"),
    "fractional length": (lambda: targets.ising_lattice(2.5, 1.0), r"shape=.*integer.*got 2.5"),
    "several couplings": (lambda: targets.ising_lattice(3, [1, 2]), r"coupling=.*one number"),
    "lattice field": (lambda: targets.ising_lattice((2, 3), 1.0, [[1.0]]), r"field=.*\(6,\) or \(2, 3\)"),
    "edge out of range": (
        lambda: targets.ising_graph(EDGES, num_sites=2),
        r"edges=.*0 to 1; edge 1 is \(1, 2\)",
    ),
    "negative index": (lambda: targets.ising_graph([(0, -1)]), r"edge 0 is \(0, -1\)"),
    "self-loop": (lambda: targets.ising_graph([(0, 1), (2, 2)]), r"edge 1 binds site 2 to itself"),
    "triples": (lambda: targets.ising_graph([(0, 1, 2)]), r"edges=.*shape \(num_edges, 2\)"),
    "fractional edges": (lambda: targets.ising_graph([(0.5, 1)]), r"edges=.*type float64"),
    "too few weights": (lambda: targets.ising_graph(EDGES, [1.0]), r"weights=.*\(2,\); got \(1,\)"),
    "no site": (lambda: targets.ising_graph([]), r"edges=.*no edge"),
    "one level": (lambda: targets.potts((2, 2), 1, 1.0), r"num_levels=.*at least 2; got 1"),
    "Potts field": (lambda: targets.potts((2, 2), 3, 1.0, [1, 2]), r"field=.*\(4, 3\) or \(3,\)"),
    "vector of weights": (lambda: targets.rbm([1.0, 2.0], 0.0, 0.0), r"weights=.*2 axes.*\(2,\)"),
    "no hidden bit": (lambda: targets.rbm(np.ones((0, 3)), 0.0, 0.0), r"at least one hidden.*\(0, 3\)"),
    "hidden bias": (lambda: targets.rbm(np.ones((2, 3)), [1] * 3, 0.0), r"hidden_bias=.*\(2,\); got \(3,\)"),
    "infinite bias": (lambda: targets.rbm(np.ones((2, 3)), 0.0, np.inf), r"visible_bias=.*finite; got inf"),
    "one chain": (
        lambda: anneal_rbm(np.ones((2, 3)), 0.0, 0.0, KEY, num_chains=1),
        r"num_chains=.*at least 2; got 1",
    ),
    "non-square QUBO": (lambda: targets.qubo([1.0, 2.0]), r"qubo\(Q=...\).*square"),
    "frozen QUBO": (lambda: targets.qubo(J, inverse_temperature=0), r"inverse_temperature=.*positive; got 0"),
    "asymmetric weights": (lambda: targets.max_cut(np.triu(np.ones((3, 3)), 1)), r"graph=.*symmetric"),
    "weights beside a graph": (lambda: targets.max_cut(Directed(), [1.0]), r"weights=.*edge list"),
    "directed graph": (lambda: targets.max_cut(Directed()), r"undirected; use `graph.to_undirected\(\)`"),
    "node bound to itself": (lambda: targets.max_cut([(1, 1)]), r"max_cut.*edge 0 binds site 1 to itself"),
    "labels in 0/1": (lambda: targets.perceptron(np.ones((2, 3)), [0, 1]), r"labels=.*got 0 for pattern 0"),
    "too few labels": (lambda: targets.perceptron(np.ones((2, 3)), [1]), r"one label per pattern"),
    "unknown loss": (lambda: targets.perceptron(np.ones((1, 3)), [1], "hinge"), r"loss=.*'softplus' or"),
    "negative sharpness": (
        lambda: targets.perceptron(np.ones((1, 3)), [1], sharpness=-1.0),
        r"sharpness=.*positive; got -1.0",
    ),
    "NaN pattern": (lambda: targets.perceptron([[1, np.nan]], [1]), r"patterns=.*finite; got nan"),
    "negative size": (lambda: targets.teacher_student(0, -5, 0.5), r"num_inputs=.*at least 1; got -5"),
    "negative load": (lambda: targets.random_labels(0, 5, -0.5), r"load=.*positive; got -0.5"),
    "empty load": (lambda: targets.random_labels(0, 5, 0.01), r"less than one pattern"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_name(name):
    make, message = REFUSED[name]
    with pytest.raises(TargetError, match=message):
        make()
