"""Combinatorial targets as models of dimod: the one that says the same with least change.

Energies are to be minimised: `energy = −U / β`.
"""

from itertools import chain, combinations
from typing import Any

import numpy as np

from steppe.arguments import checked
from steppe.errors import TargetError
from steppe.interop.dimod_networkx import list_couplings, to_bqm
from steppe.optional import require
from steppe.target import Target
from steppe.targets.cnf import Formula
from steppe.targets.coupling_tables import TableBonds, TablePotts
from steppe.targets.groups import GroupModel
from steppe.targets.knapsack import Knapsack
from steppe.targets.linear_constraints import LinearPenalty
from steppe.targets.pairwise import Pairwise

# dimod is imported when it is needed.
DimodModel = Any

# A clause with so many literals that are not negated has too many terms when it is multiplied out.
MAX_EXPANDED = 16


@checked(TargetError)
def to_dimod(target: Target) -> DimodModel:
    """Model of dimod with `energy = −U / β`, of any combinatorial target; sites keep their numbers.

    Pairwise targets on bits or spins become a `BinaryQuadraticModel`; colourings, partitions, block models
    and Potts models a `DiscreteQuadraticModel`; formulas a `BinaryPolynomial`; a knapsack and linear
    constraints a `ConstrainedQuadraticModel`, whose objective is the target without constraints.

    Parameters
    ----------
    target
        What to convert.

    Examples
    --------
    >>> from steppe.interop import to_dimod
    >>> from steppe.targets import coloring
    >>> float(to_dimod(coloring([(0, 1), (1, 2)], 3)).energy({0: 2, 1: 2, 2: 0}))
    1.0
    """
    dimod = require("dimod", "graphs", "`to_dimod`")
    if isinstance(target, Formula):
        return _to_polynomial(dimod, target)
    if isinstance(target, Knapsack):
        objective = dimod.BinaryQuadraticModel("BINARY")
        objective.add_linear_from(enumerate((-np.asarray(target.values, float)).tolist()))
        weights, capacity = np.asarray(target.weights, float), float(target.capacity)
        return _constrain(dimod, objective, weights[None], np.array([-np.inf]), np.array([capacity]))
    if isinstance(target, LinearPenalty):
        arrays = (np.asarray(array, float) for array in (target.coefficients, target.lower, target.upper))
        return _constrain(dimod, to_dimod(target.inner), *arrays)
    if isinstance(target, GroupModel) or (isinstance(target, Pairwise) and target.field.ndim == 2):
        return _to_discrete(dimod, target)
    if not isinstance(target, Pairwise):
        raise TargetError(
            f"`to_dimod(target)` takes pairwise targets, groups, formulas, knapsacks and linear constraints; "
            f"got {type(target).__name__}."
        )
    return to_bqm(target)


def _to_polynomial(dimod: DimodModel, target: Formula) -> DimodModel:
    """Multiply every clause out: it costs its weight where no literal is true."""
    terms: dict[tuple[int, ...], float] = {}
    rows = zip(*(np.asarray(array) for array in (*target.literals, target.weights)), strict=True)
    for index, (variables, signs, weight) in enumerate(rows):
        plain, negated = variables[signs > 0].tolist(), variables[signs < 0].tolist()
        if len(plain) > MAX_EXPANDED:
            raise TargetError(
                f"`to_dimod(target)`: clause {index} has {len(plain)} literals that are not negated; at most "
                f"{MAX_EXPANDED} are multiplied out."
            )
        subsets = chain.from_iterable(combinations(plain, size) for size in range(len(plain) + 1))
        for subset in subsets:
            term = tuple(sorted((*negated, *subset)))
            terms[term] = terms.get(term, 0.0) + float(weight) * (-1) ** len(subset)
    return dimod.BinaryPolynomial(terms, "BINARY")


def _to_discrete(dimod: DimodModel, target: Pairwise | GroupModel) -> DimodModel:
    """One variable per site, one case per level."""
    model, domain = dimod.DiscreteQuadraticModel(), target.domain
    for site in range(domain.num_sites):
        model.add_variable(domain.max_levels, label=site)
    if isinstance(target, Pairwise):
        for site, field in enumerate(np.asarray(target.field, float)):
            model.set_linear(site, -field)
    agree = np.eye(domain.max_levels)
    if isinstance(target, TablePotts) and isinstance(target.bonds, TableBonds):
        matrix = np.asarray(target.bonds.matrix, float)
        for first, second in combinations(range(domain.num_sites), 2):
            if matrix[first, :, second].any():
                model.set_quadratic(first, second, -matrix[first, :, second])
    elif isinstance(target, GroupModel):
        edges, strengths = list_couplings(target)
        pairs = np.full((domain.num_sites,) * 2, -float(target.size_penalty))
        np.add.at(pairs, tuple(edges.T), strengths)
        for first, second in combinations(range(domain.num_sites), 2):
            model.set_quadratic(first, second, -pairs[first, second] * agree)
    else:
        for (first, second), strength in zip(*list_couplings(target), strict=True):
            model.set_quadratic(int(first), int(second), -strength * agree)
    model.offset = -float(target.offset)
    return model


def _constrain(
    dimod: DimodModel, objective: DimodModel, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> DimodModel:
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective(objective)
    for index, row in enumerate(rows):
        terms = [(int(site), float(row[site])) for site in np.flatnonzero(row)]
        bounds = {("<=", upper[index]), (">=", lower[index])}
        if lower[index] == upper[index]:
            bounds = {("==", upper[index])}
        for sense, bound in sorted(bounds):
            if np.isfinite(bound):
                model.add_constraint(terms, sense, float(bound), label=f"c{index} {sense}")
    return model
