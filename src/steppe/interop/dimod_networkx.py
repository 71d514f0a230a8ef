"""Binary quadratic models of dimod and graphs of networkx, as targets.

Both speak of energies, to be minimised; `U = −β · energy`. Bonds are stored as lists of neighbours or as a
full matrix, whichever is faster for the graph at hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary, Spin, Variable
from steppe.errors import TargetError
from steppe.optional import require
from steppe.targets.checks import array_of_shape, choice, number, positive, real_array
from steppe.targets.coupling_tables import TableBonds
from steppe.targets.graphs import Graph, NetworkxGraph, read_graph
from steppe.targets.groups import GroupModel
from steppe.targets.pairwise import Pairwise
from steppe.targets.qubo import bonds_of, max_cut

# dimod is imported when it is needed.
Bqm = SampleSet = Any

GraphProblem = Literal["ising", "max_cut", "qubo"]


class BinaryQuadratic(Pairwise):
    """An energy that is quadratic in bits or spins, to be minimised."""

    def energy(self, position: Array) -> Array:
        """Energy of one position with its offset, smaller is better."""
        return -self.unscale(position)

    def score(self, position: ArrayLike) -> Array:
        """As `energy`, smaller is better."""
        return self.energy(jnp.asarray(position))


@checked(TargetError)
def from_bqm(bqm: Bqm, *, inverse_temperature: ArrayLike = 1.0) -> BinaryQuadratic:
    """Target `π ∝ exp(−β · energy)` of a binary quadratic model of dimod.

    Sites are numbered in the order of `bqm.variables`. Models of variable type `BINARY` live on `Binary`,
    those of type `SPIN` on `Spin`; the offset is kept, so that `target.energy(position)` is `bqm.energy`.

    Parameters
    ----------
    bqm
        A `dimod.BinaryQuadraticModel`.
    inverse_temperature
        `β > 0`. Raising it concentrates on low energies.
    """
    dimod = require("dimod", "graphs", "`from_bqm`")
    if not isinstance(bqm, dimod.BinaryQuadraticModel):
        raise TargetError(_not_quadratic("from_bqm", bqm))
    if not bqm.num_variables:
        raise TargetError("`from_bqm(bqm)` needs at least one variable; this model is empty.")
    linear, (rows, columns, biases), offset = bqm.to_numpy_vectors(variable_order=list(bqm.variables))
    graph = Graph(np.stack([rows, columns], axis=1), real_array("from_bqm(quadratic)", biases), len(linear))
    is_spin = bqm.vartype is dimod.SPIN
    labels = [str(label) for label in bqm.variables]
    return _from_energy("from_bqm", graph, labels, linear, offset, is_spin, inverse_temperature)


@checked(TargetError)
def from_networkx(
    graph: NetworkxGraph, problem: GraphProblem = "max_cut", *, inverse_temperature: ArrayLike = 1.0
) -> Pairwise:
    """Target of an optimisation problem on a networkx graph.

    Sites are numbered in the order of `graph.nodes`. The attribute `weight` counts, of edges (1 where there
    is none) and of nodes (0 where there is none).

    Parameters
    ----------
    graph
        An undirected `networkx` graph.
    problem
        `"max_cut"`: `U = β Σ_<ij> w_ij [s_i ≠ s_j]` on spins, without weights of nodes. `"ising"`:
        `U = β (Σ_<ij> w_ij s_i s_j + Σ_i w_i s_i)` on spins; positive weights favour agreement. `"qubo"`:
        `U = −β (Σ_<ij> w_ij x_i x_j + Σ_i w_i x_i)` on bits; positive weights are penalties.
    inverse_temperature
        `β > 0`.
    """
    choice("from_networkx(problem=...)", problem, get_args(GraphProblem))
    if not isinstance(graph, NetworkxGraph):
        raise TargetError(
            f"`from_networkx(graph)` needs a networkx graph; got {type(graph).__name__}. Edge lists and "
            "matrices go to `steppe.targets.max_cut`, `ising_graph` and `qubo` as they are."
        )
    network = read_graph("from_networkx", graph, None, None)
    weights = [weight for _, weight in graph.nodes(data="weight", default=0.0)]
    if problem == "max_cut":
        if any(weights):
            raise TargetError(
                "`from_networkx(graph, 'max_cut')`: nodes have weights, and a cut has none. Use "
                "`problem='ising'` for fields on nodes, or remove the attribute `weight` of nodes."
            )
        return max_cut(graph, inverse_temperature=inverse_temperature)
    if problem == "ising":
        network = network._replace(weights=-network.weights)
        weights = -array_of_shape("from_networkx(node weight)", weights, (network.num_sites,))
    labels, is_spin = [str(node) for node in graph.nodes], problem == "ising"
    return _from_energy("from_networkx", network, labels, weights, 0.0, is_spin, inverse_temperature)


@checked(TargetError)
def to_sampleset(bqm: Bqm, positions: ArrayLike) -> SampleSet:
    """Positions as a `dimod.SampleSet` with their energies, for tools that read one.

    Parameters
    ----------
    bqm
        The model `from_bqm` was given.
    positions
        Positions of the target, any number of leading axes; `run.positions` are all draws of a run.
    """
    dimod = require("dimod", "graphs", "`to_sampleset`")
    if not isinstance(bqm, dimod.BinaryQuadraticModel):
        raise TargetError(_not_quadratic("to_sampleset", bqm))
    rows = np.asarray(positions)
    values = (-1, 1) if bqm.vartype is dimod.SPIN else (0, 1)
    if rows.shape[-1:] != (bqm.num_variables,) or not np.isin(rows, values).all():
        raise TargetError(
            f"`to_sampleset(bqm, positions)` needs positions of {bqm.num_variables} sites that are "
            f"{values[0]} or {values[1]}, as `from_bqm(bqm)` has them; got an array of shape {rows.shape} "
            f"with values from {rows.min(initial=0):g} to {rows.max(initial=0):g}."
        )
    rows = rows.reshape(-1, bqm.num_variables).astype(np.int8)
    return dimod.SampleSet.from_samples_bqm((rows, list(bqm.variables)), bqm)


@checked(TargetError)
def to_bqm(target: Pairwise) -> Bqm:
    """Binary quadratic model of dimod with `energy = −U / β`, of any pairwise target on bits or spins.

    Cuts, independent sets, cliques, covers, quadratic models and Ising models are such targets; sites keep
    their numbers.

    Parameters
    ----------
    target
        What to convert.
    """
    dimod = require("dimod", "graphs", "`to_bqm`")
    edges, strengths, fields, offset = _read_pairs("to_bqm", target)
    is_spin = target.reads_bits_as_spins or isinstance(target.domain, Spin)
    bqm = dimod.BinaryQuadraticModel("SPIN" if is_spin else "BINARY")
    bqm.add_linear_from(enumerate((-fields).tolist()))
    bqm.add_quadratic_from(zip(*edges.T.tolist(), (-strengths).tolist(), strict=True))
    bqm.offset = -offset
    return bqm


@checked(TargetError)
def to_networkx(target: Pairwise | GroupModel) -> NetworkxGraph:
    """Graph of networkx: couplings of a target are `weight` of edges, fields on bits or spins that of nodes.

    Parameters
    ----------
    target
        A pairwise target, such as a cut, an independent set or a colouring; a partition or a block model.
    """
    networkx = require("networkx", "graphs", "`to_networkx`")
    if isinstance(target, Pairwise) and target.field.ndim == 1:
        edges, strengths, fields, _ = _read_pairs("to_networkx", target)
    else:
        (edges, strengths), fields = list_couplings(target), np.zeros(target.domain.num_sites)
    graph = networkx.Graph()
    graph.add_nodes_from((site, {"weight": weight}) for site, weight in enumerate(fields.tolist()))
    graph.add_weighted_edges_from(zip(*edges.T.tolist(), strengths.tolist(), strict=True))
    return graph


def _read_pairs(name: str, target: Pairwise) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Pairs, each once, with their couplings; fields; the constant."""
    form = target.pair_form
    if form is None or form.values is None:
        raise TargetError(
            f"`{name}(target)` needs a pairwise target on bits or spins; {target.domain!r} has more levels."
        )
    return *list_couplings(target), np.asarray(target.field, float), float(target.offset)


