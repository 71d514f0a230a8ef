"""Every target of this folder a second time: slow loops in NumPy, on real-valued positions."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

import steppe
from steppe import targets


class Case(NamedTuple):
    """A target (made inside the test, in its precision) and its log-density in plain NumPy."""

    make: Callable[[], steppe.Target]
    reference: Callable[[np.ndarray], float]
    has_gradient: bool = True


def symmetric(seed: int, size: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).normal(size=(size, size)), 1)
    return upper + upper.T


def lattice_edges(shape: tuple[int, ...], periodic: bool) -> list[tuple[int, int]]:
    """Bonds from every site to the next one along every axis of two or more sites."""
    number = {place: site for site, place in enumerate(product(*map(range, shape)))}
    edges = []
    for place, site in number.items():
        for axis, length in enumerate(shape):
            step = list(place)
            step[axis] += 1
            if length > 1 and (step[axis] < length or periodic):
                step[axis] %= length
                edges.append((site, number[tuple(step)]))
    return edges


def pairs_reference(edges, weights, field, position):
    total = 0.0
    for (i, j), weight in zip(edges, weights, strict=True):
        total += weight * np.sum(position[i] * position[j])
    return total + np.sum(np.asarray(field) * position)


def ising_reference(edges, weights, field, spins=True):
    def reference(position):
        return pairs_reference(edges, weights, field, position if spins else 2 * position - 1)

    return reference


def rbm_reference(weights, hidden_bias, visible_bias):
    def reference(visible):
        total = 0.0
        for row, bias in zip(weights, hidden_bias, strict=True):
            total += np.logaddexp(0.0, sum(w * v for w, v in zip(row, visible, strict=True)) + bias)
        return total + sum(b * v for b, v in zip(visible_bias, visible, strict=True))

    return reference


def perceptron_reference(patterns, labels, loss_of_stability, spins=False):
    def reference(position):
        w = position if spins else 2 * position - 1
        total = 0.0
        for pattern, label in zip(patterns, labels, strict=True):
            total -= loss_of_stability(label * (pattern @ w) / np.sqrt(len(w)))
        return total

    return reference


def qubo_reference(Q, offset, inverse_temperature):
    """The diagonal multiplies `x`, which is `x²` on bits."""

    def reference(x):
        total = offset
        for i, j in product(range(len(Q)), repeat=2):
            total += Q[i, j] * (x[i] if i == j else x[i] * x[j])
        return -inverse_temperature * total

    return reference


def cut_reference(edges, weights, inverse_temperature, spins):
    def reference(position):
        s = position if spins else 2 * position - 1
        pairs = zip(edges, weights, strict=True)
        return inverse_temperature * sum(w * (1 - s[i] * s[j]) / 2 for (i, j), w in pairs)

    return reference


RNG = np.random.default_rng(7)
EDGES = [(0, 1), (1, 2), (3, 1), (0, 4), (4, 1), (1, 0)]  # site 5 is isolated, (0, 1) comes twice
EDGE_WEIGHTS = RNG.normal(size=len(EDGES))
STAR = [(0, site) for site in range(1, 40)]
FIELD = RNG.normal(size=6)
J = symmetric(1, 6)
J_EDGES = [(i, j) for i in range(6) for j in range(i)]
J_WEIGHTS = [J[i, j] for i, j in J_EDGES]
W, B, BV = RNG.normal(size=(4, 6)), RNG.normal(size=4), RNG.normal(size=6)
Q = RNG.normal(size=(6, 6))
PATTERNS = targets.random_labels(3, 5, 1.6).patterns
LABELS = targets.random_labels(3, 5, 1.6).labels
LEVEL_FIELD = RNG.normal(size=(4, 3))


def softplus_loss(m):
    return 0.7 * np.logaddexp(0, -30 * m) / 30


def logistic_loss(m):
    return 0.7 * np.logaddexp(0, -4 * m)


def error_loss(m):
    return 0.7 * (m <= 0)


def lattice_case(shape, coupling, field, periodic, spins):
    edges = lattice_edges(shape, periodic)
    flat = np.broadcast_to(field, shape).ravel()
    return Case(
        lambda: targets.ising_lattice(shape, coupling, field, periodic, spins),
        ising_reference(edges, [coupling] * len(edges), flat, spins),
    )


CASES = {
    "ring": lattice_case((5,), 0.6, 0.2, True, True),
    "lattice, periodic": lattice_case((3, 2), -0.4, FIELD.reshape(3, 2), True, True),
    "lattice, open, bits": lattice_case((2, 3), 0.5, FIELD.reshape(2, 3), False, False),
    "lattice, three axes": lattice_case((3, 2, 3), 0.3, 0.1, True, True),
    "lattice, open, flat axis": lattice_case((3, 1, 2), 0.3, -0.1, False, True),
    "dense": Case(lambda: targets.ising(J, FIELD), ising_reference(J_EDGES, J_WEIGHTS, FIELD)),
    "dense, bits": Case(
        lambda: targets.ising(J, FIELD, spins=False), ising_reference(J_EDGES, J_WEIGHTS, FIELD, False)
    ),
    "graph": Case(
        lambda: targets.ising_graph(EDGES, EDGE_WEIGHTS, 6, FIELD),
        ising_reference(EDGES, EDGE_WEIGHTS, FIELD),
    ),
    "graph, bits": Case(
        lambda: targets.ising_graph(EDGES, EDGE_WEIGHTS, 6, FIELD, spins=False),
        ising_reference(EDGES, EDGE_WEIGHTS, FIELD, spins=False),
    ),
    "graph, without a hub list": Case(
        lambda: targets.ising_graph(STAR, 0.3), ising_reference(STAR, [0.3] * len(STAR), 0.0)
    ),
    "potts, lattice": Case(
        lambda: targets.potts((2, 2), 3, 0.8, LEVEL_FIELD, periodic=False),
        ising_reference(lattice_edges((2, 2), False), [0.8] * 4, LEVEL_FIELD),
    ),
    "potts, periodic": Case(
        lambda: targets.potts((3, 2), 3, 0.5, LEVEL_FIELD[0]),
        ising_reference(lattice_edges((3, 2), True), [0.5] * 12, np.tile(LEVEL_FIELD[0], (6, 1))),
    ),
    "potts, edges": Case(
        lambda: targets.potts(np.asarray(EDGES), 3, EDGE_WEIGHTS),
        ising_reference(EDGES, EDGE_WEIGHTS, 0.0),
    ),
    "rbm": Case(lambda: targets.rbm(W, B, BV), rbm_reference(W, B, BV)),
    "qubo": Case(lambda: targets.qubo(Q, 0.5, inverse_temperature=0.7), qubo_reference(Q, 0.5, 0.7)),
    "max cut, sparse": Case(
        lambda: targets.max_cut(EDGES, EDGE_WEIGHTS, num_nodes=20, inverse_temperature=0.7),
        cut_reference(EDGES, EDGE_WEIGHTS, 0.7, spins=True),
    ),
    "max cut, matrix, bits": Case(
        lambda: targets.max_cut(J, spins=False, inverse_temperature=0.7),
        cut_reference(J_EDGES, J_WEIGHTS, 0.7, spins=False),
    ),
    "perceptron, softplus": Case(
        lambda: targets.perceptron(PATTERNS, LABELS, "softplus", inverse_temperature=0.7),
        perceptron_reference(PATTERNS, LABELS, softplus_loss),
    ),
    "perceptron, logistic, spins": Case(
        lambda: targets.perceptron(PATTERNS, LABELS, "logistic", inverse_temperature=0.7, spins=True),
        perceptron_reference(PATTERNS, LABELS, logistic_loss, spins=True),
    ),
    "perceptron, errors": Case(
        lambda: targets.perceptron(PATTERNS, LABELS, "errors", inverse_temperature=0.7),
        perceptron_reference(PATTERNS, LABELS, error_loss),
        has_gradient=False,
    ),
}

# Four sites, for matrices of the slow oracle.
TINY_CASES = {
    "lattice": lattice_case((2, 2), 0.5, FIELD[:4].reshape(2, 2), False, False),
    "dense": Case(
        lambda: targets.ising(J[:4, :4], FIELD[:4]),
        ising_reference(J_EDGES[:6], J_WEIGHTS[:6], FIELD[:4]),
    ),
    "graph": Case(
        lambda: targets.ising_graph(EDGES[:3], EDGE_WEIGHTS[:3], 4, FIELD[:4]),
        ising_reference(EDGES[:3], EDGE_WEIGHTS[:3], FIELD[:4]),
    ),
    "rbm": Case(lambda: targets.rbm(W[:, :4], B, BV[:4]), rbm_reference(W[:, :4], B, BV[:4])),
    "perceptron": Case(
        lambda: targets.perceptron(PATTERNS[:, :4], LABELS, "logistic", inverse_temperature=0.7),
        perceptron_reference(PATTERNS[:, :4], LABELS, logistic_loss),
    ),
}


def finite_differences(reference: Callable[[np.ndarray], float], position: np.ndarray) -> np.ndarray:
    """Gradient by the five-point rule: exact for quartics, error about 1e-10 here."""
    step, weights = 2e-3, {1: 2 / 3, -1: -2 / 3, 2: -1 / 12, -2: 1 / 12}
    gradient = np.zeros_like(position)
    for entry in np.ndindex(position.shape):
        direction = np.zeros_like(position)
        direction[entry] = step
        moved = (weight * reference(position + n * direction) for n, weight in weights.items())
        gradient[entry] = sum(moved) / step
    return gradient
