"""Carry out a suite: every method on every instance with every seed, and the table of it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steppe.atomic import write_atomically
from steppe.errors import RunError
from steppe.results import Cell, Column, Estimate, Provenance, Results, Table
from steppe.run.storage.identity import describe_software
from steppe.validation import find_name
from steppe_bench.methods import METHODS, list_methods
from steppe_bench.suites import Instance, Suite

ROWS = "rows.json"


class Row(NamedTuple):
    """One run of a method: what it found, the processor time it took, and what is said of it."""

    instance: str
    method: str
    seed: int
    score: float
    cpu_seconds: float
    sentence: str = ""


def carry_out(
    name: str,
    suite: Suite,
    instances: Sequence[Instance],
    *,
    seeds: int,
    seconds: float,
    methods: Sequence[str] | None,
    report: Callable[[str], None],
    out: Path | None = None,
    command: str = "",
) -> Results:
    """Run a suite and return its results.

    Parameters
    ----------
    name, suite, instances
        What is run.
    seeds
        Repetitions, from seed 0.
    seconds
        Processor time per instance, seed and method.
    methods
        Which of the methods that apply; all by default.
    report
        Called with a line for every number that is there.
    out
        Directory that keeps every number as soon as it is there. Numbers of the same commit, time and suite
        that stand there already are taken, so that what was interrupted goes on.
    command
        What was asked for, to be kept beside the numbers.
    """
    wanted = None if methods is None else [find_name(method, METHODS, "method") for method in methods]
    software = describe_software()
    made_with = {"suite": name, "seconds": seconds, "commit": software.get("commit", "")}
    rows = _read_rows(out, made_with)
    own: list[str] = []
    done = {(row.instance, row.method, row.seed) for row in rows}
    for instance in instances:
        target = instance.make()
        own = ["steppe"] if suite.draw is not None else list_methods(target)
        chosen = [method for method in own if wanted is None or method in wanted]
        for seed in range(seeds):  # methods alternate, so that a busy machine is fair to all
            for method in chosen:
                if (instance.name, method, seed) in done:
                    continue
                search = METHODS[method] if suite.draw is None else suite.draw
                found = search(target, seconds, seed, instance.goal)
                best = _best(suite, [instance.score(target, position) for position in found.positions])
                sentence = suite.certify(target, found.positions[0]) if suite.certify else ""
                rows.append(Row(instance.name, method, seed, best, found.cpu_seconds, sentence))
                report(f"{instance.name}, {method}, seed {seed}: {best:g} in {found.cpu_seconds:.1f} CPU s")
                _write_rows(out, made_with, rows)
    if not rows:
        raise RunError(
            f"None of the methods {', '.join(wanted or [])} is installed and takes what {name!r} has. "
            f"There are {', '.join(own)}."
        )
    asked = {instance.name for instance in instances}
    rows = [
        row
        for row in rows
        if row.instance in asked and row.seed < seeds and (wanted is None or row.method in wanted)
    ]
    return tabulate(name, suite, instances, rows, seeds=seeds, seconds=seconds, command=command)


def _read_rows(out: Path | None, made_with: dict[str, object]) -> list[Row]:
    if out is None or not (out / ROWS).exists():
        return []
    kept = json.loads((out / ROWS).read_text())
    return [Row(**row) for row in kept["rows"]] if kept["made_with"] == made_with else []


def _write_rows(out: Path | None, made_with: dict[str, object], rows: list[Row]) -> None:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        kept = {"made_with": made_with, "rows": [row._asdict() for row in rows]}
        write_atomically(out / ROWS, json.dumps(kept, indent=0).encode())


def tabulate(
    name: str,
    suite: Suite,
    instances: Sequence[Instance],
    rows: Sequence[Row],
    *,
    seeds: int,
    seconds: float,
    command: str = "",
) -> Results:
    """Return the table of scores, published values beside."""
    methods = list(dict.fromkeys(row.method for row in rows))
    sources = list(dict.fromkeys(source for instance in instances for source in instance.published))
    better = "higher" if suite.is_maximized else "lower"
    columns = [
        Column(key="instance", label="instance"),
        Column(key="known", label="best known", unit=suite.unit, digits=4),
        *(Column(key=f"source{i}", label=source, digits=4) for i, source in enumerate(sources)),
        *(Column(key=method, label=method, unit=suite.unit, better=better, digits=4) for method in methods),
        *(Column(key=f"{method}-s", label=f"{method}, time", unit="CPU s", digits=1) for method in methods),
        Column(key="percent", label="steppe of best known", unit="%", digits=2),
    ]
    facts = {}
    for method in methods:
        medians = [
            float(np.median(scores)) for scores in _scores_by_instance(instances, rows, method).values()
        ]
        error = np.std(medians, ddof=1) / np.sqrt(len(medians)) if len(medians) > 1 else 0.0
        facts[f"mean of {method}"] = (
            f"{np.mean(medians):.6g} ± {error:.2g} {suite.unit}, {len(medians)} instances"
        )
    facts |= _count_reached(suite, instances, rows, methods)
    return Results(
        name=name.replace("_", "-"),
        title=suite.summary,
        question=suite.question or f"How good is the best that {seconds:g} s of processor time find?",
        facts=facts,
        tables=[
            Table(
                key="scores",
                title=f"Median over {seeds} seed{'s' if seeds > 1 else ''}, with the lowest and the highest",
                columns=columns,
                rows=[_row(instance, rows, sources, methods) for instance in instances],
            )
        ],
        settings={"seconds": seconds, "seeds": seeds},
        notes=[
            *suite.notes,
            *([] if suite.draw is not None else [TIME_NOTE]),
            *(f"{row.instance}: {row.sentence}" for row in rows if row.sentence and row.seed == 0),
        ],
        provenance=Provenance.of_software(
            describe_software(), command=command or f"steppe bench {name}", seeds=list(range(seeds))
        ),
    )


TIME_NOTE = (
    "Processor time of one thread, compiling not counted, the same for every method; a search ends earlier "
    "where it reaches the best known, and the time says when."
)


def _scores_by_instance(
    instances: Sequence[Instance], rows: Sequence[Row], method: str
) -> dict[str, list[float]]:
    found = {
        instance.name: [row.score for row in rows if (row.instance, row.method) == (instance.name, method)]
        for instance in instances
    }
    return {name: scores for name, scores in found.items() if scores}


def _count_reached(
    suite: Suite, instances: Sequence[Instance], rows: Sequence[Row], methods: Sequence[str]
) -> dict[str, str]:
    """On how many instances the median reaches the best known, where there is one."""
    known = {instance.name: instance.best_known for instance in instances if instance.best_known is not None}
    if not known or suite.draw is not None:
        return {}
    facts, sign = {}, 1 if suite.is_maximized else -1
    for method in methods:
        scores = _scores_by_instance(instances, rows, method)
        tried = [name for name in scores if name in known]
        reached = sum(sign * np.median(scores[name]) >= sign * known[name] - 1e-6 for name in tried)
        facts[f"best known reached by {method}"] = f"{reached} of {len(tried)}"
    return facts


def _row(
    instance: Instance, rows: Sequence[Row], sources: Sequence[str], methods: Sequence[str]
) -> dict[str, Cell]:
    row: dict[str, Cell] = {"instance": instance.name, "known": instance.best_known}
    row |= {f"source{i}": instance.published.get(source) for i, source in enumerate(sources)}
    for method in methods:
        own = [one for one in rows if (one.instance, one.method) == (instance.name, method)]
        if own:
            row[method] = _estimate([one.score for one in own])
            row[f"{method}-s"] = _estimate([one.cpu_seconds for one in own])
            if method == "steppe" and instance.best_known:
                row["percent"] = 100 * float(np.median([one.score for one in own])) / instance.best_known
    return row


def _estimate(values: list[float]) -> Estimate:
    return Estimate(value=float(np.median(values)), low=min(values), high=max(values))


def _best(suite: Suite, values: list[float]) -> float:
    return max(values) if suite.is_maximized else min(values)
