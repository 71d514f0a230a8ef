"""Every public function, a call of it that works, and junk to put in place of its arguments.

PYTHONPATH=tests python -m fuzz.public_calls [names]    # prints what leaks, what is accepted and what is slow
"""

import collections.abc
import contextlib
import inspect
import math
import os
import sys
import tempfile
import time
import types
import typing
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import datasets, interop, modes, routes, samplers, targets, theory, training
from steppe.diagnostics import exact, flatness, mixing
from steppe.domain import Domain
from steppe.errors import SteppeError
from steppe.kernel.compose import Recipe

KEY = jax.random.key(0)
MAX_SECONDS = 2.0
BITS = np.array([[0.0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
MATRIX = np.array([[0.0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
CHAIN = np.array([[0.5, 0.5], [0.25, 0.75]])

JUNK: dict[str, Any] = {
    "None": None,
    "a word": "x",
    "an empty word": "",
    "a figure in a word": "4",
    "a word with a zero byte": "a\0b",
    "bytes": b"x",
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "-5": -5,
    "half": 0.5,
    "2**70": 2**70,
    "1e300": 1e300,
    "True": True,
    "1j": 1j,
    "a dict": {},
    "a full dict": {"a": 1},
    "a set": {1, 2},
    "a list": [],
    "a tuple": (),
    "words": ["a", "b"],
    "ragged rows": [1, [2, 3]],
    "an object": object(),
    "a class": int,
    "a function": lambda *a, **k: None,
    "a module": math,
    "a cube": np.zeros((2, 3, 4)),
    "an empty array": np.zeros((0,)),
    "an array of nan": np.full((4, 4), np.nan),
    "an array of words": np.array(["a", "b"]),
    "an array of objects": np.array([object(), None]),
    "a key": jax.random.key(1),
    "keys": jax.random.split(jax.random.key(1), 3),
    "a domain": steppe.Binary(3),
    "a recipe": steppe.gibbs(),
}
# Numbers below zero that mean something.
SIGNED = {
    *("J", "Q", "h", "field", "coupling", "offset", "weights", "start", "end", "output_offset", "center_box"),
    *("hidden_bias", "visible_bias", "base_bias", "labels", "y", "x", "patterns", "costs", "coordinates"),
    *(
        "value",
        "values",
        "lower",
        "matrix",
        "center",
        "first",
        "second",
        "centers",
        "metadata",
        "levels",
        "distances",
        "inverse_step",
    ),
}


class Case(NamedTuple):
    """A public name, the function, and arguments with which it works."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]


class Outcome(NamedTuple):
    """What a call with one wrong argument did."""

    call: str
    kind: str
    what: str
    seconds: float


@cache
def target() -> steppe.Target:
    return steppe.Target(lambda bits: jnp.sum(bits * jnp.arange(4.0)) / 4, steppe.Binary(4))


@cache
def run() -> steppe.Run:
    return steppe.sample(target(), steppe.gibbs(), key=KEY, num_warmup=2, num_draws=8, progress=False)


@wraps(steppe.start)
def start_and_wait(*positional: Any, **keywords: Any) -> steppe.Run:
    return steppe.start(*positional, **keywords, progress=False).wait()


def list_cases(folder: Path) -> list[Case]:
    """A call that works for every public function and for every class that users make."""
    u, key, out = target(), {"key": KEY}, str(folder)
    (folder / "g").write_text("2 1\n1 2 1\n")
    (folder / "c").write_text("p cnf 2 1\n1 2 0\n")
    (folder / "d").write_text("p edge 2 1\ne 1 2\n")
    (folder / "t").write_text(
        "NAME: t\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 1\n3 1 1\n"
    )
    counts = {"num_chains": 2, "num_warmup": 2, "num_draws": 4, "progress": False}
    at = {"target": u, "positions": BITS}
    mix = {"weights": [0.5, 0.5], "site_probabilities": [[0.1, 0.9], [0.8, 0.2]]}
    cube = {"weights": np.ones((2, 3)) * 0.1, "hidden_bias": np.zeros(2), "visible_bias": np.zeros(3)}
    schedule = steppe.parameter_schedule(inverse_temperature=steppe.linear_schedule(0.5, 1.0))
    table: dict[Callable[..., Any], dict[str, Any]] = {
        steppe.Binary: {"num_sites": 3},
        steppe.Spin: {"num_sites": 3},
        steppe.Categorical: {"num_sites": 3, "num_levels": 3},
        steppe.Ordinal: {"num_sites": 3, "levels": 3},
        steppe.Permutation: {"num_sites": 3},
        steppe.Product: {"part": steppe.Binary(2)},
        steppe.Counts: {"num_sites": 3, "max_count": 4},
        steppe.Real: {"shape": (2,), "scale": 1.0},
        steppe.Target: {
            "log_density": lambda x: jnp.sum(x) / 2,
            "domain": steppe.Binary(4),
            "value_and_grad": None,
            "batched_value_and_grad": None,
            "differences": None,
            "is_valid": None,
            "incremental": None,
        },
        steppe.audit_gradient: {"target": u, **key},
        steppe.coupling_variance_from_flip_fraction: {
            "flip_fraction": 0.1,
            "center": "lattice",
            "replicas": 2,
            "squared_unit": 1.0,
        },
        steppe.sample: {
            "target": u,
            "recipe": steppe.gibbs(),
            **key,
            **counts,
            "thinning": 1,
            "initial": None,
            "keep": "draws",
            "out": None,
            "resume": False,
            "adapt": True,
            "devices": None,
            "shard": None,
            "chain_block": None,
            "allow_other_version": False,
            "metadata": None,
        },
        start_and_wait: {
            "target": u,
            "recipe": steppe.gibbs(),
            **key,
            "on_chunk": None,
            "num_warmup": 2,
            "num_draws": 4,
        },
        steppe.Observable: {"function": lambda x: x.sum(), "every": 1, "bins": 128, "of_pairs": False},
        steppe.mean_field: {"target": u, **key, "num_steps": 2},
        steppe.mixed: {"base": None, "real_step_size": 0.1, "num_leapfrog": 2},
        steppe.Adapt: {"acceptance": 0.5, "flip_rate": None, "center_distance": None, "pooled": False},
        steppe.open_run: {"path": out},
        steppe.merge_shards: {"parts": out, "out": f"{out}/merged"},
        steppe.robust: {
            "target": u,
            "flips": 2,
            "flip_rate": None,
            "scenarios": None,
            "scenario": None,
            "disturb": None,
            "repair": None,
            "risk": "mean",
            "num_samples": 2,
            "key": KEY,
        },
        steppe.measure_robustness: {
            "target": u,
            "positions": BITS,
            **key,
            "flips": None,
            "flip_rate": 0.2,
            "scenarios": None,
            "scenario": None,
            "disturb": None,
            "repair": None,
            "risk": "mean",
            "num_samples": 4,
        },
        steppe.find_flat_modes: {
            "target": u,
            **key,
            "flips": 1,
            "flip_rate": None,
            "scenarios": None,
            "scenario": None,
            "disturb": None,
            "repair": None,
            "risk": "mean",
            "max_loss": None,
            "within": None,
            "num_modes": 2,
            "separation": None,
            "budget": 20_000,
            "initial": None,
            "progress": False,
        },
        steppe.anneal: {
            "target": u,
            "recipe": steppe.gibbs(),
            "schedule": schedule,
            **key,
            "num_steps": 2,
            "num_chains": 2,
            "restarts": 0,  # or a time limit of 1e300 seconds would be used up
            "reheat": False,
            "time_limit": None,
            "until": None,
            "initial": None,
            "adapt": True,
            "out": None,
            "progress": False,
        },
        steppe.log_normalizer: {
            "target": u,
            **key,
            "recipe": None,
            **counts,
            "num_annealed": 4,
            "num_temperatures": 4,
            "exact": None,
        },
        steppe.anneal_population: {
            "target": u,
            "recipe": None,
            **key,
            "population": 8,
            "num_sweeps": 1,
            "survival": 0.9,
            "progress": False,
        },
        targets.variable_selection: {
            "design": BITS,
            "response": np.array([1.0, 2, 4]),
            "prior": "g",
            "g": None,
            "slab_variance": 1.0,
            "inclusion": 0.5,
            "beta": None,
        },
        steppe.recommend: {"target": u},
        steppe.count_states: {"target": u, **key, "num_bins": (2, 2), "num_steps": 64, "num_chains": 2},
        steppe.tune_ladder: {
            "recipe": steppe.parallel_tempering(),
            "target": u,
            **key,
            "num_steps": 8,
            "num_chains": 2,
        },
        steppe.parameter_schedule: {"inverse_temperature": steppe.linear_schedule(0.5, 1.0)},
        steppe.geometric_schedule: {"start": 0.5, "end": 1.0},
        steppe.linear_schedule: {"start": 0.5, "end": 1.0},
        steppe.tune: {
            "recipe": steppe.dmala(),
            "target": u,
            **key,
            "goal": "acceptance",
            "parameter": None,
            "values": None,
            "acceptance": 0.5,
            "loss": None,
            "initial": None,
            **counts,
        },
        steppe.compare: {
            "target": u,
            "recipes": [steppe.gibbs(), steppe.gwg()],
            **key,
            "seeds": 2,
            "budget": 200,
            "tuned_by": "none",
            "tuning_budget": None,
            "initial": None,
            "name": "n",
            "progress": False,
        },
        targets.bernoulli_table: {"probabilities": [0.25] * 4},
        targets.binary_network: {
            "x": np.eye(3),
            "y": np.array([0.0, 1, 0]),
            "hidden": 2,
            "temperature": None,
            "preset": "well_posed",
            "input_scale": None,
            "output_scale": None,
            "output_offset": None,
        },
        targets.committee: {
            "patterns": np.sign(BITS - 0.5),
            "labels": [1.0, -1, 1],
            "num_units": 1,
            "wiring": "full",
            "sharpness": 4.0,
            "gain": 2.0,
            "inverse_temperature": 1.0,
            "spins": False,
        },
        targets.ising: {"J": MATRIX, "h": 0.0, "spins": True},
        targets.ising_graph: {"edges": EDGES, "weights": 1.0, "num_sites": None, "field": 0.0, "spins": True},
        targets.ising_lattice: {
            "shape": (2, 2),
            "coupling": 0.1,
            "field": 0.0,
            "periodic": True,
            "spins": True,
        },
        targets.layerwise_gibbs: {},
        targets.max_cut: {
            "graph": MATRIX,
            "weights": None,
            "num_nodes": None,
            "spins": True,
            "inverse_temperature": 1.0,
        },
        targets.mixture: mix,
        targets.mixture_local_entropy: {**mix, "centers": np.zeros((1, 2)), "coupling_variance": 1.0},
        targets.mixture_responsibilities: {**mix, "positions": np.zeros((1, 2))},
        targets.paper_bernoulli: {},
        targets.perceptron: {
            "patterns": np.sign(BITS - 0.5),
            "labels": [1.0, -1, 1],
            "loss": "softplus",
            "sharpness": None,
            "inverse_temperature": 1.0,
            "spins": False,
        },
        targets.planted_mixture: {},
        targets.planted_plateau: {"seed": 0, "num_sites": 20, "num_wells": 2, "slope": 3.0, "radius": 1},
        targets.potts: {
            "shape_or_edges": (2, 2),
            "num_levels": 3,
            "coupling": 0.1,
            "field": 0.0,
            "periodic": True,
            "num_sites": None,
        },
        targets.qubo: {"Q": MATRIX, "offset": 0.0, "inverse_temperature": 1.0},
        **{
            make: {
                "graph": MATRIX,
                "node_weights": 1.0,
                "num_nodes": None,
                "penalty": None,
                "inverse_temperature": 1.0,
            }
            for make in (targets.independent_set, targets.clique, targets.vertex_cover)
        },
        targets.coloring: {"graph": MATRIX, "num_colors": 3, "num_nodes": None, "inverse_temperature": 1.0},
        targets.partition: {
            "graph": MATRIX,
            "num_parts": 2,
            "weights": None,
            "num_nodes": None,
            "balance": 1.0,
            "inverse_temperature": 1.0,
        },
        targets.block_model: {
            "graph": MATRIX,
            "num_groups": 2,
            "inside": 0.5,
            "between": 0.1,
            "num_nodes": None,
            "inverse_temperature": 1.0,
        },
        targets.cnf: {
            "clauses": [[1, -2], [2]],
            "weights": None,
            "num_variables": None,
            "inverse_temperature": 1.0,
        },
        targets.knapsack: {
            "values": np.ones(3),
            "weights": np.ones(3),
            "capacity": 2.0,
            "penalty": None,
            "inverse_temperature": 1.0,
        },
        targets.potts_tables: {
            "couplings": np.zeros((3, 3, 2, 2)),
            "field": 0.0,
            "edges": None,
            "num_sites": None,
            "inverse_temperature": 1.0,
        },
        targets.spin_glass: {
            "shape": (3, 3),
            "couplings": "gaussian",
            "seed": 0,
            "field": 0.0,
            "periodic": True,
            "scale": 1.0,
        },
        targets.sherrington_kirkpatrick: {"num_sites": 4, "couplings": "gaussian", "seed": 0, "scale": 1.0},
        targets.fixed_counts: {"target": u, "counts": (2, 2)},
        targets.linear_constraints: {
            "target": targets.qubo(MATRIX),
            "coefficients": [1.0] * len(MATRIX),
            "lower": None,
            "upper": 2.0,
            "penalty": None,
        },
        steppe.until: {"value": 1.0, "patience": None, "cpu_seconds": None},
        steppe.adaptive_schedule: {"flips": (0.5, 0.1), "acceptance": None},
        datasets.read_cnf: {"path": f"{out}/c"},
        datasets.read_dca: {"path": f"{out}/e"},
        datasets.read_dimacs: {"path": f"{out}/d"},
        interop.to_bqm: {"target": targets.ising(MATRIX)},
        interop.to_networkx: {"target": targets.ising(MATRIX)},
        interop.to_dimod: {"target": targets.ising(MATRIX)},
        targets.random_labels: {"seed": 0, "num_inputs": 5, "load": 0.5},
        targets.rbm: cube,
        targets.teacher_student: {"seed": 0, "num_inputs": 5, "load": 0.5, "num_test": 3},
        targets.tsp: {
            "distances": MATRIX,
            "coordinates": None,
            "weights": None,
            "encoding": "permutation",
            "inverse_temperature": 1.0,
        },
        targets.tsp_paper: {"encoding": "bits", "inverse_temperature": 1.0},
        datasets.load: {
            "name": "iris",
            "data": None,
            "as_published": False,
            "download": False,
            "progress": False,
        },
        datasets.names: {},
        datasets.read_gset: {"path": f"{out}/g"},
        datasets.read_tsplib: {"path": f"{out}/t"},
        theory.box_mass: {"domain": u.domain, "center_box": (-1.0, 2.0), "coupling_variance": 1.0},
        theory.center_bias: {"coupling_variance": 1.0, "center_step_size": 0.1, "dimension": 3},
        theory.constants: {"target": u, "center_box": None, "num_samples": 4, "seed": 0},
        theory.curvature: {"target": u, "num_samples": 4, "seed": 0},
        theory.drift_condition: {"domain": u.domain, "center_step_size": 0.1, "coupling_variance": 1.0},
        theory.drift_factor: {"center_step_size": 0.1, "coupling_variance": 1.0},
        theory.edula_bias_bound: {
            "target": u,
            "step_size": 0.1,
            "coupling_variance": 1.0,
            "center_step_size": 0.1,
            "is_joint": False,
        },
        theory.effective_step_size: {
            "step_size": 0.1,
            "coupling_variance": 1.0,
            "center_step_size": 0.1,
            "target": None,
        },
        theory.glu_gap_bound: {"target": u, "coupling_variance": 1.0},
        theory.quadratic_distribution: {"target": u, "inverse_step": 1.0},
        routes.find_short_tours: {
            "target": targets.tsp(coordinates=np.random.default_rng(0).random((6, 2))),
            "key": KEY,
            "num_starts": 1,
            "num_bridges": 2,
            "num_neighbours": 3,
        },
        training.log_likelihood: {"rbm": targets.rbm(**cube), "data": BITS[:, :3], **key},
        training.train_rbm: {
            "data": BITS,
            "num_hidden": 2,
            **key,
            "preset": "persistent",
            "method": None,
            "k": None,
            "sampler": None,
            "num_updates": 1,
            "batch_size": 2,
            "learning_rate": None,
            "out": None,
            "resume": False,
            "progress": False,
        },
        interop.to_blackjax: {"recipe": steppe.gibbs(), "domain": u.domain},
        interop.to_sampleset: {"bqm": None, "positions": BITS},
        interop.from_bqm: {"bqm": None, "inverse_temperature": 1.0},
        interop.from_networkx: {"graph": None, "problem": "max_cut", "inverse_temperature": 1.0},
        interop.from_numpyro: {"model": lambda: None, "kwargs": None, "gradient": "differences"},
        interop.from_pymc: {"model": None, "gradient": "differences"},
        interop.from_torch: {
            "function": lambda x: x.sum(),
            "domain": u.domain,
            "device": None,
            "dtype": None,
        },
        interop.NumpyroKernel: {
            "model": lambda: None,
            "recipe": None,
            "num_steps": 1,
            "gradient": "differences",
            "adapt": True,
        },
        flatness.basin_mass: {
            **at,
            "effective_size": None,
            "max_steps": 10,
            "exact": None,
            "batch_size": 4,
            "progress": None,
        },
        flatness.interaction_spectrum: {**at, "exact": None, "batch_size": 4, "progress": None},
        flatness.local_entropy: {
            **at,
            "coupling_variance": 1.0,
            **key,
            "num_particles": 8,
            "num_temperatures": 4,
            "exact": None,
            "batch_size": 4,
            "progress": None,
        },
        flatness.local_entropy_ball: {
            **at,
            "radius": 1,
            "coupling_variance": 1.0,
            "exact": None,
            "batch_size": 4,
            "progress": None,
        },
        flatness.local_entropy_enumerated: {"target": u, "centers": BITS, "coupling_variance": 1.0},
        flatness.local_search: {**at, "max_steps": 10, "batch_size": 4, "progress": None},
        flatness.noise_drop: {
            **at,
            **key,
            "flip_fraction": 0.2,
            "num_samples": 4,
            "exact": None,
            "batch_size": 4,
            "progress": None,
        },
        flatness.occupancy: {
            "positions": BITS,
            "modes": BITS[:2],
            "target": None,
            "effective_size": None,
            "exact": None,
        },
        flatness.single_site_differences: {
            **at,
            "within": 1.0,
            "exact": None,
            "batch_size": 4,
            "progress": None,
        },
        exact.target_distribution: {"target": u},
        exact.transition_matrix: {"recipe": steppe.gibbs(), "target": u, "center": None},
        exact.stationary_distribution: {"matrix": CHAIN},
        exact.total_variation: {"first": [0.5, 0.5], "second": [0.2, 0.8]},
        exact.spectral_gap: {"matrix": CHAIN},
        exact.relaxation_time: {"matrix": CHAIN},
        exact.integrated_autocorrelation_time: {"matrix": CHAIN, "values": [0.0, 1.0]},
        exact.exact_tv: {"recipe": steppe.dula(), "target": u},
        exact.proximal_matrix: {"target": u, "coupling_variance": 1.0},
        exact.expected_total_variation: {"distribution": [0.5, 0.5], "num_draws": 3},
        mixing.assess: {"trace": run().trace, "thinning": 1, "observables": None, "limit": 1.05},
    }
    for name in samplers.__all__:
        make = getattr(samplers, name)
        table[make] = {p.name: p.default for p in inspect.signature(make).parameters.values()}
    return [Case(function.__name__, function, arguments) for function, arguments in table.items()]


# What users are given and do not make: results, their parts, and what is only inherited from.
GIVEN_BACK = {
    *(
        "Annealed",
        "Comparison",
        "Evidence",
        "TunedLadder",
        "Recommendation",
        "StateCounts",
        "Population",
        "VariableSelection",
        "Domain",
        "FlatModes",
        "GradientAudit",
        "Incremental",
        "Run",
        "Tuned",
    ),
    *("LocalOptima", "Until", "BlockModel", "Coloring", "Formula", "FixedCounts", "Knapsack", "NodeSet"),
    *(
        "Partition",
        "FormulaInstance",
        "LinearConstraints",
        "LinearPenalty",
        "DcaParameters",
        "ShortTours",
        "Handle",
    ),
    *("PlantedMixture", "PlantedPlateau", "Card", "Dataset", "GraphInstance", "Split", "TspInstance"),
    *("Bound", "Constants", "Curvature", "Drift", "EffectiveStep", "Robustness", "StrengthCurves"),
    *("LogLikelihood", "TrainedRbm", "Mode", "BlackjaxMcmc", "BasinMass", "InteractionSpectrum"),
    *("LocalEntropy", "LocalSearch", "NoiseDrop", "Occupancy", "SingleSiteDifferences"),
}


def list_public() -> set[str]:
    """Names that are called, of the package and of the modules a user imports."""
    spaces = (steppe, targets, datasets, theory, routes, training, modes, interop, flatness, samplers)
    named = {(space, name) for space in spaces for name in space.__all__}
    called = {name for space, name in named if callable(getattr(space, name))}
    errors = {name for name in called if name.endswith("Error")}
    return called - errors - GIVEN_BACK


def find_kinds(annotation: Any) -> set[Any]:
    """Members of a union, unpacked."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set().union(*(find_kinds(one) for one in typing.get_args(annotation)))
    return {annotation}


def may_accept(parameter: inspect.Parameter, value: Any) -> bool:
    """Whether a value in place of an argument makes sense, by what the signature says."""
    kinds = find_kinds(parameter.annotation)
    kinds |= {np.ndarray} if complex in kinds else set()
    if isinstance(value, bool):
        return bool(kinds & {bool, object, Any}) or np.ndarray in kinds
    if value is None:
        return type(None) in kinds or parameter.default is None
    if isinstance(value, str):
        texts = {
            choice for kind in kinds if typing.get_origin(kind) is typing.Literal for choice in kind.__args__
        }
        is_path = Path in kinds or any(typing.get_origin(kind) is os.PathLike for kind in kinds)
        return value in texts or (
            bool(value.strip("\0")) and (str in kinds) and (is_path or "\0" not in value)
        )
    if callable(value) and not isinstance(value, steppe.Target):
        return any(typing.get_origin(kind) is collections.abc.Callable for kind in kinds)
    if isinstance(value, int | float):
        is_number = bool(kinds & {int, float, np.ndarray, np.number}) and not math.isnan(value)
        is_whole = float in kinds or np.ndarray in kinds or isinstance(value, int)
        is_finite = math.isfinite(value) or parameter.default == math.inf
        fits = float in kinds or np.ndarray in kinds or abs(value) < 2**63
        return is_number and is_whole and is_finite and fits and (value >= 0 or parameter.name in SIGNED)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiu" and bool(np.isfinite(value).all()) and value.size > 0
    if isinstance(value, Domain):
        return Domain in kinds
    if isinstance(value, Recipe):
        return type(value) in kinds or parameter.name in ("recipe", "base", "sampler")
    if isinstance(value, jax.Array):
        return parameter.name in ("key", "seed") and value.shape == ()
    return isinstance(value, dict) and any(
        typing.get_origin(kind) is collections.abc.Mapping for kind in kinds
    )


def fuzz(cases: list[Case], chosen: Callable[[str], bool]) -> Iterator[Outcome]:
    """Replace one argument of each call after another by junk; leave out required ones."""
    for case in cases:
        parameters = inspect.signature(case.function).parameters
        keywords = [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
        for name in case.arguments:
            parameter = parameters[name] if name in parameters else keywords[0].replace(name=name)
            junk = dict(JUNK)
            if parameter.default is inspect.Parameter.empty and name in parameters:
                junk["nothing"] = inspect.Parameter.empty
            for what, value in junk.items():
                call = f"{case.name}({name}={what})"
                if chosen(call):
                    yield attempt(case, parameter, call, value)


def attempt(case: Case, parameter: inspect.Parameter, call: str, value: Any) -> Outcome:
    """Make one call and say what it did."""
    arguments = {**case.arguments, parameter.name: value}
    if value is inspect.Parameter.empty:
        del arguments[parameter.name]
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", steppe.errors.SteppeWarning)
            case.function(**arguments)
    except SteppeError as error:
        kind, what = "refused", f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever else there is, is what is counted
        kind, what = "raw", f"{type(error).__name__}: {str(error)[:150]}"
    else:
        kind, what = ("works" if may_accept(parameter, value) else "silent"), ""
    return Outcome(call, kind, what, time.perf_counter() - begun)


def main(names: list[str]) -> int:
    """Print what is wrong."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # "x" is a path too
        cases = list_cases(Path(folder))
        sys.stdout.write(f"not called: {sorted(list_public() - {case.name for case in cases})}\n")
        counts: Counter[str] = Counter()
        for outcome in fuzz(cases, lambda call: not names or any(call.startswith(name) for name in names)):
            counts[outcome.kind] += 1
            is_slow = outcome.kind == "refused" and outcome.seconds > MAX_SECONDS
            if outcome.kind in ("raw", "silent") or is_slow:
                kind = "slow" if is_slow else outcome.kind
                sys.stdout.write(f"{kind:7}{outcome.call}  {outcome.what}  {outcome.seconds:.1f} s\n")
    sys.stdout.write(f"{dict(counts)}\n")
    return int(bool(counts["raw"] or counts["silent"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