def list_couplings(target: Pairwise | GroupModel) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of sites, each once, and the couplings of their agreement or product."""
    if isinstance(target.bonds, TableBonds):
        raise TargetError("A table of couplings for every pair is no number for it. Use `to_dimod(target)`.")
    sources, ends, places = target.bonds.pairs()
    once, strengths = sources < ends, np.asarray(target.bonds.strengths, float)
    of_pairs = np.full(len(sources), float(strengths)) if places is None else strengths[np.asarray(places)]
    return np.stack([sources, ends], axis=1)[once], of_pairs[once]


def _from_energy(
    name: str,
    graph: Graph,
    labels: Sequence[str],
    linear: ArrayLike | Sequence[float],
    offset: ArrayLike,
    is_spin: bool,
    inverse_temperature: ArrayLike,
) -> BinaryQuadratic:
    """Turn `Σ w_ij v_i v_j + Σ l_i v_i + offset` into a target of the opposite sign."""
    weights = array_of_shape(f"{name}(edge weight)", graph.weights, (len(graph.edges),))
    # As dimod writes them: spins s, bits x.
    named = Variable("s" if is_spin else "x", (graph.num_sites,), labels=tuple(labels))
    return BinaryQuadratic(
        domain=(Spin if is_spin else Binary)(graph.num_sites).with_variables(named),
        bonds=bonds_of(graph._replace(weights=-weights)),
        field=-array_of_shape(f"{name}(node weight)", linear, (graph.num_sites,)),
        offset=-number(f"{name}(offset)", offset),
        inverse_temperature=positive(f"{name}(inverse_temperature=...)", inverse_temperature),
    )


def _not_quadratic(function: str, model: object) -> str:
    expected = f"`{function}(bqm)` needs a `dimod.BinaryQuadraticModel`"
    # Polynomials are mappings from terms, of dimod or written out.
    terms = (
        [term for term in model if isinstance(term, tuple | frozenset)] if isinstance(model, Mapping) else []
    )
    longest = sorted(max(terms, key=len, default=()), key=str)
    if len(longest) > 2:
        return (
            f"{expected}; this polynomial has the term {tuple(longest)} of {len(longest)} variables. "
            "`dimod.make_quadratic(polynomial, strength, vartype)` adds variables until it is quadratic, or "
            "write it as a JAX function and use `steppe.Target`."
        )
    return (
        f"{expected}; got {type(model).__name__}. A dictionary of terms goes through "
        "`dimod.BinaryQuadraticModel.from_qubo`, a polynomial through `dimod.make_quadratic`, a constrained "
        "model through `dimod.cqm_to_bqm`."
    )
