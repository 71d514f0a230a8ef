"""`find_flat_modes`: chains look, local searches end on modes, measures rank what was found."""

from typing import Literal

import jax
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.diagnostics.flatness import single_site_differences
from steppe.errors import RunError
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.chains import run_chains
from steppe.modes.flat_modes import FlatModes
from steppe.modes.ladder import PRICES, ladder
from steppe.modes.local_search import search_locally
from steppe.modes.measure import default_variance, measure_modes
from steppe.modes.merge import merge_modes
from steppe.modes.plateau_walk import walk_plateaus
from steppe.run.progress import count_bar
from steppe.target import Target
from steppe.validation import choice, count, random_key

Flatness = Literal["gap", "local_entropy"]

DEFAULT_BUDGET = 200_000
# Of the budget, after the fraction of the chains; measures get what is left.
SEARCH_FRACTION = 0.3
# A mode that changes in fewer sites than this fraction is the same mode.
SEPARATION_FRACTION = 0.1


@checked(RunError)
def find_flat_modes(
    target: Target,
    *,
    key: Array,
    num_modes: int = 10,
    budget: int = DEFAULT_BUDGET,
    flatness: Flatness = "gap",
    separation: int | None = None,
    coupling_variance: float | None = None,
    initial: ArrayLike | None = None,
    progress: bool | None = None,
) -> FlatModes:
    """Look for modes that are both high and flat.

    Parameters
    ----------
    target
        What to look at. On permutations a change is a swap, a reversal or an insertion.
    key
        Random key; the same key gives the same answer.
    num_modes
        How many modes to return at most.
    budget
        How many evaluations to make at most: of the log-density, of its gradient, or of a table of
        differences that the target makes itself. `num_evaluations` of the result counts all of them: drawing
        and checking starts, chains, local searches, walks over plateaus and measures. Sums over all states of
        a small domain and estimates of local entropies are limited to what is left: estimates have larger
        errors then, and where not even those can be paid for, the entropy is NaN.
    flatness
        Rank by `"gap"`: `U − ½ Σ |ΔU|` per site, the price at which a mode is worth what changes of one site
        lose; or by `"local_entropy"`: mass within a radius.
    separation
        Modes that differ in fewer sites are one; a tenth of all sites by default, at least 2.
    coupling_variance
        `η` of the local entropy; by default a tenth of the sites differ on flat ground.
    initial
        Starting positions to draw from, `(number, *domain.shape)`; uniform ones by default. Needed where
        searches from uniform positions do not end in valid ones.
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

    On spins, where `U` is quadratic and without fields (a maximum cut, a spin glass), the sum of `|ΔU|` at a
    mode is `4 U` up to a constant. Lower modes are then flatter by necessity, every mode is on the front, and
    the order by `"gap"` is that of falling `U`: rank by `"local_entropy"`, which tells them apart.
    """
    name = "find_flat_modes"
    key = random_key(name, key)
    wanted, total = count(f"{name}(num_modes=...)", num_modes), count(f"{name}(budget=...)", budget)
    ranked_by = choice(f"{name}(flatness=...)", flatness, Flatness)
    domain = target.domain
    apart = max(2, round(SEPARATION_FRACTION * domain.num_sites))
    apart = apart if separation is None else count(f"{name}(separation=...)", separation)
    variance = default_variance(target, coupling_variance)
    members, counter = ladder(target), EvaluationCounter(target, total)
    with count_bar("looking for modes", len(members) + 2, progress) as report:
        met = run_chains(target, members, key, counter, initial, report)
        limit = counter.num_made + min(int(SEARCH_FRACTION * total), counter.num_left)
        found = search_locally(target, met, len(members), counter, limit)
        found = walk_plateaus(target, found, jax.random.fold_in(key, len(members) + 1), counter, limit)
        report(len(members) + 1)
        gaps = single_site_differences(target, found.states, exact=False)
        counter.record(values=len(found.states), tables=len(found.states))
        scores = found.log_density - PRICES[-1] * domain.num_sites * gaps.mean_absolute
        stands_for = merge_modes(target, found.states, scores, apart)
        table = measure_modes(
            target,
            found,
            gaps,
            scores,
            stands_for,
            members=[member.name for member in members],
            key=jax.random.fold_in(key, len(members)),
            num_modes=wanted,
            counter=counter,
            ranked_by=ranked_by,
            coupling_variance=variance,
        )
        report(len(members) + 2)
    return table
