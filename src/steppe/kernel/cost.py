"""Cost of steps, tables and searches, in evaluations of the user's model.

An evaluation is one call of the log-density, of value and gradient together, or of a table of all differences
that the target makes itself. A table it does not make costs one log-density per entry and one for the state.
An incremental form that is asked for `s` of `d` sites counts as `s/d` of a table, whatever the cache update
costs.
"""

from steppe.kernel.density import evaluations_per_site_table
from steppe.kernel.proposals.permutation_moves import TABLED, is_move
from steppe.target.log_density import Target


def evaluations_per_move_table(target: Target, kind: str) -> int:
    """Evaluations of one table of all moves of a permutation of one kind."""
    if target.has_move_differences:
        return 1
    return 1 + int(is_move(kind, target.domain.num_sites).sum())


def makes_tables(target: Target) -> bool:
    """Whether the target makes tables of the differences of all changes itself."""
    return target.has_differences if target.domain.is_site_product else target.has_move_differences


def evaluations_per_table(target: Target) -> int:
    """Evaluations of the differences of all changes, on permutations a table for each kind of move."""
    if target.domain.is_site_product:
        return evaluations_per_site_table(target)
    return sum(evaluations_per_move_table(target, kind) for kind in TABLED)


class EvaluationCounter:
    """Evaluations of a target that were made, and how many may still be made.

    Work is recorded in what it consists of: values (of the log-density, alone or with its gradient) and
    tables of the differences of all changes. What these cost follows from the target.

    Parameters
    ----------
    target
        What is evaluated.
    budget
        How many evaluations may be made in all.
    """

    def __init__(self, target: Target, budget: int) -> None:
        self.budget, self.num_made = budget, 0
        self._per_table = evaluations_per_table(target)

    @property
    def num_left(self) -> int:
        """How many may still be made."""
        return self.budget - self.num_made

    def price(self, *, values: int = 0, tables: int = 0) -> int:
        """Evaluations of some work."""
        return values + tables * self._per_table

    def record(self, *, values: int = 0, tables: int = 0) -> None:
        """Count work that was done."""
        self.num_made += self.price(values=values, tables=tables)
