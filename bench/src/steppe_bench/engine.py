"""Carry out a suite: every method on every instance with every seed, and the table of it."""

from collections.abc import Callable, Sequence

import numpy as np

from steppe.results import Cell, Column, Estimate, Provenance, Results, Table
from steppe.run.storage.identity import describe_software
from steppe.validation import find_name
from steppe_bench.methods import METHODS, draw, list_methods
from steppe_bench.suites import Instance, Suite

Scores = dict[str, dict[str, list[float]]]


def carry_out(
    name: str,
    suite: Suite,
    instances: Sequence[Instance],
    *,
    seeds: int,
    seconds: float,
    methods: Sequence[str] | None,
    report: Callable[[str], None],
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
    """
    scores: Scores = {}
    for instance in instances:
        target = instance.make()
        wanted = ["steppe"] if suite.samples else list_methods(target)
        if methods is not None:
            wanted = [
                method for method in wanted if method in [find_name(m, METHODS, "method") for m in methods]
            ]
        scores[instance.name] = {method: [] for method in wanted}
        for seed in range(seeds):  # methods alternate, so that a busy machine is fair to all
            for method in wanted:
                search = draw if suite.samples else METHODS[method]
                found = search(target, seconds, seed)
                best = _best(suite, [instance.score(target, position) for position in found.positions])
                scores[instance.name][method].append(best)
                report(f"{instance.name}, {method}, seed {seed}: {best:g} in {found.cpu_seconds:.1f} CPU s")
    return tabulate(name, suite, instances, scores, seeds=seeds, seconds=seconds)


def tabulate(
    name: str, suite: Suite, instances: Sequence[Instance], scores: Scores, *, seeds: int, seconds: float
) -> Results:
    """Return the table of scores, published values beside."""
    methods = list(dict.fromkeys(method for row in scores.values() for method in row))
    sources = list(dict.fromkeys(source for instance in instances for source in instance.published))
    better = "higher" if suite.is_maximized else "lower"
    columns = [
        Column(key="instance", label="instance"),
        Column(key="known", label="best known", unit=suite.unit, digits=4),
        *(Column(key=f"source{i}", label=source, digits=4) for i, source in enumerate(sources)),
        *(Column(key=method, label=method, unit=suite.unit, better=better, digits=4) for method in methods),
        Column(key="percent", label="steppe of best known", unit="%", digits=2),
    ]
    rows = [_row(suite, instance, scores[instance.name], sources, methods) for instance in instances]
    means = {
        method: float(np.mean([np.median(row[method]) for row in scores.values() if method in row]))
        for method in methods
    }
    return Results(
        name=name.replace("_", "-"),
        title=suite.summary,
        question=(
            "How far are draws from the distribution they should have?"
            if suite.samples
            else f"How good is the best that {seconds:g} s of processor time find?"
        ),
        facts={f"mean of {method}": f"{mean:.6g} {suite.unit}" for method, mean in means.items()},
        tables=[
            Table(
                key="scores",
                title=f"Median over {seeds} seeds, with the lowest and the highest",
                columns=columns,
                rows=rows,
            )
        ],
        settings={"seconds": seconds, "seeds": seeds},
        notes=[
            *suite.notes,
            "Processor time of one thread, compiling not counted, the same for every method.",
        ],
        provenance=Provenance.of_software(
            describe_software(), command=f"steppe bench {name}", seeds=list(range(seeds))
        ),
    )


def _row(
    suite: Suite, instance: Instance, scores: dict[str, list[float]], sources: list[str], methods: list[str]
) -> dict[str, Cell]:
    row: dict[str, Cell] = {"instance": instance.name, "known": instance.best_known}
    row |= {f"source{i}": instance.published.get(source) for i, source in enumerate(sources)}
    for method in methods:
        values = scores.get(method)
        if values:
            row[method] = Estimate(value=float(np.median(values)), low=min(values), high=max(values))
    ours = scores.get("steppe")
    if ours and instance.best_known:
        row["percent"] = 100 * float(np.median(ours)) / instance.best_known
    return row


def _best(suite: Suite, values: list[float]) -> float:
    return max(values) if suite.is_maximized else min(values)
