"""`find_flat_modes`: chains look, local searches end on modes, fresh disturbances judge what was found."""

from collections.abc import Mapping
from functools import partial
from typing import Unpack

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.arguments import checked
from steppe.compiling import pad_rows, quick_jit
from steppe.domain import Domain
from steppe.errors import RunError
from steppe.kernel.cost import EvaluationCounter
from steppe.modes.chains import (
    ENUMERATED,
    Candidates,
    add_highest,
    evaluate,
    is_enumerable,
    run_chains,
)
from steppe.modes.flat_modes import FlatModes, Mode
from steppe.modes.judge import (
    Judged,
    choose_rows,
    compare_with_best,
    count_min_cost,
    find_best,
    find_max_loss,
    find_most_robust,
    is_function_of_height,
    judge,
    score_states,
)
from steppe.modes.local_search import Found, find_min_cost, merge_same, search_locally
from steppe.modes.members import (
    PLAIN,
    ROBUST,
    TEMPERED_ROBUST,
    is_closed,
    list_members,
    price_of_value,
    share_budget,
)
from steppe.modes.merge import canonicalize, label_modes
from steppe.modes.plateau_walk import walk_plateaus
from steppe.modes.strength_curves import draw_curves
from steppe.robust.averages import Average
from steppe.robust.disturbances import Disturbance
from steppe.robust.read_disturbance import DisturbanceOptions, read_disturbance
from steppe.robust.risk import Risk
from steppe.run.progress import count_bar
from steppe.target import Target
from steppe.validation import count, random_key
from steppe.validation import within as check_within

DEFAULT_BUDGET = 200_000
DEFAULT_FLIP_RATE = 0.1
# Of the budget: chains (more where values after the disturbance are exact, so that few evaluations judge),
# local searches on the target, and those on what is left after the disturbance.
CHAIN_FRACTION, CLOSED_CHAIN_FRACTION, SEARCH_FRACTION, ROBUST_SEARCH_FRACTION = 0.65, 0.8, 0.1, 0.05
# Of the searches: where all states can be evaluated for so much, they are.
ENUMERATED_FRACTION = 0.25
# Disturbances that chains and searches on the robust target see.
NUM_SEARCHED = 12
# A mode that changes in fewer sites than this fraction is not an alternative.
SEPARATION_FRACTION = 0.1
NUM_CURVES = 4
# Starts of chains from which local searches begin too, and modes from which they go on after the disturbance:
# a plateau that lasts may lie below many peaks, and be met at its edge.
MAX_STARTS, MAX_BEGUN = 64, 64


@checked(RunError)
def find_flat_modes(
    target: Target,
    *,
    key: Array,
    risk: str = "mean",
    max_loss: float | None = None,
    within: float | None = None,
    num_modes: int = 10,
    separation: int | None = None,
    budget: int = DEFAULT_BUDGET,
    initial: ArrayLike | None = None,
    progress: bool | None = None,
    **stated: Unpack[DisturbanceOptions],
) -> FlatModes:
    """Find modes that are good, and still good after a disturbance.

    Parameters
    ----------
    target
        What to look at.
    key
        Random key; the same key gives the same answer.
    flips, flip_rate, scenarios, scenario, disturb, repair, risk
        The disturbance and what is made of its outcomes, as in `steppe.robust`. By default a tenth of the
        sites, and at least one, take random other levels; on permutations one random move is made; the mean
        counts.
    max_loss
        How many nats below the highest mode an answer may lie; any number by default.
    within
        The same as a fraction in (0, 1]: of the best score, where the target has a `score`, else of what the
        best `U` has over the mean `U` of random states.
    num_modes
        How many modes to return at most, the highest and the most robust in any case.
    separation
        Modes differ from those above them in at least so many sites; a tenth of all sites by default, at
        least 2. The highest and the most robust one are shown however near they are.
    budget
        How many evaluations to make at most: of the log-density, of its gradient, or of a table of
        differences that the target makes itself. `num_evaluations` of the result counts them; what `repair`
        evaluates inside is not seen, nor are the few states at which temperatures are chosen. A budget too
        small for one search is refused at once.
    initial
        Starting positions to draw from, `(number, *domain.shape)`; uniform ones by default. Needed where
        searches from uniform positions do not end in valid ones.
    progress
        Show a progress bar; by default when standard error is a terminal.

    Returns
    -------
    FlatModes
        A table with the most robust mode first and the highest marked; `best`, `robust`, `explain()`,
        `plot()`.

    Notes
    -----
    Modes are ranked by the value after fresh disturbances, not those that the search saw. Chains are
    annealed, so how often one ends in a mode is no probability. A mode that no chain met is not in the table,
    but where there are so few states that a fortieth of the budget evaluates all, the highest ones are.

    On spins, where `U` is quadratic and without fields (a maximum cut, a spin glass), flips damp all
    couplings alike, so the mean after them is a rising function of `U`: the best mode is the most robust.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.planted_mixture().target
    >>> modes = steppe.find_flat_modes(target, key=jax.random.key(0), budget=20_000)
    >>> modes.robust.log_density < modes.best.log_density
    True
    """
    name = "find_flat_modes"
    key = random_key(name, key)
    wanted, total = count(f"{name}(num_modes=...)", num_modes), count(f"{name}(budget=...)", budget)
    loss, fraction = _read_loss(name, max_loss, within)
    apart = max(2, round(SEPARATION_FRACTION * target.domain.num_sites))
    apart = apart if separation is None else count(f"{name}(separation=...)", separation)
    measure = Risk.read(f"{name}(risk=...)", risk)
    disturbance = read_disturbance(name, target, _fill_in(target, stated))
    of_search, of_judgement, of_rest = jax.random.split(key, 3)
    after = disturbance.find_closed_form(target, measure)
    if after is None:
        after = disturbance.average(target, measure, of_search, NUM_SEARCHED)
    counter = EvaluationCounter(target, total)
    of_chains = CLOSED_CHAIN_FRACTION if is_closed(after) else CHAIN_FRACTION
    _check_budget(target, counter, disturbance, of_chains, {})
    members = list_members(target, after, of_rest, initial)
    shares = share_budget(members, int(of_chains * total))
    member, share = shares[0]
    _check_budget(target, counter, disturbance, of_chains, {0.9 * share / total: member.min_cost})
    with count_bar("looking for modes", len(shares) + 2, progress) as report:
        met = run_chains(target, shares, of_search, counter, initial, report)
        kinds = [member.name for member, _ in shares]
        if is_enumerable(target, int(ENUMERATED_FRACTION * SEARCH_FRACTION * total)):
            met = add_highest(target, met, len(kinds), counter)
            kinds.append(ENUMERATED)
        found = _search(target, after, met, kinds, of_rest, counter, total)
        report(len(shares) + 1)
        judged = judge(target, found, disturbance, measure, of_judgement, counter, wanted)
        limit = find_max_loss(target, judged, loss, fraction, of_rest, counter)
        table = _tabulate(
            target,
            judged,
            disturbance,
            measure,
            limit,
            wanted,
            apart,
            kinds,
            of_rest,
            counter,
            len(found.states),
        )
        report(len(shares) + 2)
    return table


