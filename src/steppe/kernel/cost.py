"""What a step costs, in evaluations of the user's model.

An evaluation is one call of the log-density, of value and gradient together, or of a table of all differences
that the target makes itself. A table it does not make costs one log-density per entry and one for the state.
An incremental form that is asked for `s` of `d` sites counts as `s/d` of a table, whatever the cache update
costs.
"""

from steppe.kernel.proposals.permutation_moves import is_move
from steppe.target import Target


def evaluations_per_site_table(target: Target) -> int:
    """Evaluations of one table of all one-site differences: every entry, and the state itself."""
    return 1 if target.has_differences else target.domain.num_sites * target.domain.max_levels + 1


def evaluations_per_move_table(target: Target, kind: str) -> int:
    """Evaluations of one table of all moves of a permutation of one kind."""
    if target.has_move_differences:
        return 1
    return 1 + int(is_move(kind, target.domain.num_sites).sum())
