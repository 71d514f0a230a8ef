"""`find_flat_modes`: chains look, climbs end them on modes, measures rank what was found."""

from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jax import Array

from steppe.arguments import choice, count, random_key
from steppe.diagnostics.flatness import climb, one_site_gaps
from steppe.diagnostics.neighbours import evaluations_per_table
from steppe.errors import RunError, StartError
from steppe.kernel.start import check_start
from steppe.modes.ladder import PRICES, Member, ladder
from steppe.modes.measure import default_variance, measured
from steppe.modes.merge import merged, same_form
from steppe.modes.result import FlatModes
from steppe.run.anneal import Annealed, anneal
from steppe.run.progress import count_bar
from steppe.target import Target

Flatness = Literal["gap", "local_entropy"]

DEFAULT_BUDGET = 200_000
# Of the budget: chains get the first share, climbs the second, measures what is left.
CHAIN_SHARE, CLIMB_SHARE = 0.5, 0.3
STEPS_PER_CHAIN = 200
LEAST_CHAINS, MOST_CHAINS, LEAST_STEPS = 4, 512, 20
CLIMB_BATCH = 64
# A mode that changes in fewer sites than this share is the same mode.
SEPARATION_SHARE = 0.1
START_ATTEMPTS = 100


class Found(NamedTuple):
    """Local maxima, one row each, with who ended there; `visits` is mode × kind of chain."""

    states: np.ndarray
    log_density: np.ndarray
    visits: np.ndarray
    num_evaluations: int


def find_flat_modes(
    target: Target,
    *,
    key: Array,
    num_modes: int = 10,
    budget: int = DEFAULT_BUDGET,
    flatness: Flatness = "gap",
    separation: int | None = None,
    coupling_variance: float | None = None,
    initial: Any = None,
    progress: bool | None = None,
) -> FlatModes:
    """Look for modes that are both high and flat.

    Parameters
    ----------
    target
        What to look at. On orders (`Permutation`) a change is a swap, a reversal or an insertion.
    key
        Random key; the same key gives the same answer.
    num_modes
        How many modes to return at most.
    budget
        Log-densities (or gradients, or tables of differences that the target makes itself) to spend.
    flatness
        Rank by `"gap"`: `U − ½ Σ |ΔU|` per site, the price at which a mode is worth what changes of one site
        lose; or by `"local_entropy"`: mass within a radius.
    separation
        Modes that differ in fewer sites are one; a tenth of all sites by default, at least 2.
    coupling_variance
        `η` of the local entropy; by default a tenth of the sites differ on flat ground.
    initial
        Starting positions to draw from, `(number, *domain.shape)`; uniform ones by default. Needed where
        few uniform positions are valid.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Returns
    -------
    FlatModes
        A ranked table, the front of height against flatness marked, with a picture on request.

    Notes
    -----
    Chains are annealed, so how often one ends in a mode is no probability. A mode that no chain met is not
    in the table.
    """
    name = "find_flat_modes"
    key = random_key(name, key)
    wanted, total = count(name, "num_modes", num_modes), count(name, "budget", budget)
    ranked_by = choice(name, "flatness", flatness, Flatness)
    domain = target.domain
    apart = max(2, round(SEPARATION_SHARE * domain.num_sites))
    apart = apart if separation is None else count(name, "separation", separation)
    variance = default_variance(target, coupling_variance)
    members = ladder(target)
    with count_bar("looking for modes", len(members) + 2, progress) as report:
        found = _found(target, members, key, total, initial, report)
        report(len(members) + 1)
        gaps = one_site_gaps(target, found.states, exact=False)
        scores = found.log_density - PRICES[-1] * domain.num_sites * gaps.mean_absolute
        stands_for = merged(target, found.states, scores, apart)
        table = measured(
            target,
            found,
            gaps,
            scores,
            stands_for,
            members=[member.name for member in members],
            key=jax.random.fold_in(key, len(members)),
            num_modes=wanted,
            ranked_by=ranked_by,
            coupling_variance=variance,
        )
        report(len(members) + 2)
    return table


