"""One renderer for the terminal: whatever has results is shown by it, and no text of theirs steers it."""

import io

import pytest
from rich.console import Console

from hostile import HOSTILE, filled
from page_examples import PROVENANCE, bernoulli, digits
from report.test_page import Skeleton
from steppe.report.page.render import render_fragment
from steppe.report.terminal import render, to_text
from steppe.results import Column, Estimate, Results, Table


def with_table(**changes):
    table = {
        "key": "numbers",
        "title": "Numbers",
        "columns": [Column(key="name", label="name"), Column(key="value", label="value", unit="nats")],
        "rows": [{"name": f"row {number}", "value": 1000.5 * number} for number in range(30)],
        **changes,
    }
    return Results(name="some", title="Some", question="Why?", tables=[Table(**table)], provenance=PROVENANCE)


@pytest.mark.parametrize("results", [bernoulli(), digits()], ids=["bernoulli", "digits"])
def test_title_tables_verdicts_and_notes_of_any_results_are_shown(results):
    text = to_text(results)
    words = " ".join(text.split())
    assert results.title in words
    for verdict in results.verdicts:
        assert f"{verdict.outcome}: {verdict.claim} {verdict.sentence}" in words
    for note in [*results.notes, *(note for table in results.tables for note in table.notes)]:
        assert note in words
    for table in results.tables:
        assert all(column.label in text for column in table.columns)


def test_intervals_stand_beside_their_numbers_in_the_same_decimals_as_on_the_page():
    cell = Estimate(value=0.14482, low=0.1411, high=0.14861)
    results = with_table(rows=[{"name": "flat", "value": cell}])
    assert "0.145 [0.141, 0.149]" in to_text(results)
    assert '0.145 <span class="interval">[0.141, 0.149]</span>' in (render_fragment(results) or "")


def test_numbers_can_be_copied_from_a_terminal():
    assert "29014.5" in to_text(with_table())


def test_tables_of_details_show_their_marked_rows_alone():
    assert "row 0" not in to_text(with_table(is_detail=True))
    text = to_text(with_table(is_detail=True, marked_rows=[4, 7]))
    assert "row 4" in text
    assert "row 5" not in text
    assert "28 more" in text


def test_wide_tables_are_not_cut_in_a_file():
    columns = [Column(key=f"c{number}", label=f"a long heading of column {number}") for number in range(5)]
    text = to_text(with_table(columns=columns, rows=[{column.key: 1.0 for column in columns}]))
    assert all(column.label in text for column in columns)


def test_no_text_steers_the_terminal_or_starts_anything_in_a_notebook():
    tags = Skeleton(render_fragment(filled("text"))).tags
    for text in HOSTILE:
        results = filled(text)
        written = io.StringIO()
        Console(file=written, width=400, color_system=None).print(render(results))
        for shown in (written.getvalue(), to_text(results)):
            assert "\x1b" not in shown
            assert "\x00" not in shown
        assert Skeleton(render_fragment(results)).tags == tags
