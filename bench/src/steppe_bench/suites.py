"""Suites: which instances, how long, what is counted, and what others have published on them."""

import csv
import dataclasses
from collections.abc import Callable
from functools import partial
from importlib import resources

import jax.numpy as jnp
import networkx as nx
import numpy as np

from steppe import datasets, targets
from steppe.diagnostics.exact import expected_total_variation, target_distribution
from steppe.target import Target
from steppe_bench.rivals import Method
from steppe_bench.sampling import (
    NUM_DRAWS,
    certify,
    draw,
    draw_solutions,
    measure_distance,
    measure_uniformity,
)

ISCO = "iSCO (Sun et al. 2023)"


@dataclasses.dataclass(frozen=True)
class Instance:
    """One problem.

    Attributes
    ----------
    name
        As in its collection, or with the seed it was drawn from.
    make
        Makes the target.
    score
        From target and position to the number that counts.
    best_known
        From the literature, where there is one.
    published
        What others reached, by source.
    goal
        Log-density at which a search may stop, because nothing better is known.
    """

    name: str
    make: Callable[[], Target]
    score: Callable[[Target, np.ndarray], float]
    best_known: float | None = None
    published: dict[str, float] = dataclasses.field(default_factory=dict)
    goal: float | None = None


@dataclasses.dataclass(frozen=True)
class Suite:
    """Instances that are run the same way.

    Attributes
    ----------
    summary
        What it is, in a line.
    unit
        What is counted.
    is_maximized
        Whether more of it is better.
    seconds
        Processor time per instance, seed and method, compiling not counted.
    list_instances
        Makes the instances, those of a quick run first.
    num_quick
        How many of them a quick run takes.
    notes
        Where published values come from, and on which hardware.
    draw
        Draws from the instance, where a distribution is to be sampled instead of a state searched for.
    certify
        Makes a sentence from a target and the draws of its first seed.
    question
        What the suite answers; by default how good the best is that the time finds.
    """

    summary: str
    unit: str
    is_maximized: bool
    seconds: float
    list_instances: Callable[[], list[Instance]]
    num_quick: int
    notes: tuple[str, ...] = ()
    draw: Method | None = None
    certify: Callable[[Target, np.ndarray], str] | None = None
    question: str | None = None


def _score(target: Target, position: np.ndarray) -> float:
    """Score of a position after its repair."""
    return float(target.score(target.repair(position)))  # pyright: ignore[reportAttributeAccessIssue]


def _count_satisfied(target: Target, position: np.ndarray) -> float:
    return float(target.score(position))  # pyright: ignore[reportAttributeAccessIssue]


def _negate_energy(target: Target, position: np.ndarray) -> float:
    return float(-target.log_density(jnp.asarray(position))) / target.domain.num_sites


def _tour_length(target: Target, position: np.ndarray) -> float:
    return float(-target.log_density(jnp.asarray(position)))


# ---- cuts ------------------------------------------------------------------------------------------------

SMALL = ("G1", "G14", "G15", "G22", "G43", "G49", "G50", "G55", "G70")
LARGE = ("G72", "G77", "G81")
ISCO_CUTS = {"G14": 3056, "G15": 3046, "G22": 13289, "G49": 5940, "G50": 5880, "G55": 10218, "G70": 9442}
ISCO_NOTE = f"{ISCO}: 'Revisiting sampling for combinatorial optimization', ICML 2023, on GPUs."


def _list_gset(names: tuple[str, ...]) -> list[Instance]:
    instances = []
    for name in names:
        graph = datasets.load(f"gset:{name}")
        published = {ISCO: float(ISCO_CUTS[name])} if name in ISCO_CUTS else {}
        instances.append(
            Instance(
                name,
                lambda graph=graph: targets.max_cut(graph),
                _score,
                graph.best_known,
                published,
                goal=graph.best_known,
            )
        )
    return instances


def _list_ba() -> list[Instance]:
    instances = []
    for low, high, seeds in ((200, 300, range(8)), (800, 1200, range(8))):
        for seed in seeds:
            size = int(np.random.default_rng(seed).integers(low, high + 1))
            edges = np.asarray(nx.barabasi_albert_graph(size, 4, seed=seed).edges)
            instances.append(
                Instance(f"BA-{low}-{high} seed {seed}", lambda edges=edges: targets.max_cut(edges), _score)
            )
    return instances