def _fill_in(target: Target, options: DisturbanceOptions) -> DisturbanceOptions:
    """State the default disturbance where none is stated."""
    if any(value is not None for name, value in options.items() if name != "repair"):
        return options
    if not target.domain.is_site_product:
        return {**options, "flips": 1}
    return {**options, "flip_rate": max(DEFAULT_FLIP_RATE, 1 / target.domain.num_sites)}


def _read_loss(name: str, max_loss: float | None, within: float | None) -> tuple[float | None, float | None]:
    if max_loss is not None and within is not None:
        raise RunError(
            f"`{name}` takes `max_loss=`, in nats, or `within=`, a fraction; got both. Leave one out."
        )
    if max_loss is not None:
        check_within(f"{name}(max_loss=...)", max_loss, "[0, inf)", error=RunError)
    if within is not None:
        check_within(f"{name}(within=...)", within, "(0, 1]", error=RunError)
    return max_loss, within


def _check_budget(
    target: Target,
    counter: EvaluationCounter,
    disturbance: Disturbance,
    of_chains: float,
    chains: Mapping[float, int],
) -> None:
    """Refuse a budget that is too small for one search and one judgement, and for given chains.

    Asked first without chains, before temperatures are chosen: then nothing is spent.
    """
    total = counter.budget
    needs = {
        **chains,
        SEARCH_FRACTION: find_min_cost(target, counter),
        1 - of_chains - SEARCH_FRACTION - ROBUST_SEARCH_FRACTION: count_min_cost(counter, disturbance),
    }
    least = max(int(np.ceil(cost / fraction)) for fraction, cost in needs.items())
    if total < least:
        raise RunError(
            f"`find_flat_modes(budget={total})` is too small for one search of {target.domain!r}: "
            f"{least} evaluations are the least. Raise it, or give the target a table of `differences`."
        )


def _search(
    target: Target,
    after: Target,
    met: Candidates,
    kinds: list[str],
    key: Array,
    counter: EvaluationCounter,
    total: int,
) -> Found:
    """Modes of the target, and of what is left of it where its tables are affordable."""
    on_robust = [place for place, kind in enumerate(kinds) if kind in (ROBUST, TEMPERED_ROBUST)]
    is_robust = np.isin(met.kinds, on_robust)
    plain = met._replace(states=met.states[~is_robust], kinds=met.kinds[~is_robust])
    limit = counter.num_made + min(int(SEARCH_FRACTION * total), counter.num_left)
    found = search_locally(target, plain, len(kinds), counter, limit)
    found = _search_from_starts(target, met, found, counter, limit)
    found = walk_plateaus(target, found, key, counter, limit)
    own = met.states[is_robust]
    highest = found.states[np.argsort(-found.log_density, kind="stable")[:MAX_BEGUN]]
    begin = np.concatenate([own, highest]) if len(own) else highest
    of_own, of_found = (kinds.index(kind if kind in kinds else PLAIN) for kind in (ROBUST, PLAIN))
    begun = np.repeat([of_own, of_found], [len(own), len(highest)])
    began = met._replace(states=begin, kinds=begun, first=of_own)
    reached = _search_robust(target, after, began, len(kinds), counter, total)
    parts = [found] if reached is None else [found, reached]
    merged = merge_same(*(np.concatenate([getattr(part, name) for part in parts]) for name in found._fields))
    return Found(*(array[np.isfinite(merged.log_density)] for array in merged))


