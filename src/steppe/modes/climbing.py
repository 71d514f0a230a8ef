"""From the states that chains met to local maxima, for no more evaluations than are left."""

from typing import NamedTuple

import numpy as np

from steppe.diagnostics.flatness import climb
from steppe.diagnostics.neighbours import evaluations_per_table, makes_tables
from steppe.errors import RunError
from steppe.modes.chains import Candidates
from steppe.modes.merge import same_form
from steppe.target import Target

MOST_AT_ONCE = 64
# As many climb at once as could make this many changes each; annealed chains end a few changes from a mode.
USUAL_CHANGES = 8


class Found(NamedTuple):
    """Local maxima, one row each, with who ended there; `visits` is mode × kind of chain."""

    states: np.ndarray
    log_density: np.ndarray
    visits: np.ndarray
    num_evaluations: int


def gap_cost(target: Target) -> int:
    """Evaluations that `one_site_gaps` makes for one state, and so does the mass within one move."""
    return evaluations_per_table(target) + 1


def climbed(target: Target, met: Candidates, num_kinds: int, budget: int) -> Found:
    """Climb from distinct states, those met most often first, while the budget lasts.

    Parameters
    ----------
    target
        What is looked at.
    met
        Where to climb from.
    num_kinds
        How many kinds of chains there are.
    budget
        Evaluations for climbs and for the gaps of what they reach.

    Notes
    -----
    A state in a batch is evaluated until the last one has arrived, and all that is counted. Climbs that the
    budget cuts short are dropped.
    """
    distinct, by_kind = _distinct(target, met, num_kinds)
    once, per_change = 2 + gap_cost(target), change_cost(target)
    at_once = min(MOST_AT_ONCE, max(budget // (once + (1 + USUAL_CHANGES) * per_change), 1))
    modes, values, visits, spent = [], [], [], 0
    for first in range(0, len(distinct), at_once):
        rows = slice(first, first + at_once)
        size = len(distinct[rows])
        limit = ((budget - spent) // size - once) // per_change - 1
        if limit < (USUAL_CHANGES if modes else 1):
            break
        reached = climb(target, distinct[rows], max_steps=limit, batch_size=at_once)
        spent += size * (once + (1 + int(reached.num_steps.max())) * per_change)
        arrived = reached.is_converged
        modes.append(same_form(target, reached.modes[arrived]))
        values.append(reached.mode_log_density[arrived])
        visits.append(by_kind[rows][arrived])
    if not sum(map(len, modes)):
        raise RunError(
            f"`find_flat_modes(budget=...)` leaves {budget} evaluations for climbs, too few for one. "
            "Raise it, or give the target a table of `differences`."
        )
    states, first, which = np.unique(np.concatenate(modes), axis=0, return_index=True, return_inverse=True)
    total = np.zeros((len(states), num_kinds), int)
    np.add.at(total, which.ravel(), np.concatenate(visits))
    num_climbs = min(len(modes) * at_once, len(distinct))
    spent -= (num_climbs - len(states)) * gap_cost(target)  # gaps are those of distinct modes
    return Found(states, np.concatenate(values)[first], total, met.num_evaluations + spent)


def _distinct(target: Target, met: Candidates, num_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct states, most often met first, and how many chains of each kind met them."""
    distinct, which, counts = np.unique(
        same_form(target, met.states), axis=0, return_inverse=True, return_counts=True
    )
    by_kind = np.zeros((len(distinct), num_kinds), int)
    np.add.at(by_kind, (which.ravel(), met.kinds), 1)
    order = np.argsort(-counts, kind="stable")
    return distinct[order], by_kind[order]


def change_cost(target: Target) -> int:
    """Evaluations per change of one climb; without a table of its own also the value, for rounding."""
    return evaluations_per_table(target) + (not makes_tables(target))