# ---- sets ------------------------------------------------------------------------------------------------


def list_random_graphs(low: int, high: int, probability: float, seeds: range) -> list[Instance]:
    """Erdős–Rényi graphs with a uniform number of nodes, both from the seed in the name of the instance."""
    instances = []
    for seed in seeds:
        size = int(np.random.default_rng(seed).integers(low, high + 1))
        name = f"ER {size} p={probability:g} seed {seed}"
        draw_graph = partial(nx.fast_gnp_random_graph, size, probability, seed=seed)
        instances.append(Instance(name, partial(_make_set, draw_graph), _score))
    return instances


def _make_set(draw_graph: Callable[[], nx.Graph]) -> Target:
    graph = draw_graph()
    return targets.independent_set(np.asarray(graph.edges), num_nodes=len(graph))


def _list_cliques() -> list[Instance]:
    names = [name.removeprefix("dimacs:") for name in datasets.names() if name.startswith("dimacs:")]
    graphs = [datasets.load(f"dimacs:{name}") for name in names]
    return [
        Instance(
            graph.name,
            lambda graph=graph: targets.clique(graph),
            _score,
            graph.best_known,
            goal=graph.best_known,
        )
        for graph in graphs
    ]


# ---- formulas, tours, glasses ----------------------------------------------------------------------------


def _list_formulas() -> list[Instance]:
    instances = []
    for number in range(1, 51):
        formula = datasets.load(f"satlib:uf50-0{number}")
        instances.append(
            Instance(
                formula.name,
                lambda formula=formula: targets.cnf(formula),
                _count_satisfied,
                float(len(formula.clauses)),
                goal=0.0,
            )
        )
    return instances


def _list_enumerable() -> list[Instance]:
    instances = []
    for number in range(1, 51):
        formula = datasets.load(f"satlib:uf20-0{number}")
        instances.append(
            Instance(
                formula.name,
                lambda formula=formula: targets.cnf(formula, inverse_temperature=SOLUTION_BETA),
                measure_uniformity,
            )
        )
    return instances


def _list_tours() -> list[Instance]:
    instances = []
    for name in ("burma14", "ulysses22", "berlin52", "eil51", "st70", "eil76", "kroA100"):
        tour = datasets.load(f"tsplib:{name}")
        instances.append(
            Instance(
                name,
                lambda tour=tour: targets.tsp(tour.distances),
                _tour_length,
                tour.optimum,
                goal=-float(tour.optimum),
            )
        )
    return instances


def _list_small() -> list[Instance]:
    makers = {
        "Ising 4×4, β = 0.6": lambda: targets.ising_lattice((4, 4), 0.6, 0.06),
        "Ising 4×4, β = 0.28": lambda: targets.ising_lattice((4, 4), 0.28, 0.028),
        "four bits of the paper": targets.paper_bernoulli,
        "±J glass 3×4": lambda: targets.spin_glass((3, 4), seed=0),
    }
    floors = [expected_total_variation(target_distribution(make()), NUM_DRAWS) for make in makers.values()]
    return [
        Instance(name, make, measure_distance, float(floor))
        for (name, make), floor in zip(makers.items(), floors, strict=True)
    ]


def _list_glasses() -> list[Instance]:
    """Glasses whose lowest energy long tempering has met; see benchmarks/glass_ground_states.py."""
    table = resources.files("steppe_bench").joinpath("glass_ground_states.csv").read_text(encoding="utf-8")
    rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(table.splitlines())]
    return [
        Instance(
            f"EA {row['size']}³ ±J seed {row['seed']}",
            lambda row=row: targets.spin_glass((row["size"],) * 3, seed=row["seed"]),
            _negate_energy,
            row["energy"] / row["size"] ** 3,
            goal=-row["energy"],
        )
        for row in rows
    ]


