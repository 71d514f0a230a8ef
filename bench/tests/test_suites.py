"""Suites run their instances by every method, and put published values beside."""

import json

import numpy as np
import pytest

from steppe import targets
from steppe.cli.main import app
from steppe.errors import RunError
from steppe_bench.engine import carry_out, tabulate
from steppe_bench.methods import METHODS, list_methods
from steppe_bench.suites import SUITES, Instance, Suite, list_random_graphs

SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3)]


def small_suite():
    instance = Instance(
        "square",
        lambda: targets.max_cut(SQUARE),
        lambda target, position: float(target.cut_value(position)),
        4.0,
        {"a paper": 3.0},
    )
    return Suite("A square", "cut", True, 0.05, lambda: [instance], 1, ("Drawn by hand.",))


def test_every_method_finds_the_best_cut_of_a_square_and_the_table_says_so():
    suite, lines = small_suite(), []
    results = carry_out(
        "square", suite, suite.list_instances(), seeds=1, seconds=0.05, methods=None, report=lines.append
    )
    row = results.tables[0].rows[0]
    assert row["known"] == 4
    assert row["source0"] == 3
    assert row["percent"] == 100
    for method in list_methods(targets.max_cut(SQUARE)):
        assert row[method].value == 4
    assert len(lines) == len(list_methods(targets.max_cut(SQUARE)))
    assert "Drawn by hand." in results.notes


def test_medians_and_ends_are_those_of_the_seeds():
    suite = small_suite()
    results = tabulate(
        "x", suite, suite.list_instances(), {"square": {"steppe": [3.0, 4.0, 4.0]}}, seeds=3, seconds=1
    )
    cell = results.tables[0].rows[0]["steppe"]
    assert (cell.value, cell.low, cell.high) == (4, 3, 4)
    assert results.facts["mean of steppe"] == "4 cut"


def test_generated_instances_are_the_same_every_time():
    first, second = (list_random_graphs(30, 40, 0.15, range(1))[0] for _ in range(2))
    assert first.name == second.name
    np.testing.assert_array_equal(first.make().interactions.ends, second.make().interactions.ends)


def test_the_list_names_every_suite_and_unknown_ones_are_refused_with_near_names(capsys):
    app(["bench", "list"], exit_on_error=False, print_error=False, result_action="return_value")
    printed = capsys.readouterr().out
    assert all(name in printed for name in SUITES)
    from steppe_bench.command import bench

    with pytest.raises(RunError, match="Did you mean gset-small"):
        bench("gset-smal")
    with pytest.raises(RunError, match="seconds"):
        bench("gset-small", seconds=0.0)
    assert set(METHODS) == {"steppe", "dwave"}


def test_a_suite_writes_results_and_a_page(tmp_path, monkeypatch):
    from steppe_bench.command import bench

    monkeypatch.setitem(SUITES, "square", small_suite())
    bench("square", seeds=1, methods="steppe", out=tmp_path)
    assert json.loads((tmp_path / "square" / "results.json").read_text())["title"] == "A square"
    assert (tmp_path / "report.html").exists()
