"""Tables made of tidy rows: estimates over seeds, and the paper's numbers beside them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from steppe.intervals import estimate_mean
from steppe.results import Cell, Column, Results, Table
from steppe_edlp.experiment import Experiment, TableSpec
from steppe_edlp.request import Found, Row
from steppe_edlp.wording import describe_recipe, is_said, say

REFERENCE = "is_reference"


def complete_rows(experiment: Experiment, found: Found) -> dict[str, list[Row]]:
    """Add the settings of the samplers and the paper's numbers to the rows they belong to."""
    settings = {name: describe_recipe(recipe) for name, recipe in found.recipes.items()}
    by = experiment.published_by
    printed: dict[tuple[Any, ...], Row] = {
        tuple(row[key] for key in by): {f"{key}_paper": row[key] for key in row if key not in by}
        for row in experiment.published
    }

    def complete(row: Row) -> Row:
        known = {"settings": settings[row["sampler"]]} if settings.get(row.get("sampler", "")) else {}
        return {**printed.get(tuple(row.get(key) for key in by), {}), **known, **row}

    return {key: [complete(row) for row in rows] for key, rows in found.rows.items()}


def make_tables(
    specs: Mapping[str, TableSpec],
    rows: Mapping[str, Sequence[Row]],
    facts: Mapping[str, Any],
    conditions: set[str],
) -> Iterator[Table]:
    """Lay out every table that has rows; those without a cell for its first column are for claims alone.

    Parameters
    ----------
    specs
        Tables by key.
    rows
        Rows by table.
    facts, conditions
        What texts are made of.
    """
    for key, spec in specs.items():
        known = [row for row in rows.get(key, []) if spec.columns[0].key in row]
        if is_said(spec.when, conditions):
            for value in dict.fromkeys(row.get(spec.split) for row in known):
                own = [row for row in known if row.get(spec.split) == value]
                yield _make_table(_key_of(key, value), spec, own, {**facts, "row": own[0]}, conditions)


def find_rows(results: Results, key: str) -> list[dict[str, Cell]]:
    """Rows of a table that may have been split, those that are no reference."""
    return [
        row
        for table in results.tables
        if table.key == key or table.key.startswith(f"{key}--")
        for number, row in enumerate(table.rows)
        if number not in table.reference_rows
    ]


def _key_of(key: str, value: str | None) -> str:
    return key if value is None else f"{key}--{re.sub('[^a-z0-9]+', '-', value.lower())}"


def _make_table(
    key: str, spec: TableSpec, rows: Sequence[Row], facts: Mapping[str, Any], conditions: set[str]
) -> Table:
    columns = [
        Column(**column.model_dump(exclude={"when"}))
        for column in spec.columns
        if is_said(column.when, conditions) and any(column.key in row for row in rows)
    ]
    shown = {spec.split, *(column.key for column in columns)}
    notes = [say(note, facts, conditions) for note in spec.notes]
    return Table(
        key=key,
        title=say(spec.title, facts, conditions),
        columns=[column.model_copy(update={"label": say(column.label, facts, set())}) for column in columns],
        rows=[{name: make_cell(value) for name, value in row.items() if name in shown} for row in rows],
        reference_rows=[number for number, row in enumerate(rows) if row.get(REFERENCE)],
        notes=[note for note in notes if note],
    )


def make_cell(value: Any) -> Cell:
    """An array as the estimate of its mean; NumPy's numbers as Python's."""
    if isinstance(value, np.ndarray):
        return estimate_mean(value)
    return value.item() if isinstance(value, np.generic) else value
