"""Ready-made targets: what the paper samples from, and the problems its users have."""

from steppe.targets.bernoulli import bernoulli_table, paper_bernoulli
from steppe.targets.binary_network import binary_network
from steppe.targets.committee import committee
from steppe.targets.ising import ising, ising_graph, ising_lattice
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
from steppe.targets.tsp import tsp, tsp_paper
from steppe.targets.variable_selection import VariableSelection, variable_selection

__all__ = [
    "PlantedMixture",
    "PlantedPlateau",
    "VariableSelection",
    "bernoulli_table",
    "binary_network",
    "committee",
    "ising",
    "ising_graph",
    "ising_lattice",
    "layerwise_gibbs",
    "max_cut",
    "mixture",
    "mixture_local_entropy",
    "mixture_responsibilities",
    "paper_bernoulli",
    "perceptron",
    "planted_mixture",
    "planted_plateau",
    "potts",
    "qubo",
    "random_labels",
    "rbm",
    "teacher_student",
    "tsp",
    "tsp_paper",
    "variable_selection",
]
