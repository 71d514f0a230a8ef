"""What the template shows, as plain strings: every decision about wording and order is made here."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from steppe.report.page.gather import Gathered, Picture, Section
from steppe.report.page.numbers import full, interval, plain
from steppe.results import Cell, Column, Estimate, Figure, Outcome, Provenance, Results, Table, Verdict

EXPLORED = "bernoulli"
# Texts of so many characters stay on one line in a table; tables scroll.
LONGEST_LINE = 28
OUTCOME_CLASSES: dict[Outcome, str] = {
    "holds": "holds",
    "does not hold": "fails",
    "not distinguishable": "open",
}
OUTCOME_MARKS: dict[Outcome, str] = {"holds": "✓", "does not hold": "✗", "not distinguishable": "≈"}
PROTOCOLS = {
    "published": ("as published", "The authors' settings as they ran them, with their definitions."),
    "sound": ("sound protocol", "Many seeds, intervals, equal budgets, exact values beside them."),
}
SCALES = {
    "quick": ("quick scale", "A small version that runs in minutes."),
    "full": ("full scale", "The size of the original experiment."),
}


class Shown(NamedTuple):
    """A cell: its text, its interval, whether it is a number, and whether it needs room to wrap."""

    text: str
    interval: str
    is_number: bool
    length: str


def page_view(gathered: Gathered) -> dict[str, Any]:
    """Everything the template asks for."""
    sections = [_section(number, section) for number, section in enumerate(gathered.sections, start=1)]
    names = [section.results.name for section in gathered.sections]
    if EXPLORED in names:  # once, however many protocols of it there are
        sections[names.index(EXPLORED)]["is_explored"] = True
    titles = [section["title"] for section in sections]
    verdicts = [verdict for section in gathered.sections for verdict in section.results.verdicts]
    return {
        "title": titles[0] if len(titles) == 1 else "What came out",
        "sections": sections,
        "problems": gathered.problems,
        "tally": tally(verdicts),
        "has_verdicts": bool(verdicts),
        "has_intervals": any(verdict.estimate and interval(verdict.estimate) for verdict in verdicts),
        "data": {"tables": [table for section in gathered.sections for table in _raw_tables(section)]},
    }


def tally(verdicts: Sequence[Verdict]) -> str:
    """`Of 5 claims, 2 hold, 2 do not hold and 1 cannot be told either way.`; nothing for a single one."""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in OUTCOME_CLASSES}
    words = {
        "holds": ("holds", "hold"),
        "does not hold": ("does not hold", "do not hold"),
        "not distinguishable": ("cannot be told either way", "cannot be told either way"),
    }
    parts = [f"{count} {words[outcome][count != 1]}" for outcome, count in counts.items() if count]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
    return f"Of {len(verdicts)} claims, {listed}." if len(verdicts) > 1 else ""


def _section(number: int, section: Section) -> dict[str, Any]:
    results, place = section.results, f"s{number}"
    return {
        "id": place,
        "title": results.title,
        "question": results.question,
        "tags": [*_tags(results)],
        "verdicts": [_verdict(verdict) for verdict in results.verdicts],
        "tables": [_table(f"{place}-t{i}", table) for i, table in enumerate(results.tables, start=1)],
        "figures": [_figure(section, i, figure) for i, figure in enumerate(results.figures, start=1)],
        "notes": results.notes,
        "settings": [(name, full(value)) for name, value in results.settings.items()],
        "provenance": [*_provenance(results.provenance)],
        "is_explored": False,
    }


def _tags(results: Results) -> Iterator[tuple[str, str]]:
    if results.protocol is not None:
        yield PROTOCOLS[results.protocol]
    if results.scale is not None:
        yield SCALES[results.scale]


def _verdict(verdict: Verdict) -> dict[str, str]:
    estimate = verdict.estimate
    return {
        "claim": verdict.claim,
        "outcome": verdict.outcome,
        "kind": OUTCOME_CLASSES[verdict.outcome],
        "mark": OUTCOME_MARKS[verdict.outcome],
        "sentence": verdict.sentence,
        "value": "" if estimate is None else plain(estimate),
        "interval": "" if estimate is None else interval(estimate),
    }


def _table(place: str, table: Table) -> dict[str, Any]:
    return {
        "id": place,
        "title": table.title,
        "columns": [
            {**column.model_dump(), "is_number": _is_numeric(table, column)} for column in table.columns
        ],
        "rows": [
            {
                "number": number,
                "is_reference": number in table.reference_rows,
                "cells": [_shown(row.get(column.key), column) for column in table.columns],
            }
            for number, row in enumerate(table.rows)
        ],
        "has_reference": any(0 <= number < len(table.rows) for number in table.reference_rows),
        "notes": table.notes,
    }


def _is_numeric(table: Table, column: Column) -> bool:
    cells = [row.get(column.key) for row in table.rows]
    return any(_is_number(cell) for cell in cells) and not any(isinstance(cell, str) for cell in cells)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, Estimate | int | float) and not isinstance(cell, bool)


def _shown(cell: Cell, column: Column) -> Shown:
    ends = interval(cell, column.digits) if isinstance(cell, Estimate) else ""
    text = plain(cell, column.digits)
    return Shown(text, ends, _is_number(cell), "short" if len(text) <= LONGEST_LINE else "long")


def _figure(section: Section, number: int, figure: Figure) -> dict[str, Any]:
    missing = Picture(None, "This figure was not drawn.")
    picture = section.pictures.get(figure.key, missing)
    return {
        **figure.model_dump(),
        "title": _ended(figure.title),
        "number": number,
        "uri": picture.uri,
        "problem": picture.problem,
    }


def _ended(sentence: str) -> str:
    """A title that runs into a caption ends with a mark."""
    return f"{sentence}." if sentence[-1:].isalnum() or sentence[-1:] in ")%" else sentence


def _provenance(provenance: Provenance) -> Iterator[tuple[str, str]]:
    yield "command", provenance.command
    if provenance.started:
        yield "started", provenance.started
    if provenance.seconds:
        yield "took", _duration(provenance.seconds)
    if provenance.model_evaluations is not None:
        yield "model evaluations", plain(provenance.model_evaluations)
    yield "device", provenance.device
    if provenance.seeds:
        yield "seeds", _seeds(provenance.seeds)
    yield "versions", ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    yield from ((f"data: {name}", digest) for name, digest in provenance.data.items())


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _seeds(seeds: Sequence[int]) -> str:
    is_range = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if is_range else ", ".join(map(str, seeds))


def _raw_tables(section: Section) -> Iterator[dict[str, Any]]:
    """Unrounded cells, for sorting and copying."""
    for table in section.results.tables:
        heads = [f"{c.label} ({c.unit})" if c.unit else c.label for c in table.columns]
        cells = [[_raw(row.get(column.key)) for column in table.columns] for row in table.rows]
        yield {"heads": heads, "cells": cells}


def _raw(cell: Cell) -> Any:
    return [cell.value, cell.low, cell.high] if isinstance(cell, Estimate) else cell
