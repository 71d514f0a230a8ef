"""View of results for the templates, as plain strings: decisions about wording and order are made here."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steppe.report.cells import full, interval, is_number, is_numeric, plain
from steppe.report.terminal import OUTCOME_MARKS
from steppe.results import Cell, Column, Estimate, Figure, Outcome, Provenance, Results, Table, Verdict

EXPLORED = "bernoulli"
# Texts of so many characters stay on one line in a table; tables scroll.
LONGEST_LINE = 28
OUTCOME_CLASSES: dict[Outcome, str] = {
    "holds": "holds",
    "does not hold": "fails",
    "not distinguishable": "open",
}
PROTOCOLS = {
    "published": ("as published", "The authors' settings as they ran them, with their definitions."),
    "sound": ("sound protocol", "Many seeds, intervals, equal budgets, exact values beside them."),
}
SCALES = {
    "quick": ("quick scale", "A small version that runs in minutes."),
    "full": ("full scale", "The size of the original experiment."),
}


class Picture(NamedTuple):
    """A figure as a data URI, or the sentence that says why it cannot be shown."""

    uri: str | None
    problem: str = ""


class Section(NamedTuple):
    """Results and their pictures, by the key of the figure."""

    results: Results
    pictures: Mapping[str, Picture]


class Gathered(NamedTuple):
    """Everything a page shows, and a sentence for every file that it cannot show."""

    sections: list[Section]
    problems: list[str]


class CellView(NamedTuple):
    """A cell: its text, its interval, whether it is a number, and whether it needs room to wrap."""

    text: str
    interval: str
    is_number: bool
    length: str


class ColumnView(NamedTuple):
    """A heading, and whether the cells below are numbers."""

    label: str
    unit: str
    better: str | None
    is_number: bool


class RowView(NamedTuple):
    """Cells of a row, with its number in the table as it was made."""

    number: int
    is_reference: bool
    is_marked: bool
    cells: list[CellView]


class TableView(NamedTuple):
    """A table with the id of its place in the page."""

    id: str
    title: str
    columns: list[ColumnView]
    rows: list[RowView]
    has_reference: bool
    notes: list[str]


class VerdictView(NamedTuple):
    """A judged claim."""

    claim: str
    outcome: str
    kind: str
    mark: str
    sentence: str
    value: str
    interval: str


class FigureView(NamedTuple):
    """A figure with its picture, or why there is none."""

    title: str
    caption: str
    alternative: str
    uri: str | None
    problem: str


class SectionView(NamedTuple):
    """One section of a page."""

    id: str
    title: str
    question: str
    tags: list[tuple[str, str]]
    facts: list[tuple[str, str]]
    verdicts: list[VerdictView]
    tables: list[TableView]
    figures: list[FigureView]
    notes: list[str]
    settings: list[tuple[str, str]]
    provenance: list[tuple[str, str]]
    is_explored: bool


class PageView(NamedTuple):
    """Everything the template of a page asks for."""

    title: str
    sections: list[SectionView]
    problems: list[str]
    tally: str
    has_verdicts: bool
    has_intervals: bool
    is_explored: bool


def view_page(gathered: Gathered) -> PageView:
    """Look at everything gathered as one page."""
    names = [section.results.name for section in gathered.sections]
    explored = names.index(EXPLORED) if EXPLORED in names else None  # once, however many protocols there are
    sections = [
        view_section(place, section, is_explored=place == explored)
        for place, section in enumerate(gathered.sections)
    ]
    verdicts = [verdict for section in gathered.sections for verdict in section.results.verdicts]
    return PageView(
        title=sections[0].title if len(sections) == 1 else "What came out",
        sections=sections,
        problems=gathered.problems,
        tally=tally(verdicts),
        has_verdicts=bool(verdicts),
        has_intervals=any(verdict.estimate and interval(verdict.estimate) for verdict in verdicts),
        is_explored=explored is not None,
    )


def view_section(place: int, section: Section, *, is_explored: bool = False) -> SectionView:
    """Look at one results file with its pictures, at a place of a page."""
    results, name = section.results, f"s{place + 1}"
    return SectionView(
        id=name,
        title=results.title,
        question=results.question,
        tags=[*_list_tags(results)],
        facts=[*results.facts.items()],
        verdicts=[_view_verdict(verdict) for verdict in results.verdicts],
        tables=[_view_table(f"{name}-t{i}", table) for i, table in enumerate(results.tables, start=1)],
        figures=[_view_figure(section, figure) for figure in results.figures],
        notes=results.notes,
        settings=[(label, full(value)) for label, value in results.settings.items()],
        provenance=[*_list_provenance(results.provenance)],
        is_explored=is_explored,
    )


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


def list_raw_tables(gathered: Gathered) -> list[dict[str, list[str] | list[list[object]]]]:
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


def _list_tags(results: Results) -> Iterator[tuple[str, str]]:
    if results.protocol is not None:
        yield PROTOCOLS[results.protocol]
    if results.scale is not None:
        yield SCALES[results.scale]


def _view_verdict(verdict: Verdict) -> VerdictView:
    estimate = verdict.estimate
    return VerdictView(
        claim=verdict.claim,
        outcome=verdict.outcome,
        kind=OUTCOME_CLASSES[verdict.outcome],
        mark=OUTCOME_MARKS[verdict.outcome],
        sentence=verdict.sentence,
        value="" if estimate is None else plain(estimate),
        interval="" if estimate is None else interval(estimate),
    )


def _view_table(place: str, table: Table) -> TableView:
    return TableView(
        id=place,
        title=table.title,
        columns=[
            ColumnView(c.label, c.unit, c.better, is_numeric([row.get(c.key) for row in table.rows]))
            for c in table.columns
        ],
        rows=[
            RowView(
                number,
                number in table.reference_rows,
                number in table.marked_rows,
                [_view_cell(row.get(column.key), column) for column in table.columns],
            )
            for number, row in enumerate(table.rows)
        ],
        has_reference=any(0 <= number < len(table.rows) for number in table.reference_rows),
        notes=table.notes,
    )


def _view_cell(cell: Cell, column: Column) -> CellView:
    ends = interval(cell, column.digits) if isinstance(cell, Estimate) else ""
    text = plain(cell, column.digits)
    return CellView(text, ends, is_number(cell), "short" if len(text) <= LONGEST_LINE else "long")


def _view_figure(section: Section, figure: Figure) -> FigureView:
    picture = section.pictures.get(figure.key, Picture(None, "This figure was not drawn."))
    return FigureView(_end(figure.title), figure.caption, figure.alternative, picture.uri, picture.problem)


def _end(sentence: str) -> str:
    """A title that runs into a caption ends with a mark."""
    return f"{sentence}." if sentence[-1:].isalnum() or sentence[-1:] in ")%" else sentence


def _list_provenance(provenance: Provenance) -> Iterator[tuple[str, str]]:
    yield "command", provenance.command
    if provenance.started:
        yield "started", provenance.started
    if provenance.seconds:
        yield "took", _write_duration(provenance.seconds)
    if provenance.model_evaluations is not None:
        yield "model evaluations", plain(provenance.model_evaluations)
    yield "device", provenance.device
    if provenance.seeds:
        yield "seeds", _write_seeds(provenance.seeds)
    yield "versions", ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    yield from ((f"data: {name}", digest) for name, digest in provenance.data.items())


def _write_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _write_seeds(seeds: Sequence[int]) -> str:
    is_range = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if is_range else ", ".join(map(str, seeds))
