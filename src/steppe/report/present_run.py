"""Presenter of a run: its summary as results."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from steppe.diagnostics.mixing import LOG_DENSITY, Cost, Mixing
from steppe.diagnostics.quantity import Quantity
from steppe.diagnostics.sites import SiteVerdicts
from steppe.diagnostics.swaps import Swaps
from steppe.intervals import estimate_from_error
from steppe.report.cells import divide, format_significant, to_finite
from steppe.report.present_observables import tabulate_streams
from steppe.results import Cell, Column, Outcome, Provenance, Results, Table, Verdict
from steppe.trace import REASON

if TYPE_CHECKING:
    from steppe.report.summary import Summary
    from steppe.run.storage.record import RunDescription

MAX_CHAINS_LISTED = 64
SHOWN_SETTINGS = ("recipe", "num_chains", "num_warmup", "num_draws", "thinning", "keep", "dtype")


def present_run(summary: "Summary") -> Results:
    """Return what a run says about itself as results."""
    diagnosis = summary.diagnosis
    notes = [*diagnosis.findings[1:], *filter(None, [summary.end])]
    described = present_description(summary.run, summary.cost.seconds, notes)
    provenance = described.provenance.model_copy(update={"model_evaluations": summary.cost.num_evaluations})
    return described.model_copy(
        update={
            "facts": dict(_list_facts(summary)),
            "verdicts": [_judge(summary)],
            "tables": [*_list_tables(summary)],
            "provenance": provenance,
        }
    )


def present_description(run: "RunDescription", seconds: float, notes: list[str]) -> Results:
    """Return what is known of a run without looking at its draws."""
    seed = run.metadata.get("seed")
    shown = {name: getattr(run, name) for name in SHOWN_SETTINGS}
    return Results(
        name="run",
        title=f"{name_run(run)}{_say_why(run)}",
        question="Did the chains mix, so that the draws can be relied on?",
        settings={"domain": repr(run.make_domain()), **shown, **run.parameters},
        notes=notes,
        provenance=Provenance.of_software(
            run.software,
            command="steppe run" if set(run.metadata) - {REASON} else "steppe.sample",
            seeds=[seed] if isinstance(seed, int) else [],
            seconds=seconds,
        ),
    )


def name_run(run: "RunDescription") -> str:
    """Recipe, target and domain in a few words."""
    named, domain = run.metadata.get("target"), repr(run.make_domain())
    return f"{run.recipe} on {named}, {domain}" if named else f"{run.recipe} on {domain}"


def _say_why(run: "RunDescription") -> str:
    """Why the recipe was chosen, where nobody gave one."""
    return f": {run.metadata[REASON]}" if REASON in run.metadata else ""


def _judge(summary: "Summary") -> Verdict:
    diagnosis = summary.diagnosis
    outcome: Outcome = "does not hold" if not diagnosis.ok else "holds"
    if diagnosis.ok and diagnosis.findings:
        outcome = "not distinguishable"
    sentence = (
        diagnosis.findings[0] if diagnosis.findings else "All sites have converged, and the chains agree."
    )
    return Verdict(claim="The draws can be relied on.", outcome=outcome, sentence=sentence)


# ---- facts -----------------------------------------------------------------------------------------


def _list_facts(summary: "Summary") -> Iterator[tuple[str, str]]:
    mixing, run = summary.mixing, summary.run
    yield "draws", _count_draws(mixing, run.thinning, run.num_warmup)
    if mixing.sites is not None:
        yield "sites", _count_sites(mixing.sites)
    yield "chains", _count_chains(mixing)
    yield "moves", f"acceptance {mixing.acceptance_rate:.3f} · {mixing.flip_rate:.3g} flips per site and step"
    if mixing.swaps is not None:
        yield "ladder", _describe_ladder(mixing.swaps, summary.cost)
    if mixing.num_unique is not None:
        num_states = len(mixing.chain_means) * mixing.num_draws * mixing.num_replicas
        yield "states", f"{mixing.num_unique} different among {num_states}"
    if mixing.num_nonfinite:
        yield "defects", f"{mixing.num_nonfinite} proposals not a number"
    yield "ESS of U", " · ".join(_list_efficiency(summary.cost, mixing.log_density.ess))


def _describe_ladder(swaps: Swaps, cost: Cost) -> str:
    trips = f"{swaps.round_trips} round trips in all"
    if swaps.round_trips:
        fewest, most = swaps.trips_by_chain.min(), swaps.trips_by_chain.max()
        trips += f", {fewest} to {most} a chain, one in {swaps.num_rows / swaps.round_trips:.0f} draws"
    low, high = swaps.rates.min(), swaps.rates.max()
    round_ = f" · {1e3 * cost.seconds / cost.num_steps:.2g} ms a round and chain" if cost.seconds else ""
    return (
        f"{swaps.num_rungs} rungs · Λ = {swaps.barrier:.1f} · swaps {low:.2f} to {high:.2f} · {trips}{round_}"
    )


def _count_draws(mixing: Mixing, thinning: int, num_warmup: int) -> str:
    num_chains = len(mixing.chain_means)
    replicas = f" of {mixing.num_replicas} replicas" if mixing.num_replicas > 1 else ""
    every = f", every {thinning} steps" if thinning > 1 else ""
    chains = f"{num_chains} chain{'' if num_chains == 1 else 's'}"
    return f"{chains} × {mixing.num_draws} draws{replicas}{every}, after {num_warmup} warm-up steps"


def _count_sites(sites: SiteVerdicts) -> str:
    counts = {label: sites.count(label) for label in ("mixed", "not converged", "constant")}
    listed = " · ".join(f"{count} {label}" for label, count in counts.items() if count)
    return f"{listed}   of {len(sites.is_constant)}"


def _count_chains(mixing: Mixing) -> str:
    means = mixing.chain_means
    spread = f"E[U] from {_round(means.min())} to {_round(means.max())}"
    return f"{mixing.chains.labels.count('moving')} moving   of {len(means)} · {spread}"


def _list_efficiency(cost: Cost, ess: float) -> Iterator[str]:
    if cost.num_evaluations is None:
        yield f"{_round(ess / cost.num_steps)} per step, whose cost depends on the target"
    else:
        yield f"{_round(ess / cost.num_evaluations)} per model evaluation"
    if cost.seconds > 0:
        yield f"{_round(ess / cost.seconds)} per second"
    yield "warm-up counted"


def _round(value: float) -> str:
    return format_significant(value, 4) if math.isfinite(value) else "–"


# ---- tables ----------------------------------------------------------------------------------------


def _list_tables(summary: "Summary") -> Iterator[Table]:
    mixing = summary.mixing
    yield _tabulate_quantities(mixing)
    if mixing.sites is not None:
        yield _tabulate_sites(mixing.sites)
    if mixing.streams:
        yield tabulate_streams(mixing.streams)
    yield _tabulate_chains(mixing)
    yield _tabulate_cost(summary)


def _tabulate_quantities(mixing: Mixing) -> Table:
    is_high = [number for number, one in enumerate(mixing.quantities) if one.rhat > mixing.limit]
    return Table(
        key="quantities",
        title="Over all chains",
        columns=[
            Column(key="name", label="quantity"),
            Column(key="mean", label="mean"),
            Column(key="sd", label="standard deviation"),
            Column(key="mcse", label="MCSE", digits=4),
            Column(key="ess", label="ESS", better="higher", digits=0),
            Column(key="rhat", label="R-hat", better="lower"),
        ],
        rows=[_list_cells(quantity) for quantity in mixing.quantities],
        marked_rows=is_high,
        notes=[
            "Brackets are the 95 % interval of the mean, from its Monte Carlo standard error (MCSE).",
            f"R-hat above {mixing.limit:g} says that chains have not come to the same distribution.",
        ],
    )


def _list_cells(quantity: Quantity) -> dict[str, Cell]:
    return {
        "name": "U (log-density)" if quantity.name == LOG_DENSITY else quantity.name,
        "mean": estimate_from_error(quantity.mean, quantity.mcse),
        "sd": to_finite(quantity.sd),
        "mcse": to_finite(quantity.mcse),
        "ess": to_finite(quantity.ess),
        "rhat": "∞" if math.isinf(quantity.rhat) else to_finite(quantity.rhat),
    }


def _tabulate_sites(sites: SiteVerdicts) -> Table:
    meanings = {
        "mixed": "chains agree on it",
        "not converged": "chains tell different stories about it",
        "constant": "one level in every draw",
    }
    return Table(
        key="sites",
        title="Verdicts on sites",
        columns=[
            Column(key="verdict", label="verdict"),
            Column(key="meaning", label="meaning"),
            Column(key="count", label="sites"),
            Column(key="share", label="fraction", unit="%", digits=1),
        ],
        rows=[
            {
                "verdict": label,
                "meaning": meaning,
                "count": sites.count(label),
                "share": 100 * sites.count(label) / len(sites.is_constant),
            }
            for label, meaning in meanings.items()
        ],
        is_detail=True,
    )


def _tabulate_chains(mixing: Mixing) -> Table:
    labels = mixing.chains.labels
    # With many chains, those that have something to say come first.
    order = sorted(range(len(labels)), key=lambda chain: labels[chain] == "moving")[:MAX_CHAINS_LISTED]
    listed, left_out = sorted(order), len(labels) - len(order)
    return Table(
        key="chains",
        title="Chain by chain",
        columns=[
            Column(key="chain", label="chain", digits=0),
            Column(key="verdict", label="verdict"),
            Column(key="mean", label="E[U]"),
            Column(key="acceptance", label="acceptance"),
            Column(key="flips", label="flips per site and step", digits=4),
        ],
        rows=[
            {
                "chain": chain,
                "verdict": labels[chain],
                "mean": to_finite(mixing.chain_means[chain]),
                "acceptance": to_finite(mixing.chain_acceptance_rates[chain]),
                "flips": to_finite(mixing.chain_flip_rates[chain]),
            }
            for chain in listed
        ],
        marked_rows=[row for row, chain in enumerate(listed) if labels[chain] != "moving"],
        is_detail=True,
        notes=[f"{left_out} more chains are not listed."] if left_out else [],
    )


def _tabulate_cost(summary: "Summary") -> Table:
    cost, ess = summary.cost, summary.mixing.log_density.ess
    spent = {
        "steps, all chains, warm-up included": cost.num_steps,
        "model evaluations": cost.num_evaluations,
        "seconds": float(cost.seconds),
    }
    return Table(
        key="cost",
        title="Cost",
        columns=[
            Column(key="what", label="what"),
            Column(key="count", label="spent", digits=1),
            Column(key="ess", label="ESS of U for each", better="higher", digits=4),
        ],
        rows=[{"what": what, "count": count, "ess": divide(ess, count)} for what, count in spent.items()],
        is_detail=True,
    )
