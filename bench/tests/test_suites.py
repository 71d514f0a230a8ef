"""Suites run their instances by every method, and put published values beside."""

import json

import numpy as np
import pytest

from steppe import targets
from steppe.cli.main import app
from steppe.errors import RunError
from steppe_bench.engine import Row, carry_out, tabulate
from steppe_bench.methods import METHODS, list_methods
from steppe_bench.sampling import Uniformity, enumerate_solutions
from steppe_bench.suites import SUITES, Instance, Suite, list_random_graphs

SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3)]


def small_suite():
    instance = Instance(
        "square",
        lambda: targets.max_cut(SQUARE),
        lambda target, position: float(target.cut_value(position)),
        4.0,
        {"a paper": 3.0},
        goal=4.0,
    )
    return Suite("A square", "cut", True, 0.05, lambda: [instance], 1, ("Drawn by hand.",))


@pytest.mark.slow
def test_every_method_finds_the_best_cut_of_a_square_and_the_table_says_so():
    suite, lines = small_suite(), []
    methods = [method for method in list_methods(targets.max_cut(SQUARE)) if method != "qqa"]
    results = carry_out(
        "square", suite, suite.list_instances(), seeds=1, seconds=0.05, methods=methods, report=lines.append
    )
    row = results.tables[0].rows[0]
    assert row["known"] == 4
    assert row["source0"] == 3
    assert row["percent"] == 100
    for method in methods:
        assert row[method].value == 4
    assert len(lines) == len(methods)
    assert "Drawn by hand." in results.notes


def test_medians_and_ends_are_those_of_the_seeds():
    suite = small_suite()
    results = tabulate(
        "x",
        suite,
        suite.list_instances(),
        [Row("square", "steppe", seed, score, 0.5) for seed, score in enumerate([3.0, 4.0, 4.0])],
        seeds=3,
        seconds=1,
    )
    cell = results.tables[0].rows[0]["steppe"]
    assert (cell.value, cell.low, cell.high) == (4, 3, 4)
    assert results.facts["mean of steppe"] == "4 ± 0 cut, 1 instances"
    assert results.facts["best known reached by steppe"] == "1 of 1"


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
    assert set(METHODS) == {"steppe", "isco", "away", "dwave", "qqa", "cpsat", "tabu"}


def test_a_suite_writes_results_and_a_page(tmp_path, monkeypatch):
    from steppe_bench.command import bench

    monkeypatch.setitem(SUITES, "square", small_suite())
    bench("square", seeds=1, only="square", methods="steppe", out=tmp_path)
    results = json.loads((tmp_path / "square" / "results.json").read_text())
    assert results["title"] == "A square"
    command = results["provenance"]["command"]
    assert command == "steppe bench square --seeds 1 --only square --methods steppe"
    assert (tmp_path / "report.html").exists()
    with pytest.raises(RunError, match=r"cpsat is installed and takes .* There are steppe, isco"):
        bench("square", methods="cpsat", out=tmp_path / "none")


@pytest.mark.slow
def test_a_search_led_away_finds_the_clique_and_stops_there():
    target = targets.clique(SQUARE)
    found = METHODS["away"](target, 5.0, 0, 2.0)
    assert found.positions.sum() == 2
    assert target.is_feasible(found.positions[0])
    assert found.cpu_seconds < 5
    assert METHODS["away"](target, 0.3, 0, None).cpu_seconds >= 0.3


@pytest.mark.slow
def test_what_was_interrupted_goes_on_and_other_times_are_not_mixed(tmp_path):
    suite, lines = small_suite(), []
    arguments = {"methods": ["tabu"], "report": lines.append, "out": tmp_path}
    carry_out("square", suite, suite.list_instances(), seeds=1, seconds=0.05, **arguments)
    results = carry_out("square", suite, suite.list_instances(), seeds=2, seconds=0.05, **arguments)
    assert [line.split(":")[0] for line in lines] == ["square, tabu, seed 0", "square, tabu, seed 1"]
    assert results.tables[0].rows[0]["tabu"].value == 4
    carry_out("square", suite, suite.list_instances(), seeds=1, seconds=0.06, **arguments)
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("make", "best"),
    [
        (lambda: targets.max_cut(SQUARE), 4),
        (lambda: targets.max_cut(SQUARE, weights=[2.0, -1.0, 3.0, 1.0]), 5),
        (lambda: targets.independent_set([*SQUARE, (3, 4)], [1.0, 1.0, 1.0, 1.0, 2.5]), 4.5),
    ],
)
@pytest.mark.slow
def test_tabu_search_finds_the_best_of_every_pairwise_target(make, best):
    target = make()
    found = METHODS["tabu"](target, 0.5, 0, float(best) - 1e-3)
    assert float(target.score(found.positions[0])) == pytest.approx(best)


def test_cpsat_proves_the_best_of_formulas_sets_and_colourings():
    pytest.importorskip("ortools")
    formula = targets.cnf([[1, 2], [-1, 2], [1, -2], [-1, -2]])
    cases = [
        (formula, 3),
        (targets.independent_set([*SQUARE, (3, 4)]), 3),
        (targets.vertex_cover([*SQUARE, (3, 4)]), 2),
        (targets.coloring([(0, 1), (1, 2), (0, 2)], 2), 2),
    ]
    for target, best in cases:
        found = METHODS["cpsat"](target, 5.0, 0, None)
        assert found.is_proved
        assert float(target.score(found.positions[0])) == best


def test_solutions_are_enumerated_and_draws_that_favour_one_are_not_certified():
    formula = targets.cnf([[1, 2, 3], [-1, -2]])
    numbers = enumerate_solutions(formula)
    states = (numbers[:, None] >> np.arange(3)) & 1
    assert all(formula.is_feasible(state.astype(float)) for state in states)
    assert len(numbers) == 5
    draws = np.random.default_rng(0).integers(0, 5, (8, 500))
    fair = Uniformity(formula, states[draws].astype(float))
    assert fair.p_value > 1e-3
    assert "cannot be told from uniform draws among the 5 solutions" in fair.certificate
    bent = Uniformity(formula, states[np.minimum(draws, 3)].astype(float))
    assert bent.p_value < 1e-6
    assert "are NOT" in bent.certificate
