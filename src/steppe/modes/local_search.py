"""Local search: from the states that chains met to local maxima, for no more evaluations than are left."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steppe.compiling import pad_rows
from steppe.diagnostics.flatness import local_search
from steppe.errors import RunError
from steppe.kernel.cost import EvaluationCounter, makes_tables
from steppe.modes.merge import canonicalize
from steppe.target import Target

if TYPE_CHECKING:
    from steppe.modes.chains import Candidates

MAX_AT_ONCE = 64
# As many search at once as could make this many changes each; annealed chains end a few changes from a mode.
USUAL_CHANGES = 8


class Found(NamedTuple):
    """Local maxima, one row each, with who ended there; `visits` is mode × kind of chain."""

    states: np.ndarray
    log_density: np.ndarray
    visits: np.ndarray


def price_of_change(target: Target, counter: EvaluationCounter) -> int:
    """Evaluations per change; where the target makes no tables also its value, to know the rounding."""
    return counter.price(tables=1, values=int(not makes_tables(target)))


def price_of_differences(counter: EvaluationCounter) -> int:
    """Evaluations of the single-site differences and the value of one mode, kept back for each."""
    return counter.price(tables=1, values=1)


def find_min_cost(target: Target, counter: EvaluationCounter) -> int:
    """Evaluations of the shortest local search and the statistics of what it finds."""
    per_change = price_of_change(target, counter)
    return counter.price(values=2) + price_of_differences(counter) + (2 + USUAL_CHANGES) * per_change


def search_locally(
    target: Target, met: "Candidates", num_kinds: int, counter: EvaluationCounter, limit: int
) -> Found:
    """Ascend from distinct states, those met most often first unless told otherwise, while evaluations last.

    Parameters
    ----------
    target
        What is looked at.
    met
        Where to begin.
    num_kinds
        How many kinds of chains there are.
    counter
        Of evaluations.
    limit
        What it may reach with these searches and the single-site differences of what they find.

    Notes
    -----
    A state in a batch is evaluated until the last one has arrived, and all that is counted. Searches that the
    limit cuts short are dropped.
    """
    distinct, by_kind = _distinct(target, met, num_kinds)
    budget, kept_back = limit - counter.num_made, price_of_differences(counter)
    once, per_change = counter.price(values=2) + kept_back, price_of_change(target, counter)
    at_once = min(MAX_AT_ONCE, max(budget // (once + (1 + USUAL_CHANGES) * per_change), 1))
    modes, values, visits = [], [], []
    for first in range(0, len(distinct), at_once):
        rows = slice(first, first + at_once)
        size = len(distinct[rows])
        num_left = limit - counter.num_made - first * kept_back
        max_steps = (num_left // size - once) // per_change - 1
        if max_steps < (USUAL_CHANGES if modes else 1):
            break
        batch = pad_rows(distinct[rows])
        reached = local_search(target, batch, max_steps=max_steps, batch_size=len(batch))
        counter.record(values=size * (2 + (1 + int(reached.num_steps.max())) * per_change))
        arrived = reached.is_converged[:size]
        modes.append(canonicalize(target, reached.modes)[:size][arrived])
        values.append(reached.mode_log_density[:size][arrived])
        visits.append(by_kind[rows][arrived])
    if not sum(map(len, modes)):
        raise RunError(
            f"`find_flat_modes(budget=...)` leaves {budget} evaluations for local searches, too few for one. "
            "Raise it, or give the target a table of `differences`."
        )
    return merge_same(np.concatenate(modes), np.concatenate(values), np.concatenate(visits))


def merge_same(modes: np.ndarray, values: np.ndarray, visits: np.ndarray) -> Found:
    """Count each mode once, with all its visits."""
    states, first, which = np.unique(modes, axis=0, return_index=True, return_inverse=True)
    total = np.zeros((len(states), visits.shape[1]), int)
    np.add.at(total, which.ravel(), visits)
    return Found(states, values[first], total)


def _distinct(target: Target, met: "Candidates", num_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct states in the order of searches, and how many chains of each kind met them."""
    distinct, which, counts = np.unique(
        canonicalize(target, met.states), axis=0, return_inverse=True, return_counts=True
    )
    by_kind = np.zeros((len(distinct), num_kinds), int)
    np.add.at(by_kind, (which.ravel(), met.kinds), 1)
    comes_late = by_kind[:, met.first] == 0 if met.first >= 0 else np.zeros_like(counts)
    order = np.lexsort((-counts, comes_late))
    return distinct[order], by_kind[order]
