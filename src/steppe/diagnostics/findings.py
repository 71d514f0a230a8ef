"""Findings: what is wrong with a run, a sentence each, with what to do about it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from steppe.diagnostics.chain_verdicts import PARITIES, ChainVerdicts
from steppe.diagnostics.mixing import LOG_DENSITY, Mixing
from steppe.diagnostics.quantity import Quantity
from steppe.diagnostics.sites import MIN_DRAWS, SiteVerdicts

# 100 for each of four chains: with fewer, R-hat and errors are themselves unreliable (Vehtari et al. 2021).
MIN_EFFECTIVE = 400
NAMED = 6


class Diagnosis(NamedTuple):
    """Whether a run can be relied on, and what was found.

    Attributes
    ----------
    ok
        `False` if a site or chain has not converged, a chain is constant, periodic or a duplicate, or R-hat
        of the
        log-density or a chosen observable is above the limit.
    findings
        One sentence per problem; there may be some although the run is ok.
    """

    ok: bool
    findings: list[str]


def diagnose(mixing: Mixing) -> Diagnosis:
    """Turn statistics and verdicts into sentences."""
    failures = [*_list_chain_failures(mixing), *_list_site_failures(mixing), *_list_rhat_failures(mixing)]
    return Diagnosis(not failures, [*failures, *_list_remarks(mixing)])


def _list_chain_failures(mixing: Mixing) -> Iterator[str]:
    chains = mixing.chains
    if chains.is_constant.any():
        yield (
            f"{_name_chains(np.flatnonzero(chains.is_constant))} never moved: every draw is one "
            "state. Lower the step size, start elsewhere, or temper the target."
        )
    for period in np.unique(chains.period[chains.period > 0]):
        periodic = np.flatnonzero(chains.period == period)
        yield (
            f"States, log-densities or parities repeat with period {period} in "
            f"{_name_chains(periodic).lower()}. "
            "Lower the step size, or flip another number of sites per proposal."
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
    if chains.modes:
        yield _describe_modes(chains, mixing.chain_means)


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
    yield (
        f"{len(unconverged)} of {len(sites.is_unconverged)} sites are not converged "
        f"({_list_briefly(unconverged)}): "
        f"{_explain_sites(sites, mixing.num_replicas)}. Run longer, raise the step size, or use a "
        "sampler with larger moves."
    )


def _explain_sites(sites: SiteVerdicts, num_replicas: int) -> str:
    holding = np.unique(np.flatnonzero(sites.is_held.any(axis=1)) // num_replicas)
    if not len(holding):
        return "chains disagree on how often they take their most frequent level"
    reason = f"{_name_chains(holding).lower()} never left a level that other chains leave often"
    only_disagree = sites.disagrees & ~sites.is_held.any(axis=0)
    return f"{reason}, and chains disagree on other sites" if only_disagree.any() else reason


def _list_rhat_failures(mixing: Mixing) -> Iterator[str]:
    for quantity in mixing.quantities:
        if quantity.rhat > mixing.limit:
            yield (
                f"R-hat of {_name_quantity(quantity)} is {quantity.rhat:.3f}, above "
                f"{mixing.limit:g}: chains have not "
                "come to the same distribution. Run longer, with more warm-up, or with another sampler."
            )


def _list_remarks(mixing: Mixing) -> Iterator[str]:
    yield from _list_quantity_remarks(mixing)
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
    if mixing.num_nonfinite:
        yield (
            f"{mixing.num_nonfinite} proposals had a log-density or gradient that is not a number and were "
            "rejected. The log-density has a defect there: return −inf, or state a constraint."
        )


def _list_quantity_remarks(mixing: Mixing) -> Iterator[str]:
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
        elif quantity.ess < MIN_EFFECTIVE and not quantity.rhat > mixing.limit:
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