def _found(
    target: Target, members: list[Member], key: Array, budget: int, initial: Any, report: Any
) -> Found:
    """Run the chains, climb from where they were best and where they ended, and count who ended where."""
    starts, kinds, spent = [], [], 0
    for index, member in enumerate(members):
        num_chains, num_steps = _chains(member, int(CHAIN_SHARE * budget / len(members)))
        own = jax.random.fold_in(key, index)
        positions = _starting_positions(target, own, num_chains, initial)
        walked = anneal(
            target,
            member.recipe,
            member.schedule,
            key=own,
            num_steps=num_steps,
            num_chains=num_chains,
            initial=positions,
            progress=False,
        )
        states = _candidates(target, walked)
        starts.append(states)
        kinds.append(np.full(len(states), index))
        spent += num_chains * num_steps * member.evaluations_per_step
        report(index + 1)
    return _climbed(target, np.concatenate(starts), np.concatenate(kinds), len(members), budget, spent)


def _chains(member: Member, budget: int) -> tuple[int, int]:
    """Split a budget into chains and steps."""
    steps = min(STEPS_PER_CHAIN, budget // (LEAST_CHAINS * member.evaluations_per_step))
    if steps < LEAST_STEPS:
        least = LEAST_STEPS * LEAST_CHAINS * member.evaluations_per_step
        raise RunError(
            f"`find_flat_modes(budget=...)` leaves {budget} evaluations for the chains called "
            f"{member.name!r}, which need {least}. Raise it to some {10 * least}; the default is "
            f"{DEFAULT_BUDGET}."
        )
    return min(MOST_CHAINS, budget // (steps * member.evaluations_per_step)), steps


def _starting_positions(target: Target, key: Array, num_chains: int, initial: Any) -> np.ndarray:
    """Positions inside the support: chosen among those given, or drawn until enough are valid."""
    if initial is not None:
        check_start(target, initial, batched=True)
        chosen = jax.random.randint(key, (num_chains,), 0, len(initial))
        return np.asarray(initial)[np.asarray(chosen)]
    evaluate = jax.jit(jax.vmap(target.log_density))
    kept: list[np.ndarray] = []
    for attempt in range(START_ATTEMPTS):
        drawn = target.domain.draw(jax.random.fold_in(key, attempt), (num_chains,))
        kept.extend(np.asarray(drawn)[np.isfinite(np.asarray(evaluate(drawn)))])
        if len(kept) >= num_chains:
            return np.stack(kept[:num_chains])
    raise StartError(
        f"Only {len(kept)} of {START_ATTEMPTS * num_chains} uniform positions of {target.domain!r} are "
        "valid. Give some that are: `find_flat_modes(..., initial=positions)`."
    )


def _candidates(target: Target, walked: Annealed) -> np.ndarray:
    """Where each chain ended and the best it met; of an ensemble also the center."""
    shape = target.domain.shape
    groups = [walked.best_position, walked.position]
    if walked.center is not None and walked.position.ndim > walked.center.ndim:
        groups.append(walked.center)
    states = np.concatenate([np.asarray(group).reshape(-1, *shape) for group in groups])
    values = np.asarray(jax.jit(jax.vmap(target.log_density))(states))
    return states[np.isfinite(values)]


def _climbed(
    target: Target, starts: np.ndarray, kinds: np.ndarray, num_kinds: int, budget: int, spent: int
) -> Found:
    """Climb from distinct starts, those met most often first, while the budget lasts."""
    distinct, which, counts = np.unique(
        same_form(target, starts), axis=0, return_inverse=True, return_counts=True
    )
    by_kind = np.zeros((len(distinct), num_kinds), int)
    np.add.at(by_kind, (which.ravel(), kinds), 1)
    order = np.argsort(-counts, kind="stable")
    limit, price = spent + CLIMB_SHARE * budget, evaluations_per_table(target)
    modes, values, visits = [], [], []
    for first in range(0, len(order), CLIMB_BATCH):
        rows = order[first : first + CLIMB_BATCH]
        padded = np.resize(rows, CLIMB_BATCH)  # one shape for all batches
        reached = climb(target, distinct[padded], batch_size=CLIMB_BATCH)
        modes.append(same_form(target, reached.modes[: len(rows)]))
        values.append(reached.mode_log_density[: len(rows)])
        visits.append(by_kind[rows])
        spent += int(np.sum(reached.num_steps[: len(rows)] + 1)) * price
        if spent > limit:
            break
    states, first, which = np.unique(np.concatenate(modes), axis=0, return_index=True, return_inverse=True)
    total = np.zeros((len(states), num_kinds), int)
    np.add.at(total, which.ravel(), np.concatenate(visits))
    spent += len(states) * price  # one table each for the gaps
    return Found(states, np.concatenate(values)[first], total, spent)
