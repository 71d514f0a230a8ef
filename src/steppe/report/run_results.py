"""A run directory as `Results`: what mixed, what is stuck, and what the run cost, ready for the page."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steppe.diagnostics.mixing import LOG_DENSITY, Mixing
from steppe.diagnostics.quantity import Quantity
from steppe.errors import RunError
from steppe.report.run_figures import changes_figure, trace_figure
from steppe.report.summary import Summary
from steppe.results import Cell, Column, Estimate, Figure, Outcome, Provenance, Results, Table, Verdict
from steppe.run.parts import part_directories
from steppe.run.result import Run, open_run
from steppe.run.store import RunDirectory
from steppe.trace import Trace

# Half-width of an interval of 95 % in standard errors, as the MCSE is one of a mean of many draws.
NORMAL_95 = 1.96
MAX_CHAINS_LISTED = 64
SHOWN_SETTINGS = ("recipe", "domain", "num_chains", "num_warmup", "num_draws", "thinning", "keep", "dtype")


def is_run(directory: Path) -> bool:
    """Whether a directory holds a run, or the parts of one."""
    return RunDirectory(directory).exists or bool(part_directories(directory))


class RunResults(NamedTuple):
    """A run as results, its figures as SVG by key, and what of it is damaged or still being written."""

    results: Results
    drawings: dict[str, bytes]
    problems: list[str]


def results_of_run(directory: Path) -> RunResults:
    """Look at a run on disk; raises `DamagedRunError` if nothing in the directory verifies."""
    problems = _problems(directory)
    run = open_run(directory)
    trace = run.trace
    problems = [f"Damaged, or still being written: {problem}" for problem in problems]
    try:
        summary = run.summary()
    except RunError as error:  # no statistics were kept, or no draws are there yet
        return RunResults(_results(run, directory, [str(error)]), {}, problems)
    figures = {"trace": trace_figure(trace)}
    if summary.mixing.sites is not None and summary.mixing.num_draws > 1:
        figures["changes"] = changes_figure(trace, summary.mixing.sites)
    return RunResults(_results(run, directory, summary.diagnosis.findings[1:], summary), figures, problems)


def _problems(directory: Path) -> list[str]:
    whole = RunDirectory(directory)
    parts = [whole] if whole.exists else part_directories(directory)
    return [
        problem if part is whole else f"{part.path.name}: {problem}"
        for part in parts
        for problem in part.problems()
    ]


def _progress(run: Run) -> list[Verdict]:
    """Said only of a run that has not got to its end."""
    drawn, wanted = run.trace.num_rows - run.trace.num_warmup_rows, run.config["num_draws"]
    if drawn >= wanted:
        return []
    sentence = f"{drawn} of {wanted} draws per chain are committed."
    return [Verdict(claim="The run is complete.", outcome="does not hold", sentence=sentence)]


def _results(run: Run, directory: Path, notes: list[str], summary: Summary | None = None) -> Results:
    config = run.config
    return Results(
        name="run",
        title=f"{config['recipe']} on {_target_name(config)}",
        question="Did the chains mix, so that the draws can be relied on?",
        verdicts=[] if summary is None else [_verdict(summary), *_progress(run)],
        tables=[] if summary is None else [*_tables(summary, run.trace)],
        figures=[] if summary is None else [*_figures(summary)],
        settings={**{name: config[name] for name in SHOWN_SETTINGS}, **_numbers(config)},
        notes=notes,
        provenance=_provenance(run, directory, summary),
    )


def _target_name(config: Mapping[str, Any]) -> str:
    named = config.get("metadata", {}).get("target")
    return f"{named}, {config['domain']}" if named else config["domain"]


def _numbers(config: Mapping[str, Any]) -> dict[str, Cell]:
    return {name: value for name, value in config["numbers"].items() if isinstance(value, int | float)}


def _verdict(summary: Summary) -> Verdict:
    diagnosis = summary.diagnosis
    outcome: Outcome = "does not hold" if not diagnosis.ok else "holds"
    if diagnosis.ok and diagnosis.findings:
        outcome = "not distinguishable"
    sentence = diagnosis.findings[0] if diagnosis.findings else "Nothing is stuck, and the chains agree."
    return Verdict(claim="The draws can be relied on.", outcome=outcome, sentence=sentence)


# ---- tables ----------------------------------------------------------------------------------------


def _tables(summary: Summary, trace: Trace) -> Iterator[Table]:
    mixing = summary.mixing
    yield Table(
        key="quantities",
        title="Log-density U over all chains",
        columns=[
            Column(key="name", label="quantity"),
            Column(key="mean", label="mean"),
            Column(key="sd", label="standard deviation"),
            Column(key="ess", label="ESS", better="higher", digits=0),
            Column(key="rhat", label="R-hat", better="lower"),
        ],
        rows=[_quantity_row(quantity) for quantity in mixing.quantities],
        notes=[
            "Brackets are the 95 % interval of the mean, from its Monte Carlo error.",
            f"R-hat above {mixing.limit:g} says that chains have not come to the same law.",
        ],
    )
    if mixing.sites is not None:
        yield _site_table(mixing)
    yield _chain_table(mixing, trace, summary.config["thinning"])
    yield _cost_table(summary)


def _quantity_row(quantity: Quantity) -> dict[str, Cell]:
    error = NORMAL_95 * quantity.mcse
    mean = _finite(quantity.mean)
    if mean is not None and np.isfinite(error):
        estimate: Cell = Estimate(value=mean, low=mean - error, high=mean + error)
    else:
        estimate = mean
    return {
        "name": "log-density U" if quantity.name == LOG_DENSITY else quantity.name,
        "mean": estimate,
        "sd": _finite(quantity.sd),
        "ess": _finite(quantity.ess),
        "rhat": _finite(quantity.rhat),
    }


def _site_table(mixing: Mixing) -> Table:
    sites = mixing.sites
    assert sites is not None
    meanings = {
        "mixed": "chains agree on it",
        "stuck": "chains tell different stories about it",
        "constant": "one level in every draw",
    }
    return Table(
        key="sites",
        title="Verdicts on sites",
        columns=[
            Column(key="verdict", label="verdict"),
            Column(key="meaning", label="meaning"),
            Column(key="count", label="sites"),
            Column(key="share", label="share", unit="%", digits=1),
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
    )


def _chain_table(mixing: Mixing, trace: Trace, thinning: int) -> Table:
    labels = mixing.chains.labels
    # With many chains, those that have something to say come first.
    order = sorted(range(len(labels)), key=lambda chain: labels[chain] == "moving")[:MAX_CHAINS_LISTED]
    acceptance = trace.statistic("acceptance_rate").reshape(len(labels), -1).mean(axis=1, dtype=float)
    flips = trace.statistic("num_flips").reshape(len(labels), -1).mean(axis=1, dtype=float)
    per_site = flips / (thinning * mixing.num_copies * trace.domain.num_sites)
    left_out = len(labels) - len(order)
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
                "mean": _finite(mixing.chain_means[chain]),
                "acceptance": _finite(acceptance[chain]),
                "flips": _finite(per_site[chain]),
            }
            for chain in sorted(order)
        ],
        notes=[f"{left_out} more chains are not listed."] if left_out else [],
    )


def _cost_table(summary: Summary) -> Table:
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
        rows=[{"what": what, "count": count, "ess": _per(ess, count)} for what, count in spent.items()],
    )


# ---- figures and provenance ------------------------------------------------------------------------


def _figures(summary: Summary) -> Iterator[Figure]:
    means = summary.mixing.chain_means
    yield Figure(
        key="trace",
        title="Log-density of every chain.",
        caption="Chains that overlap and show no trend agree; a chain on a level of its own is stuck there. "
        "Warm-up is shaded.",
        alternative=f"Log-density against draw for {len(means)} chains, with means from {means.min():.4g} to "
        f"{means.max():.4g}.",
    )
    sites = summary.mixing.sites
    if sites is not None and summary.mixing.num_draws > 1:
        yield Figure(
            key="changes",
            title="How often each site changes.",
            caption="Share of consecutive kept draws between which a site changes, over all chains. Stuck "
            "sites are marked.",
            alternative=f"Share of changes for {len(sites.is_constant)} sites, of which "
            f"{sites.count('stuck')} are stuck and {sites.count('constant')} constant.",
        )


def _provenance(run: Run, directory: Path, summary: Summary | None) -> Provenance:
    software = {name: str(value) for name, value in run.config.get("software", {}).items()}
    metadata = run.config.get("metadata", {})
    seed = metadata.get("seed")
    return Provenance(
        command=f"steppe run --out {directory.name}" if metadata else "steppe.sample",
        device=software.pop("device", "unknown"),
        versions=software,
        seeds=[seed] if isinstance(seed, int) else [],
        seconds=run.seconds,
        model_evaluations=None if summary is None else summary.cost.num_evaluations,
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _per(value: float, by: float | None) -> float | None:
    return _finite(value / by) if by else None
