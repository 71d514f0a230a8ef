"""Pages made of what was recorded: verdicts on the paper's claims, and its tables cell by cell."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steppe.report.page.forest import draw_forest
from steppe.results import Estimate, Outcome, Results, Verdict, read_results
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.tsp.run import PRINTED

RESULTS = Path(__file__).parent / "results"
FOREST = "claims_forest.svg"
ORDER = ("bernoulli", "ising", "eta", "tsp", "budget", "rbm", "bnn", "flatness", "runtime", "theory")
OUTCOMES: tuple[Outcome, ...] = (
    "shown",
    "there, maybe negligible",
    "negligible",
    "opposite",
    "undecided",
)
# The claims that the paper stands on: what is asked, and what it means.
MATTER = (
    (
        "edmala spends more time in flat modes than dmala.",
        "The corrected sampler does not seek flat modes: its position has distribution π for every η.",
    ),
    (
        "edula spends less time in sharp modes than dula.",
        "The uncorrected one leaves sharp modes because its step is larger in effect; so does such a dula.",
    ),
    (
        "edmala has a lower test RMSE than dmala on compas, with the paper's network.",
        "Whether networks drawn with the coupling predict better than those drawn without.",
    ),
)
# Why a cell of the paper cannot come out, where that is known.
_TWO_RUNS = "bar and mean come from different runs; the costs in the authors' file have"
_FOUR_CALLS = "the authors' code evaluates four times per decision"
_FROZEN = "the error of the starting networks, which never move"
REASONS = {
    ("tsp", "edmala", "spread"): f"{_TWO_RUNS} 1.354",
    ("tsp", "edula", "spread"): f"{_TWO_RUNS} 1.947",
    ("tsp", "dmala", "spread"): f"{_TWO_RUNS} 1.857",
    **{("eta", "edmala", variance): _FROZEN for variance in ("0.01", "0.02", "0.05")},
}
FIGURES = {
    "theory": {
        "theory_bias.svg": "Bias of edula as printed and as corrected, beside exact numbers",
        "theory_drift.svg": "Factor by which the center of edula contracts, as printed and true",
        "theory_gap.svg": "Spectral gaps claimed and exact",
    }
}
LEVEL = 0.95
MINUS = re.compile(r"(?<![\w.−-])-(?=[\d.])")
# What becomes of a printed number: how its word begins, and how it is said of several.
WORDS = {
    "agrees": "agree",
    "differs": "differ",
    "not compared": "cannot be compared",
    "not yet run": "are not yet run",
}


class Compared(NamedTuple):
    """A printed number beside ours: what it is, both, what it is read against, and a word."""

    what: str
    printed: float
    ours: str
    beside: str
    word: str


def load_records() -> dict[str, Results]:
    """Recorded results by name: `bernoulli`, `bernoulli_published`, `bnn_compas`."""
    paths = sorted(RESULTS.glob("reproduce_*.json"))
    return {path.stem.removeprefix("reproduce_"): read_results(path) for path in paths}


# ---- claims ----------------------------------------------------------------------------------------


def is_current(results: Results) -> bool:
    """Whether results name the commit that made them: others are older than today's draws and verdicts."""
    return bool(results.provenance.commit)


def write_claims(records: dict[str, Results]) -> str:
    """Five lines, the forest plot, then the verdicts of every record."""
    current = {name: one for name, one in records.items() if is_current(one)}
    ordered = sorted(records, key=lambda name: (ORDER.index(records[name].name), len(name), name))
    alternative = "Effect and interval of every claim in units of its margin"
    parts = [write_summary(current), f"![{alternative}](../figures/{FOREST})"]
    for name in ORDER:
        own = [label for label in ordered if records[label].name == name]
        if own:
            parts.append(f"## {records[own[0]].title}")
            parts += [write_verdicts(label, records[label]) for label in own]
            parts += [f"![{text}](../figures/{file})" for file, text in FIGURES.get(name, {}).items()]
    return "\n\n".join(parts)


def write_summary(current: dict[str, Results]) -> str:
    """How many claims, how many shown, and the three that matter."""
    verdicts = [verdict for results in current.values() for verdict in results.verdicts]
    of_paper = [verdict for verdict in verdicts if verdict.place]
    counts = [(sum(v.outcome == outcome for v in of_paper), outcome) for outcome in OUTCOMES]
    listed = ", ".join(f"{count} {outcome}" for count, outcome in counts)
    own = len(verdicts) - len(of_paper)
    lines = [
        f"{len(of_paper)} claims of the paper and {own} questions of our own are judged by today's code.",
        f"Of the paper's: {listed}.",
    ]
    for claim, meaning in MATTER:
        found = next((v for v in verdicts if v.claim == claim), None)
        lines.append(f"{meaning} ({claim[:-1]}: *{found.outcome if found else 'not recorded yet'}*.)")
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def write_verdicts(label: str, results: Results) -> str:
    """Verdicts of one record: the paper's claims, then our own questions."""
    groups = {
        "Claims of the paper": [v for v in results.verdicts if v.place],
        "Questions of our own": [v for v in results.verdicts if not v.place],
    }
    older = " It is older than today's draws and verdicts, and is to be recorded again."
    state = "" if is_current(results) else older
    ending = f"Recorded by `{results.provenance.command}` (reproduce_{label}.json).{state}"
    if not is_current(results):
        groups = {"Older record": results.verdicts}
    tables = [_write_table(title, verdicts) for title, verdicts in groups.items() if verdicts]
    return "\n\n".join([*tables, ending])


