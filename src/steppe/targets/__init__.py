"""Ready-made targets: what the paper samples from, and the problems its users have."""

from steppe.targets.bernoulli import bernoulli_table, paper_bernoulli
from steppe.targets.binary_network import binary_network
from steppe.targets.cnf import Formula, cnf
from steppe.targets.committee import committee
from steppe.targets.coupling_tables import potts_tables
from steppe.targets.fixed_counts import FixedCounts, fixed_counts
from steppe.targets.graph_problems import NodeSet, clique, independent_set, vertex_cover
from steppe.targets.groups import (
    BlockModel,
    Coloring,
    Partition,
    block_model,
    coloring,
    partition,
)
from steppe.targets.ising import ising, ising_graph, ising_lattice
from steppe.targets.knapsack import Knapsack, knapsack
from steppe.targets.linear_constraints import LinearConstraints, LinearPenalty, linear_constraints
from steppe.targets.mixture import (
    PlantedMixture,
    mixture,
    mixture_local_entropy,
    mixture_responsibilities,
    planted_mixture,
)
from steppe.targets.perceptron import perceptron, random_labels, teacher_student
from steppe.targets.planted import PlantedPlateau, planted_plateau
from steppe.targets.potts import potts
from steppe.targets.qubo import max_cut, qubo
from steppe.targets.rbm import layerwise_gibbs, rbm
from steppe.targets.spin_glass import sherrington_kirkpatrick, spin_glass
from steppe.targets.tsp import tsp, tsp_paper
from steppe.targets.variable_selection import VariableSelection, variable_selection

__all__ = [
    "BlockModel",
    "Coloring",
    "FixedCounts",
    "Formula",
    "Knapsack",
    "LinearConstraints",
    "LinearPenalty",
    "NodeSet",
    "Partition",
    "PlantedMixture",
    "PlantedPlateau",
    "VariableSelection",
    "bernoulli_table",
    "binary_network",
    "block_model",
    "clique",
    "cnf",
    "coloring",
    "committee",
    "fixed_counts",
    "independent_set",
    "ising",
    "ising_graph",
    "ising_lattice",
    "knapsack",
    "layerwise_gibbs",
    "linear_constraints",
    "max_cut",
    "mixture",
    "mixture_local_entropy",
    "mixture_responsibilities",
    "paper_bernoulli",
    "partition",
    "perceptron",
    "planted_mixture",
    "planted_plateau",
    "potts",
    "potts_tables",
    "qubo",
    "random_labels",
    "rbm",
    "sherrington_kirkpatrick",
    "spin_glass",
    "teacher_student",
    "tsp",
    "tsp_paper",
    "variable_selection",
    "vertex_cover",
]
