"""Satisfiability: clauses of a formula in conjunctive normal form, plain or weighted (Max-SAT)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.domain import Binary
from steppe.errors import TargetError
from steppe.numerics import total
from steppe.target import Incremental, Target
from steppe.target.interactions import Interactions
from steppe.targets.checks import array_of_shape, count, positive

# Occurrences of a variable are listed in multiples of this, so that formulas alike share a compiled program.
ROUNDED = 16
MAX_VARIABLES = 10_000_000


@runtime_checkable
class LoadedFormula(Protocol):
    """A formula of `steppe.datasets`."""

    @property
    def clauses(self) -> Sequence[Sequence[int]]: ...  # noqa: D102
    @property
    def weights(self) -> np.ndarray: ...  # noqa: D102
    @property
    def num_variables(self) -> int: ...  # noqa: D102


class Literals(NamedTuple):
    """Variables and signs of every clause, `(clauses, longest)`; sign 0 where a clause is shorter."""

    variables: Array
    signs: Array


class Occurrences(NamedTuple):
    """Clauses of every variable and its signs there, `(variables, most)`; sign 0 where it has fewer."""

    clauses: Array
    signs: Array


class Formula(Target):
    """Assignments of truth values: `U = −β ·` (weight of the clauses that are not satisfied).

    Attributes
    ----------
    literals, occurrences
        The clauses, and where every variable stands.
    weights
        Of every clause.
    inverse_temperature
        `β`.

    Examples
    --------
    >>> from steppe.targets import cnf
    >>> formula = cnf([[1, 2], [-1, 2], [1, -2]])  # (a or b) and (not a or b) and (a or not b)
    >>> [formula.is_feasible(state) for state in formula.domain.enumerate()]  # only a = b = true
    [False, False, False, True]
    >>> float(formula.log_density(formula.domain.enumerate()[0]))
    -1.0
    """

    literals: Literals
    occurrences: Occurrences
    weights: Array
    inverse_temperature: Array

    def log_density(self, position: Array) -> Array:
        """`U` at a position: a product per clause, linear in every variable."""
        return -self.inverse_temperature * total(self.weights * self._unsatisfied(position))

    @property
    def is_multilinear(self) -> bool:
        """Yes: no clause has a variable twice."""
        return True

    @property
    def interactions(self) -> Interactions:
        """Variables that share a clause."""
        variables, signs = (np.asarray(array) for array in self.literals)
        columns = range(variables.shape[1])
        pairs = [
            variables[(signs[:, first] != 0) & (signs[:, second] != 0)][:, [first, second]]
            for first in columns
            for second in columns
            if first < second
        ]
        return Interactions.read(np.concatenate([np.zeros((0, 2), int), *pairs]), self.domain.num_sites)

    @property
    def incremental(self) -> Incremental[Array]:
        """How many literals of every clause are true."""
        return Incremental(self.init_cache, self.differences_at, self.update_cache)

    def init_cache(self, position: Array) -> Array:
        """Count true literals."""
        return jnp.sum(self._truth(position), axis=1)

    def differences_at(self, cache: Array, position: Array, sites: Array) -> Array:
        """Exact differences of flipping a few variables: clauses that break and clauses that are made."""
        clauses, signs = self.occurrences.clauses[sites], self.occurrences.signs[sites]
        is_true = (signs > 0) == (position[sites] > 0.5)[:, None]
        counts, weights = cache[clauses], self.weights[clauses] * (signs != 0)
        change = jnp.where(is_true, -1.0 * (counts == 1), counts == 0) * weights
        flipped = self.inverse_temperature * jnp.sum(change, axis=1)
        is_high = position[sites] > 0.5
        return jnp.stack([jnp.where(is_high, flipped, 0), jnp.where(is_high, 0, flipped)], axis=1)

    def update_cache(self, cache: Array, position: Array, site: Array, level: Array) -> Array:
        """Count the literals of one variable anew."""
        change = self.domain.from_levels(level) - position[site]
        return cache.at[self.occurrences.clauses[site]].add(self.occurrences.signs[site] * change)

    def count_unsatisfied(self, position: ArrayLike) -> Array:
        """Number of clauses that are not satisfied."""
        return jnp.sum(self._unsatisfied(jnp.asarray(position)))

    def score(self, position: ArrayLike) -> Array:
        """Total weight of the satisfied clauses, larger is better."""
        return jnp.sum(self.weights * (1 - self._unsatisfied(jnp.asarray(position))))

    def is_feasible(self, position: ArrayLike) -> bool:
        """Whether every clause is satisfied."""
        return float(self.count_unsatisfied(position)) == 0

    def repair(self, position: ArrayLike) -> Array:
        """Return a position from which no single flip satisfies more; it need not satisfy everything."""
        state = np.asarray(position) > 0.5
        clauses, signs = (np.asarray(array) for array in self.occurrences)
        variables, of_clauses = (np.asarray(array) for array in self.literals)
        weights = np.asarray(self.weights, float)[clauses] * (signs != 0)
        while True:
            holds = (of_clauses != 0) & ((of_clauses > 0) == state[variables])
            counts = holds.sum(axis=1)[clauses]
            is_true = (signs > 0) == state[:, None]
            gains = (weights * np.where(is_true, -1.0 * (counts == 1), counts == 0)).sum(axis=1)
            site = int(np.argmax(gains))
            if gains[site] <= 1e-9:
                return jnp.asarray(state, jnp.result_type(float))
            state[site] = not state[site]

    def _truth(self, position: Array) -> Array:
        variables, signs = self.literals
        values = position[variables]
        return jnp.where(signs > 0, values, jnp.where(signs < 0, 1 - values, 0))

    def _unsatisfied(self, position: Array) -> Array:
        return jnp.prod(1 - self._truth(position), axis=1)


@checked(TargetError)
def cnf(
    clauses: Sequence[Sequence[int]] | LoadedFormula,
    weights: ArrayLike | None = None,
    *,
    num_variables: int | None = None,
    inverse_temperature: ArrayLike = 1.0,
) -> Formula:
    """Satisfiability of a formula: `U = −β ·` (weight of the clauses that are not satisfied).

    Parameters
    ----------
    clauses
        Each a list of literals as in DIMACS files: `3` is the third variable, `-3` its negation, counting
        from 1. Or a loaded formula, as `steppe.datasets.read_cnf(path)` gives.
    weights
        One positive number per clause (Max-SAT); 1 by default.
    num_variables
        By default the largest number there is.
    inverse_temperature
        `β > 0`. At a large one, solutions are drawn uniformly.

    Examples
    --------
    >>> from steppe.targets import cnf
    >>> formula = cnf([[1, -2], [2, 3]])
    >>> formula.is_feasible([1.0, 0.0, 1.0])
    True
    """
    if isinstance(clauses, LoadedFormula):
        if weights is not None or num_variables is not None:
            raise TargetError(
                "`cnf(weights=...)` and `num_variables` go with a list; a loaded formula has its own."
            )
        clauses, weights, num_variables = clauses.clauses, clauses.weights, clauses.num_variables
    lists = [_read_clause(index, clause, num_variables) for index, clause in enumerate(clauses)]
    if not lists:
        raise TargetError("`cnf(clauses=...)` must have at least one clause; got none.")
    largest = max(max(map(abs, literals)) for literals in lists)
    size = largest if num_variables is None else count("cnf(num_variables=...)", num_variables)
    strengths = array_of_shape("cnf(weights=...)", 1.0 if weights is None else weights, (len(lists),))
    if not (np.asarray(strengths) > 0).all():
        index = int(np.argmin(np.asarray(strengths)))
        raise TargetError(
            f"`cnf(weights=...)` must be positive; clause {index} has {float(strengths[index]):g}. Leave "
            "such clauses out."
        )
    literals, occurrences = _pad(lists, size)
    return Formula(
        domain=Binary(size),
        literals=literals,
        occurrences=occurrences,
        weights=strengths,
        inverse_temperature=positive("cnf(inverse_temperature=...)", inverse_temperature),
    )


def _read_clause(index: int, clause: Sequence[int], num_variables: int | None) -> list[int]:
    try:
        literals = [int(literal) for literal in clause]
        is_whole = all(literal == given for literal, given in zip(literals, clause, strict=True))
    except (TypeError, ValueError):
        literals, is_whole = [], False
    if not is_whole:
        raise TargetError(f"`cnf(clauses=...)`: clause {index} must be integers; got {clause!r}.")
    if not literals:
        raise TargetError(
            f"`cnf(clauses=...)`: clause {index} is empty, which nothing satisfies. Leave it out."
        )
    limit = MAX_VARIABLES if num_variables is None else num_variables
    wrong = [literal for literal in literals if literal == 0 or abs(literal) > limit]
    if wrong:
        raise TargetError(
            f"`cnf(clauses=...)`: clause {index} has the literal {wrong[0]}; literals are ±1 to "
            f"±{limit}, the sign for a negation."
        )
    literals = list(dict.fromkeys(literals))
    twice = [literal for literal in literals if -literal in literals]
    if twice:
        raise TargetError(
            f"`cnf(clauses=...)`: clause {index} has {abs(twice[0])} and its negation, so that everything "
            "satisfies it. Leave it out."
        )
    return literals


def _pad(lists: list[list[int]], size: int) -> tuple[Literals, Occurrences]:
    dtype = jnp.result_type(float)
    longest = max(map(len, lists))
    variables, signs = np.zeros((len(lists), longest), np.int32), np.zeros((len(lists), longest), dtype)
    for row, literals in enumerate(lists):
        variables[row, : len(literals)] = np.abs(literals) - 1
        signs[row, : len(literals)] = np.sign(literals)
    rows, columns = np.nonzero(signs)
    owners = variables[rows, columns]
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=size)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = size, ROUNDED * max(-(-int(counts.max()) // ROUNDED), 1)
    clauses, own_signs = np.zeros(shape, np.int32), np.zeros(shape, dtype)
    clauses[owners[order], places] = rows[order]
    own_signs[owners[order], places] = signs[rows, columns][order]
    return Literals(jnp.asarray(variables), jnp.asarray(signs)), Occurrences(
        jnp.asarray(clauses), jnp.asarray(own_signs)
    )