def _write_table(title: str, verdicts: list[Verdict]) -> str:
    # Two columns: beside a third one, the long sentences become towers of single words on a phone.
    rows = [
        (f"{v.claim} **{v.outcome.capitalize()}.**{v.place and f' ({v.place})'}", v.sentence)
        for v in verdicts
    ]
    cells = [MINUS.sub("−", " | ".join(cell.replace("|", "\\|") for cell in row)) for row in rows]
    return "\n".join([f"| {title.lower()} | what came out |", "|---|---|", *(f"| {row} |" for row in cells)])


def write_forest(records: dict[str, Results]) -> str:
    """The forest plot of all current records, as a drawing of its own."""
    groups = [(f"{one.title} ({one.protocol})", one.verdicts) for one in records.values() if is_current(one)]
    return draw_forest([(title, verdicts) for title, verdicts in groups if verdicts], is_alone=True)


# ---- table by table --------------------------------------------------------------------------------


def write_tables(records: dict[str, Results]) -> str:
    """Every printed number of the paper beside ours."""
    sections = [
        ("4D Bernoulli: eigenspectra (App. E.1)", list(compare_spectrum(records.get("bernoulli_published")))),
        ("Travelling salesman (§6.2, App. E.2)", list(compare_tours(records.get("tsp_published")))),
        ("RBM on MNIST (§6.3, Table 1)", list(compare_images(records.get("rbm_published")))),
        ("Binary networks (§6.4, Table 2; App. E.4)", list(compare_networks(records.get("bnn_published")))),
        ("Coupling variance on COMPAS (App. A.2)", list(compare_sweep(records.get("eta_published")))),
        ("Runtime on Adult (App. E.4)", list(compare_times(records.get("runtime_published")))),
    ]
    every = [row for _, rows in sections for row in rows]
    words = {said: sum(row.word.startswith(word) for row in every) for word, said in WORDS.items()}
    counted = ", ".join(f"{count} {said}" for said, count in words.items())
    parts = [f"Of {len(every)} printed numbers: {counted}."]
    for title, rows in sections:
        lines = ["| cell | paper | ours | read against | |", "|---|---|---|---|---|"]
        lines += [f"| {r.what} | {_say(r.printed)} | {r.ours} | {r.beside} | {r.word} |" for r in rows]
        parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts)


def compare_spectrum(results: Results | None) -> Iterator[Compared]:
    """Standard deviations with their percentile; quartile ranges of one run beside the exact value."""
    for printed in EXPERIMENTS["bernoulli"].published:
        sampler = str(printed["sampler"])
        row = _find(results, "spectrum", sampler=sampler)
        value = float(printed["std"])
        if row is None:
            yield _missing(f"{sampler} std", value)
            yield _missing(f"{sampler} IQR", float(printed["iqr"]))
            continue
        yield by_percentile("bernoulli", sampler, "std", value, row["std"], row["percentile"])
        other, percentile = float(printed["iqr"]), row.get("percentile_iqr")
        if percentile is None:
            yield Compared(
                f"{sampler} IQR", other, _say(row["iqr"], 3), "one run, no interval", "not compared"
            )
        else:
            yield by_percentile("bernoulli", sampler, "IQR", other, row["iqr"], percentile)


def compare_tours(results: Results | None) -> Iterator[Compared]:
    """Every statistic with its percentile among all seeds."""
    names = [str(row["sampler"]) for row in EXPERIMENTS["tsp"].published]
    runs = None if results is None or "all_runs" not in results.arrays else results.arrays["all_runs"].numpy()
    for number, printed in enumerate(EXPERIMENTS["tsp"].published):
        for place, key in enumerate(PRINTED):
            value, what = float(printed[key]), f"{names[number]} {key.replace('_', ' ')}"
            if runs is None:
                yield _missing(what, value)
                continue
            seeds = runs[number, place]
            ties = np.mean(seeds < value) + 0.5 * np.mean(seeds == np.float32(value))
            yield by_percentile("tsp", names[number], key, value, float(seeds[0]), 100 * ties, len(seeds))


