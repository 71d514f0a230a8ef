"""Chains that look for modes: from where they start, and the states they leave to local searches."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.compiling import quick_jit
from steppe.errors import StartError
from steppe.kernel.cost import EvaluationCounter
from steppe.kernel.start import check_start, flatten_start
from steppe.kernel.start_search import search_starts
from steppe.modes.members import MIN_CHAINS, ROBUST, Member, is_closed
from steppe.run.anneal import Annealed, anneal
from steppe.target import Target

# Of the budget of a member: searches for valid starting positions may take this much. All positions are valid
# where the robust target has a closed form.
REDRAW_FRACTION = 0.1
# What tables call states that no chain met.
ENUMERATED, NUM_HIGHEST = "enumerated", 16


class Candidates(NamedTuple):
    """States to search from, the kind of chain that met each, and where chains began.

    States of the kind `first`, if it is not negative, are searched from before all others.
    """

    states: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    first: int = -1


def run_chains(
    target: Target,
    shares: list[tuple[Member, int]],
    key: Array,
    counter: EvaluationCounter,
    initial: ArrayLike | None,
    report: Callable[[int], None],
) -> Candidates:
    """Run the chains of every member and collect where they ended and the best they met.

    Parameters
    ----------
    target, shares, key, counter
        What to look at, how and for how many evaluations, and the counter of them.
    initial
        Positions to start from, or `None` for uniform ones.
    report
        Called with the number of members done.
    """
    states, kinds, given = [], [], None
    if initial is not None:
        initial = flatten_start(target.domain, initial)
        check_start(target, initial, batched=True)
        given = np.asarray(initial)
        counter.record(values=len(given))
    is_free = any(member.name == ROBUST and is_closed(member.target) for member, _ in shares)
    redrawn = 0.0 if is_free else REDRAW_FRACTION
    sizes = [member.split(int((1 - redrawn) * budget)) for member, budget in shares]
    ends = np.cumsum([num_chains for num_chains, _ in sizes])
    # Of all members together: one program each, not one for every number of chains.
    total = int(redrawn * sum(budget for _, budget in shares))
    positions, num_drawn = _draw_starts(target, key, int(ends[-1]), given, total)
    counter.record(values=num_drawn)
    starts = np.split(positions, ends[:-1])
    for index, ((member, _), (num_chains, num_steps)) in enumerate(zip(shares, sizes, strict=True)):
        walked = anneal(
            member.target,
            member.recipe,
            member.schedule,
            key=jax.random.fold_in(key, index),
            num_steps=num_steps,
            num_chains=num_chains,
            initial=starts[index],
            progress=False,
        )
        counter.record(values=num_chains * (member.cost(num_steps) - 1))
        met = _collect(target, walked)
        states.append(met)
        kinds.append(np.full(len(met), index))
        report(index + 1)
    return Candidates(np.concatenate(states), np.concatenate(kinds), starts[0])


def is_enumerable(target: Target, budget: int) -> bool:
    """Whether all states can be evaluated within a budget."""
    return not target.domain.num_reals and target.domain.num_states <= budget


def add_highest(target: Target, met: Candidates, kind: int, counter: EvaluationCounter) -> Candidates:
    """Evaluate all states, and add the highest of them to those that chains met."""
    states = np.asarray(target.domain.enumerate())
    values = np.asarray(evaluate(target, states), float)
    counter.record(values=len(states))
    highest = np.argsort(-values, kind="stable")[:NUM_HIGHEST]
    added = states[highest[np.isfinite(values[highest])]]
    kinds = np.concatenate([met.kinds, np.full(len(added), kind)])
    return met._replace(states=np.concatenate([met.states, added]), kinds=kinds, first=kind)


def _draw_starts(
    target: Target, key: Array, num_chains: int, initial: np.ndarray | None, budget: int
) -> tuple[np.ndarray, int]:
    """Positions inside the support, and how many were evaluated to find them."""
    if initial is not None:
        chosen = jax.random.randint(key, (num_chains,), 0, len(initial))
        return initial[np.asarray(chosen)], 0
    keys, drawn, values = _draw(target, key, num_chains)
    # A batch runs until its last search ends.
    limit = budget // num_chains
    found = search_starts(target, keys, drawn, values, limit)
    inside = np.flatnonzero(np.isfinite(np.asarray(found.log_density)))
    if len(inside) < MIN_CHAINS:
        raise StartError(
            f"Only {len(inside)} of {num_chains} random positions of {target.domain!r} are valid, or "
            f"became so in a search of {limit} others. Give some: `find_flat_modes(..., initial=positions)`."
        )
    shared = inside[np.arange(num_chains) % len(inside)]
    chosen = np.where(np.isin(np.arange(num_chains), inside), np.arange(num_chains), shared)
    return np.asarray(found.position)[chosen], num_chains * (1 + int(found.num_evaluations.max()))


@partial(quick_jit, static_argnames="num_chains")
def _draw(target: Target, key: Array, num_chains: int) -> tuple[Array, Array, Array]:
    """Keys of searches, uniform positions to begin at, and their log-densities."""
    drawn = target.domain.draw(jax.random.fold_in(key, 0), (num_chains,))
    return jax.random.split(key, num_chains), drawn, jax.vmap(target.log_density)(drawn)


@quick_jit
def evaluate(target: Target, states: Array) -> Array:
    """Log-densities of states."""
    return jax.vmap(target.log_density)(states)


def _collect(target: Target, walked: Annealed) -> np.ndarray:
    """Where each chain ended and the best it met; of an ensemble also the center, if it is valid."""
    shape = target.domain.shape
    groups = [np.asarray(walked.best_position), np.asarray(walked.position)]
    if walked.center is not None and walked.position.ndim > walked.center.ndim:
        center = np.asarray(walked.center)
        groups.append(center[np.isfinite(np.asarray(evaluate(target, center)))])
    return np.concatenate([group.reshape(-1, *shape) for group in groups])
