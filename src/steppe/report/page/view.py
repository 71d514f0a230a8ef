"""What a page shows, and what the templates need to know beside the results: words, marks, order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steppe.report.cells import format_cell, is_numeric
from steppe.results import Cell, Column, Estimate, Outcome, Provenance, Results, Table, Verdict

EXPLORED = "bernoulli"
# Texts of so many characters stay on one line in a table; tables scroll.
LONGEST_LINE = 28
OUTCOME_CLASSES: dict[Outcome, str] = {
    "holds": "holds",
    "does not hold": "fails",
    "not distinguishable": "open",
    "shown": "holds",
    "there, maybe negligible": "slight",
    "negligible": "none",
    "opposite": "fails",
    "undecided": "open",
}
TAGS = {
    "published": ("as published", "The authors' settings as they ran them, with their definitions."),
    "sound": ("sound protocol", "Many seeds, intervals, equal budgets, exact values beside them."),
    "quick": ("quick scale", "A small version that runs in minutes."),
    "full": ("full scale", "The size of the original experiment."),
}


class Picture(NamedTuple):
    """A figure as a data URI, or the sentence that says why it cannot be shown."""

    uri: str | None
    problem: str = ""


MISSING = Picture(None, "This figure was not drawn.")


class Section(NamedTuple):
    """Results and their pictures, by the key of the figure."""

    results: Results
    pictures: Mapping[str, Picture]


class Gathered(NamedTuple):
    """Everything a page shows, and a sentence for every file that it cannot show."""

    sections: list[Section]
    problems: list[str]


def find_explored(gathered: Gathered) -> str | None:
    """Id of the section that gets the sliders: one, however many protocols of it there are."""
    names = [section.results.name for section in gathered.sections]
    return f"s{names.index(EXPLORED) + 1}" if EXPLORED in names else None


def write_tally(verdicts: Sequence[Verdict]) -> str:
    """`Of 5 claims, 2 hold, 2 do not hold and 1 cannot be told either way.`; nothing for a single one."""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in OUTCOME_CLASSES}
    words = {
        "holds": ("holds", "hold"),
        "does not hold": ("does not hold", "do not hold"),
        "not distinguishable": ("cannot be told either way", "cannot be told either way"),
        "shown": ("is shown", "are shown"),
        "there, maybe negligible": ("is there, maybe negligible", "are there, maybe negligible"),
        "negligible": ("is negligible", "are negligible"),
        "opposite": ("comes out opposite", "come out opposite"),
        "undecided": ("is undecided", "are undecided"),
    }
    parts = [f"{count} {words[outcome][count != 1]}" for outcome, count in counts.items() if count]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
    return f"Of {len(verdicts)} claims, {listed}." if len(verdicts) > 1 else ""


def list_raw_tables(gathered: Gathered) -> list[dict[str, object]]:
    """Headings and unrounded cells of all tables, for sorting and copying."""
    return [
        {
            "heads": [f"{c.label} ({c.unit})" if c.unit else c.label for c in table.columns],
            "cells": [[_to_raw(row.get(column.key)) for column in table.columns] for row in table.rows],
        }
        for section in gathered.sections
        for table in section.results.tables
    ]


def _to_raw(cell: Cell) -> object:
    return [cell.value, cell.low, cell.high] if isinstance(cell, Estimate) else cell


def list_tags(results: Results) -> list[tuple[str, str]]:
    """What kind of experiment it is, in a word and in a sentence."""
    return [TAGS[word] for word in (results.protocol, results.scale) if word is not None]


def has_numbers(table: Table, column: Column) -> bool:
    """Whether a column is one of numbers."""
    return is_numeric([row.get(column.key) for row in table.rows])


def find_kept(table: Table) -> str | None:
    """Key of the column that stays in sight in a wide table: E[U], which says what the others cost."""
    return next((column.key for column in table.columns if column.label == "E[U]"), None)


def class_cell(text: str) -> str:
    """Class of a cell of text: whether it needs room to wrap."""
    return "short" if len(text) <= LONGEST_LINE else "long"


def end_sentence(sentence: str) -> str:
    """A title that runs into a caption ends with a mark."""
    return f"{sentence}." if sentence[-1:].isalnum() or sentence[-1:] in ")%" else sentence


def list_provenance(provenance: Provenance) -> Iterator[tuple[str, str]]:
    """Where the numbers come from, line by line."""
    yield "command", provenance.command
    if provenance.started:
        yield "started", provenance.started
    if provenance.seconds:
        yield "took", _write_duration(provenance.seconds)
    if provenance.model_evaluations is not None:
        yield "model evaluations", format_cell(provenance.model_evaluations)
    yield "device", provenance.device
    if provenance.cpu:
        yield "processor", provenance.cpu
    if provenance.seeds:
        yield "seeds", _write_seeds(provenance.seeds)
    if provenance.commit:
        yield "commit", provenance.commit
    yield "versions", ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    yield from ((f"data: {name}", digest) for name, digest in provenance.data.items())


def _write_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _write_seeds(seeds: Sequence[int]) -> str:
    is_range = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if is_range else ", ".join(map(str, seeds))