# At this inverse temperature about half of the draws satisfy a formula of 20 variables.
SOLUTION_BETA = 3.0
UNIFORM_NOTE = (
    "p-values of the χ² test that every solution is equally likely, on draws thinned to independence that "
    "satisfy the formula; a sampler that is right has values spread evenly over 0 to 1."
)
MIS_NOTE = (
    "DISCS (Goshvadi et al. 2023, table 5; 32 chains, 8 V100): PAS 44.57, GWG 44.38, DLMC 44.27, DMALA 44.20 "
    "and 377.12, 367.31, 355.06, 357.06. FLD paper, table 1 (GPU): RLSA 44.10 / 375.31, FLD 44.37 / 377.50, "
    "iSCO 42.18 / 365.37. KaMIS, a solver: 44.87 / 381.31. Their graphs are drawn alike, with other seeds."
)
GLASS_NOTE = (
    "Beside it as `best known`: the lowest energy that parallel tempering of eight ladders met, made by "
    "`benchmarks/glass_ground_states.py`."
)
BA_NOTE = (
    "Means over other graphs drawn alike: RLSA 733.54 / 2955.81, FLD 734.18 / 2960.13, SDDS 731.93 / 2971.62."
)
EXACT_NOTE = (
    "Total variation between 2²⁰ draws and the enumerated distribution. Beside it as `best known`: what as "
    "many independent draws have on average. Neural samplers on the 4×4 lattice at β = 0.6: IEDG .0314, "
    "MDNS .0418, UDNS .150."
)
SUITES: dict[str, Suite] = {
    "gset-small": Suite(
        "Max-cut on nine graphs of Gset", "cut", True, 10.0, lambda: _list_gset(SMALL), 2, (ISCO_NOTE,)
    ),
    "gset-large": Suite(
        "Max-cut on the three largest sparse graphs of Gset",
        "cut",
        True,
        60.0,
        lambda: _list_gset(LARGE),
        1,
        ("Best known cuts: arXiv 2505.18508.",),
    ),
    "maxcut-ba": Suite(
        "Max-cut on Barabási–Albert graphs, m = 4, of 200–300 and 800–1200 nodes",
        "cut",
        True,
        10.0,
        _list_ba,
        2,
        (BA_NOTE,),
    ),
    "mis-er": Suite(
        "Independent sets of 32 Erdős–Rényi graphs of 700–800 nodes, p = 0.15",
        "nodes",
        True,
        20.0,
        lambda: list_random_graphs(700, 800, 0.15, range(32)),
        2,
        (MIS_NOTE,),
    ),
    "mis-er-large": Suite(
        "Independent sets of 4 Erdős–Rényi graphs of 9–11 thousand nodes, p = 0.02",
        "nodes",
        True,
        600.0,
        lambda: list_random_graphs(9000, 11000, 0.02, range(4)),
        1,
        (MIS_NOTE,),
    ),
    "clique-dimacs": Suite(
        "Cliques of 46 graphs of the second DIMACS challenge", "nodes", True, 60.0, _list_cliques, 2
    ),
    "sat-uf": Suite(
        "Satisfiable random 3-SAT of 50 variables and 218 clauses", "clauses", True, 1.0, _list_formulas, 2
    ),
    "sat-uniform": Suite(
        "Uniform draws of the solutions of random 3-SAT of 20 variables and 91 clauses",
        "p-value",
        True,
        0.0,
        _list_enumerable,
        2,
        (UNIFORM_NOTE,),
        draw=draw_solutions,
        certify=certify,
        question="Is every solution drawn equally often?",
    ),
    "sampling-exact": Suite(
        "Draws of small targets against their enumeration",
        "total variation",
        False,
        0.0,
        _list_small,
        1,
        (EXACT_NOTE,),
        draw=draw,
        question="How far are draws from the distribution they should have?",
    ),
    "tsplib-small": Suite("Tours of TSPLIB of up to 100 cities", "length", False, 10.0, _list_tours, 1),
    "spin-glass": Suite(
        "Ground states of three-dimensional ±J spin glasses",
        "energy per spin",
        False,
        10.0,
        _list_glasses,
        1,
        (GLASS_NOTE,),
    ),
}