def _search_from_starts(
    target: Target, met: Candidates, found: Found, counter: EvaluationCounter, limit: int
) -> Found:
    """Add the modes in whose basins chains began, where that is cheap: annealed chains end in high ones."""
    starts, left = met.starts[:MAX_STARTS], limit - counter.num_made
    if left < 2 * len(starts) * find_min_cost(target, counter):
        return found
    begin = met._replace(states=starts, kinds=np.zeros(len(starts), int))
    more = search_locally(target, begin, found.visits.shape[1], counter, counter.num_made + left // 2)
    return merge_same(*(np.concatenate(pair) for pair in zip(found, more, strict=True)))


def _search_robust(
    target: Target, after: Target, begin: Candidates, num_kinds: int, counter: EvaluationCounter, total: int
) -> Found | None:
    """Local maxima of the robust target; without tables, the states that its chains met."""
    price = price_of_value(after, target)
    budget = min(int(ROBUST_SEARCH_FRACTION * total), counter.num_left) // price
    own = EvaluationCounter(after, budget)
    is_cheap = not isinstance(after, Average) or after.has_tables
    states, values = begin.states, None
    if is_cheap and find_min_cost(after, own) <= budget:
        reached = search_locally(after, begin, num_kinds, own, budget)
        counter.record(values=own.num_made * price)
        states, visits = reached.states, reached.visits
    else:
        states = canonicalize(target, begin.states)
        visits = np.zeros((len(states), num_kinds), int)
        visits[np.arange(len(states)), begin.kinds] = 1
    states = states[: max(counter.num_left // 4, 1)]
    values = np.asarray(evaluate(target, pad_rows(states)), float)[: len(states)]
    counter.record(values=len(states))
    return Found(states, values, visits[: len(states)])


@partial(quick_jit, static_argnames="domain")
def _find_levels(states: Array, domain: Domain) -> Array:
    return jax.vmap(domain.to_levels)(states)


def _tabulate(
    target: Target,
    judged: Judged,
    disturbance: Disturbance,
    risk: Risk,
    max_loss: float,
    num_modes: int,
    separation: int,
    kinds: list[str],
    key: Array,
    counter: EvaluationCounter,
    num_found: int,
) -> FlatModes:
    rows, is_front = choose_rows(target, judged, max_loss, num_modes, separation)
    gains, errors = compare_with_best(judged, risk, disturbance.is_exact, key)
    best, robust = find_best(judged), find_most_robust(judged, max_loss)
    scores = score_states(target, judged.found.states[rows])
    labels = label_modes(judged.differences.mean_absolute[rows])
    found, after = judged.found, judged.after
    levels = np.asarray(_find_levels(pad_rows(found.states[rows]), target.domain))
    modes = tuple(
        Mode(
            position=found.states[i],
            levels=levels[rank],
            log_density=float(found.log_density[i]),
            score=float(score),
            value=float(after.value[i]),
            value_error=float(after.standard_error[i]),
            gain=float(gains[i]),
            gain_error=float(errors[i]),
            broken_fraction=float(after.broken_fraction[i]),
            roughness=float(judged.differences.mean_absolute[i]),
            max_drop=float(judged.differences.max_drop[i]),
            num_visits=int(found.visits[i].sum()),
            found_by=tuple(kind for kind, seen in zip(kinds, found.visits[i], strict=True) if seen),
            is_best=bool(i == best),
            is_robust=bool(i == robust),
            is_on_front=bool(is_front[i]),
            label=label,
        )
        for rank, (i, score, label) in enumerate(zip(rows, scores, labels, strict=True))
    )
    shown = [rank for rank, mode in enumerate(modes) if mode.is_best or mode.is_robust]
    shown += [rank for rank, mode in enumerate(modes) if mode.is_on_front and rank not in shown]
    shown = tuple(shown[:NUM_CURVES])
    places = rows[np.asarray(shown)]
    curves = draw_curves(
        target, found.states[places], disturbance, risk, after.outcomes[places], key, counter
    )
    return FlatModes(
        modes=modes,
        disturbance=disturbance.words,
        risk=risk.words,
        max_loss=float(max_loss),
        is_degenerate=is_function_of_height(judged),
        curves=curves,
        curve_modes=shown,
        num_evaluations=counter.num_made,
        num_found=num_found,
    )
