"""Findings: what is wrong with a run, a sentence each, with what to do about it."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from steppe.diagnostics.chain_verdicts import PARITIES, ChainVerdicts
from steppe.diagnostics.mixing import LOG_DENSITY, Mixing
from steppe.diagnostics.quantity import Quantity
from steppe.diagnostics.sites import MIN_DRAWS
from steppe.diagnostics.swaps import judge_swaps
from steppe.diagnostics.tails import MAX_TAIL, Tail

# 100 for each of four chains: with fewer, R-hat and errors are themselves unreliable (Vehtari et al. 2021).
MIN_EFFECTIVE = 400
NAMED = 6
# A chain that accepts less is said to accept hardly anything.
MIN_ACCEPTANCE = 0.005


class Diagnosis(NamedTuple):
    """Whether a run can be relied on, and what was found.

    Attributes
    ----------
    ok
        `False` if a site or chain has not converged, a chain is constant, periodic or a duplicate, or R-hat
        of the log-density or a chosen observable is above the limit. Categories that chains name differently
        are no failure.
    findings
        One sentence per problem; there may be some although the run is ok.
    """

    ok: bool
    findings: list[str]


def diagnose(mixing: Mixing) -> Diagnosis:
    """Turn statistics and verdicts into sentences: causes first, and what follows from one left out."""
    chains, of_chains = mixing.chains, list(_list_chain_failures(mixing))
    # Chains that agree up to names of levels disagree on sites, and on nothing else that counts.
    of_sites = [] if chains.is_relabelled or chains.exchanged else _list_site_failures(mixing)
    follows = [*of_sites, *_list_rhat_failures(mixing)]
    cut = [_describe_tail(mixing.tail)] if mixing.tail is not None else []
    is_cut = mixing.tail is not None and mixing.tail.beyond > MAX_TAIL
    has_failed = of_chains or follows or chains.is_constant.any()
    causes = list(_list_proposal_failures(mixing)) if has_failed else []
    defects = [_describe_nonfinite(mixing)] if mixing.num_nonfinite else []
    is_held = mixing.sites is not None and mixing.sites.is_held.any()
    is_explained = causes or chains.exchanged or (of_chains and not (is_held or chains.duplicates))
    if has_failed and defects:  # one cause: what else there is may follow from it
        causes, defects = defects, []
    failures = [*causes, *of_chains, *([] if is_explained else follows), *(cut if is_cut else [])]
    remarks = [*([] if is_cut else cut), *_list_remarks(mixing, has_failed=bool(failures)), *defects]
    return Diagnosis(not failures, [*failures, *remarks])


def _describe_tail(tail: Tail) -> str:
    where = f"the largest count {tail.max_count} of site {tail.site}"
    if tail.top == 0:
        return (
            f"Counts: no draw has {where}; less than {tail.beyond:.2g} of the mass of a site lies beyond it."
        )
    if math.isinf(tail.beyond):
        amount = "nothing says how much lies beyond it, as counts do not fall off there"
    else:
        amount = f"at most about {tail.beyond:.2g} of the mass lies beyond it"
    advice = " Raise `max_count`." if tail.beyond > MAX_TAIL else ""
    return f"Counts: a fraction {tail.top:.2g} of draws has {where}, and {amount}.{advice}"


def _list_proposal_failures(mixing: Mixing) -> Iterator[str]:
    """Chains stand still, or nearly, because of what is proposed."""
    stands = mixing.chains.is_constant
    is_refused = mixing.chain_acceptance_rates < MIN_ACCEPTANCE
    if mixing.num_nonfinite and (stands | is_refused).any():
        yield _describe_nonfinite(mixing)
    elif is_refused.any():
        remedy = (
            "Lower the step size; if that does not help, the gradient is a poor guide here:"
            if mixing.has_step_size
            else "The gradient may be a poor guide here, or moves too large:"
        )
        yield (
            f"{_name_chains(np.flatnonzero(is_refused))} accepted hardly any proposals "
            f"({mixing.acceptance_rate:.2g} of all). {remedy} use `gibbs()`, which takes exact differences. "
            "`steppe.audit_gradient(target, key)` measures the error of the gradient in nats."
        )
    elif stands.any() and not mixing.chains.exchanged:
        yield (
            f"{_name_chains(np.flatnonzero(stands))} never moved: every draw is one state. "
            f"{'Lower the step size, start' if mixing.has_step_size else 'Start'} elsewhere, or temper the "
            "target; where a constraint forbids changes of one site, use a sampler that changes several, "
            "such as `hamming_ball(radius=2)`."
        )


def _describe_nonfinite(mixing: Mixing) -> str:
    return (
        f"{mixing.num_nonfinite} proposals had a log-density or gradient that is not a number and were "
        "rejected. The log-density has a defect there: return −inf, state a constraint, or give a finite "
        "gradient (`jnp.sqrt` at 0 and `jnp.where` around `jnp.log` have none)."
    )


def _list_chain_failures(mixing: Mixing) -> Iterator[str]:
    chains = mixing.chains
    smaller = "Lower the step size" if mixing.has_step_size else "Use another sampler"
    for period in np.unique(chains.period[chains.period > 0]):
        periodic = np.flatnonzero(chains.period == period)
        yield (
            f"States, log-densities or parities repeat with period {period} in "
            f"{_name_chains(periodic).lower()}. "
            f"{smaller}, or flip another number of sites per proposal."
        )
    for group in chains.duplicates:
        yield (
            f"{_name_chains(group)} have identical draws, so they count once. Give each its own key "
            "and start."
        )
    if chains.is_split_by_parity:
        odd, even = np.flatnonzero(chains.parity == 1), np.flatnonzero(chains.parity == 0)
        yield (
            f"{_name_chains(even)} only met states with an even number of upper levels and "
            f"{_name_chains(odd).lower()} "
            "only odd ones. Flip an odd number of sites per proposal."
        )
    if chains.renamed and not chains.has_names:
        yield _describe_exchange("Label switching", chains.renamed)
    elif chains.exchanged:
        still = _name_chains(np.flatnonzero(chains.is_constant)).lower()
        yield (
            "Label switching: each chain is most of the time in one state, and these states are the same "
            f"once the levels are renamed in {_name_renamed(chains.exchanged)}. Tempering would only "
            "exchange the names. How often other states occur is not known yet"
            f"{f', as {still} never left it' if chains.is_constant.any() else ''}: run longer."
        )
    elif chains.modes and not chains.renamed:
        yield _describe_modes(chains, mixing.chain_means)


def _describe_exchange(begin: str, renamed: dict[int, tuple[int, ...]]) -> str:
    return (
        f"{begin}: chains agree once the levels are renamed in {_name_renamed(renamed)}. The target looks "
        "the same under that exchange, so nothing is missed. Rename the levels before averaging, use "
        "quantities that do not depend on names, or fix one site."
    )


def _name_renamed(renamed: dict[int, tuple[int, ...]]) -> str:
    named = [f"chain {chain} (0, 1, … are {', '.join(map(str, order))})" for chain, order in renamed.items()]
    return "; ".join(named[:NAMED]) + (f" and {len(named) - NAMED} more" if len(named) > NAMED else "")


def _describe_modes(chains: ChainVerdicts, means: np.ndarray) -> str:
    places = [
        f"{_name_chains(group).lower()} around U = {means[list(group)].mean():.4g}" for group in chains.modes
    ]
    return (
        f"Chains move, but each stays in one of {len(places)} modes: {'; '.join(places)}. How many draws "
        "fall on a mode says nothing about its weight. Use a sampler that crosses between modes, or temper."
    )


def _list_site_failures(mixing: Mixing) -> Iterator[str]:
    sites = mixing.sites
    if sites is None or not sites.is_unconverged.any():
        return
    unconverged = np.flatnonzero(sites.is_unconverged)
    begin = (
        f"{len(unconverged)} of {len(sites.is_unconverged)} sites are not converged "
        f"({_list_briefly(unconverged)}): "
    )
    holding = np.unique(np.flatnonzero(sites.is_held.any(axis=1)) // mixing.num_replicas)
    if not len(holding):
        yield (
            f"{begin}they move, but chains disagree on how often they take their most frequent level. Run "
            "longer."
        )
        return
    only_disagree = sites.disagrees & ~sites.is_held.any(axis=0)
    yield (
        f"{begin}{_name_chains(holding).lower()} never left a level that other chains leave often"
        f"{', and chains disagree on other sites' if only_disagree.any() else ''}. Run longer, "
        f"{'raise the step size, ' if mixing.has_step_size else ''}or use a sampler with larger moves."
    )


def _list_rhat_failures(mixing: Mixing) -> Iterator[str]:
    has_unconverged = mixing.sites is not None and mixing.sites.is_unconverged.any()
    for quantity in mixing.quantities:
        # Chains that disagree on sites disagree on the log-density: one sentence is enough.
        if quantity.rhat > mixing.limit and not (has_unconverged and quantity.name == LOG_DENSITY):
            yield (
                f"R-hat of {_name_quantity(quantity)} is {quantity.rhat:.3f}, above "
                f"{mixing.limit:g}: chains have not "
                "come to the same distribution. Run longer, with more warm-up, or with another sampler."
            )


def _looks_switched(mixing: Mixing) -> bool:
    """Whether real parts disagree between chains while the log-density, which knows no labels, does not."""
    reals = mixing.quantities[1 : 1 + mixing.num_reals]
    agrees = mixing.log_density.rhat <= mixing.limit
    return agrees and any(real.rhat > mixing.limit for real in reals)


def _list_remarks(mixing: Mixing, *, has_failed: bool) -> Iterator[str]:
    if _looks_switched(mixing):
        yield (
            "U agrees between chains while real parts do not, as with label switching: if the model is the "
            "same with its components exchanged, look at what does not depend on labels, such as sorted "
            "means (`run.summary({...})`), or order the components in the log-density."
        )
    if mixing.chains.is_relabelled:
        begin = "Label switching" if has_failed else "Converged up to relabelling"
        yield _describe_exchange(begin, mixing.chains.renamed)
    if mixing.swaps is not None:
        yield from judge_swaps(mixing.swaps)
    yield from _list_quantity_remarks(mixing, has_failed)
    sites, parity = mixing.sites, mixing.chains.parity
    if sites is not None and sites.is_constant.any() and not mixing.chains.is_constant.all():
        constant = np.flatnonzero(sites.is_constant)
        yield (
            f"{len(constant)} of {len(sites.is_constant)} sites kept one level in all chains "
            f"({_list_briefly(constant)}). If the target does not demand it, run longer or start elsewhere."
        )
    if (parity == parity[0]).all() and parity[0] >= 0:
        yield (
            f"All draws have an {PARITIES[parity[0]]} number of sites at their upper level. If the target "
            "allows others, flip an odd number of sites per proposal."
        )


def _list_quantity_remarks(mixing: Mixing, has_failed: bool) -> Iterator[str]:
    if mixing.num_draws < MIN_DRAWS:
        yield f"{mixing.num_draws} draws per chain are too few to judge anything. Draw at least some hundred."
        return
    if len(mixing.chain_means) < 2:
        yield "A single chain cannot show that it misses a mode. Run at least four."
    for quantity in mixing.quantities:
        if np.isnan(quantity.mean):
            yield (
                f"Some draws have a value of {_name_quantity(quantity)} that is not finite; its "
                "statistics are void."
            )
        elif quantity.is_constant and not mixing.chains.is_constant.all():
            yield (
                f"Every draw has {_name_quantity(quantity)} {quantity.mean:.6g}, which tells "
                "nothing about mixing."
            )
        elif not has_failed and quantity.ess < MIN_EFFECTIVE and not quantity.rhat > mixing.limit:
            yield (
                f"Only {quantity.ess:.0f} effective draws of {_name_quantity(quantity)}; errors and "
                f"R-hat are rough below {MIN_EFFECTIVE}. Run about {_count_times(quantity)} times as long."
            )


def _count_times(quantity: Quantity) -> int:
    return int(np.ceil(MIN_EFFECTIVE / max(quantity.ess, 1.0)))


def _name_quantity(quantity: Quantity) -> str:
    return "the log-density" if quantity.name == LOG_DENSITY else repr(quantity.name)


def _name_chains(chains: Sequence[int] | np.ndarray) -> str:
    return f"Chain{'s' if len(chains) > 1 else ''} {_list_briefly(chains)}"


def _list_briefly(numbers: Sequence[int] | np.ndarray) -> str:
    shown = ", ".join(str(number) for number in numbers[:NAMED])
    return shown + (f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else "")