def by_percentile(
    experiment: str, sampler: str, key: str, printed: float, ours: Any, percentile: float, number: int = 1500
) -> Compared:
    """Our first run, and where the paper's number is among all of ours."""
    tail = 100 * (1 - LEVEL) / 2
    word = "agrees" if tail <= percentile <= 100 - tail else "differs"
    reason = REASONS.get((experiment, sampler, key))
    word = f"{word}: {reason}" if reason and word == "differs" else word
    beside = f"percentile {percentile:.1f} of {number} runs"
    return Compared(f"{sampler} {key.replace('_', ' ')}", printed, _say(ours, 3), beside, word)


def compare_images(results: Results | None) -> Iterator[Compared]:
    """All cells of the table of reconstructions, images taken as the authors took them."""
    for printed in EXPERIMENTS["rbm"].published:
        for key in ("mse", "psnr", "ssim", "brightness"):
            metric = "“log-lik.”" if key == "brightness" else key.upper()
            what = f"{printed['sampler']} {printed['setting']} {metric}"
            row = _find(
                results, "reconstruction--pictures", sampler=printed["sampler"], setting=printed["setting"]
            )
            yield _beside_estimate(what, float(printed[key]), None if row is None else row.get(key), 1, 4)


def compare_networks(results: Results | None) -> Iterator[Compared]:
    """Test errors and training log-likelihoods; a prediction interval where there are several seeds."""
    for printed in EXPERIMENTS["bnn"].published:
        data = str(printed["table"])
        row = _find(results, f"published--{data}", sampler=printed["sampler"])
        for key in ("rmse", "likelihood"):
            what = f"{data} {printed['sampler']} {'test RMSE' if key == 'rmse' else 'training log-lik.'}"
            cell = None if row is None else row.get(key)
            seeds = 1 if row is None else row.get("num_seeds", 1)
            yield _beside_estimate(what, float(printed[key]), cell, seeds, 4)


def compare_sweep(results: Results | None) -> Iterator[Compared]:
    """Validation errors over the coupling variance."""
    for printed in EXPERIMENTS["eta"].published:
        sampler, variance = str(printed["sampler"]), float(printed["variance"])
        row = _find(results, f"sweep--{sampler}", variance=variance)
        what, seeds = f"{sampler} η = {variance:g}", len(results.provenance.seeds) if results else 1
        yield _beside_estimate(
            what, float(printed["rmse"]), None if row is None else row["rmse"], seeds, 4,
            REASONS.get(("eta", sampler, f"{variance:g}"), ""),
        )  # fmt: skip


def compare_times(results: Results | None) -> Iterator[Compared]:
    """Seconds per call relative to dula: seconds themselves are those of another machine."""
    paper = EXPERIMENTS["runtime"].constants["paper_seconds"]
    rows = {} if results is None else {row["sampler"]: row for row in results.table("timings").rows}
    for name, seconds in paper.items():
        what, printed = f"{name}, per call, relative to dula", round(seconds / paper["dula"], 2)
        if name not in rows:
            yield _missing(what, printed)
            continue
        ours: Any = rows[name]["per_call"] / rows["dula"]["per_call"]
        word = "agrees" if abs(ours / printed - 1) < 0.25 else f"differs: {_FOUR_CALLS}"
        yield Compared(what, printed, f"{ours:.2f}", "within a quarter", word)


def _beside_estimate(
    what: str, printed: float, cell: Any, num_seeds: int, digits: int, reason: str = ""
) -> Compared:
    """Ours with the range of another run: of several seeds by Student, of one by its spread."""
    if cell is None:
        return _missing(what, printed)
    if not isinstance(cell, Estimate) or cell.low is None or cell.high is None:
        return Compared(what, printed, _say(cell, digits), "one run, no interval", f"not compared {reason}")
    if num_seeds > 1:
        reach = (cell.high - cell.value) * math.sqrt(num_seeds + 1)  # from a mean to one further run
        beside = f"± {reach:.{digits}f} for one more run, {num_seeds} seeds"
    else:
        reach, beside = cell.high - cell.value, f"± {cell.high - cell.value:.{digits}f} along one run"
    word = "agrees" if abs(printed - cell.value) <= reach else "differs"
    word = f"{word}: {reason}" if reason and word == "differs" else word
    return Compared(what, printed, f"{cell.value:.{digits}f}".replace("-", "−"), beside, word)


def _missing(what: str, printed: float) -> Compared:
    return Compared(what, printed, "", "", "not yet run")


def _find(results: Results | None, table: str, **cells: object) -> dict[str, Any] | None:
    tables = [] if results is None else [one for one in results.tables if one.key == table]
    rows = [row for one in tables for row in one.rows]
    return next((row for row in rows if all(row.get(key) == cell for key, cell in cells.items())), None)


def _say(cell: Any, digits: int | None = None) -> str:
    number = cell.value if isinstance(cell, Estimate) else cell
    return (f"{number:g}" if digits is None else f"{number:.{digits}f}").replace("-", "−")
