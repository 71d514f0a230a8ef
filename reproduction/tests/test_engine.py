"""The engine: answers are kept, a changed request is refused, and a failure leaves nothing half-written."""

import sys

import pytest

import fake_experiment as fake
from fake_experiment import without_times
from steppe.errors import DamagedRunError, RunError, RunMismatchError, StorageError
from steppe.results import read_results
from steppe.run.storage.durable import take_lock
from steppe_edlp.engine import carry_out, check_directory, find_experiments
from steppe_edlp.request import Request


@pytest.fixture(autouse=True)
def known(monkeypatch):
    fake.install(monkeypatch.setitem)
    fake.CALLS.clear()


def test_results_hold_what_the_pieces_answered(tmp_path):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    found = read_results(tmp_path / "fake")
    assert [row["square"] for row in found.table("squares").rows] == [0, 1, 4, 9, 16, 25]
    assert found.arrays["rows"].numpy().size == sum(range(6))
    assert found.provenance.command == "steppe reproduce fake --protocol sound --scale quick"
    assert found.provenance.seeds == list(range(6))


def test_finished_pieces_are_not_done_again_and_the_results_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(fake, "square", fails_at(4, fake.square))
    with pytest.raises(ArithmeticError):
        carry_out(fake.EXPERIMENT, Request(), tmp_path / "interrupted")
    monkeypatch.undo()
    fake.install(monkeypatch.setitem)
    assert fake.CALLS == ["0", "1", "2", "3"]
    carry_out(fake.EXPERIMENT, Request(), tmp_path / "interrupted")
    assert fake.CALLS == ["0", "1", "2", "3", "4", "5"]
    carry_out(fake.EXPERIMENT, Request(), tmp_path / "whole")
    paths = [tmp_path / name / "fake" / "results.json" for name in ("interrupted", "whole")]
    assert without_times(paths[0]) == without_times(paths[1])


def fails_at(number, square):
    def maybe(one):
        if one == number:
            raise ArithmeticError
        return square(one)

    return maybe


def test_damaged_piece_is_done_again(tmp_path):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    part = tmp_path / "fake" / "parts" / "part-2.json"
    part.write_text(part.read_text().replace('"square": 4', '"square": 5'))
    fake.CALLS.clear()
    results = carry_out(fake.EXPERIMENT, Request(), tmp_path)
    assert fake.CALLS == ["2"]
    assert results.table("squares").rows[2]["square"] == 4


@pytest.mark.parametrize(
    "other", [Request(scale="full"), Request(num_seeds=3), Request(samplers=("dula",)), Request(seed=1)]
)
def test_changed_request_is_refused_with_what_differs(tmp_path, other):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    with pytest.raises(RunMismatchError, match=r"was begun with .* not "):
        check_directory(tmp_path, [fake.EXPERIMENT], other, resume=True)
    with pytest.raises(RunMismatchError):
        carry_out(fake.EXPERIMENT, other, tmp_path)


def test_another_version_is_refused(tmp_path, monkeypatch):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    monkeypatch.setattr("jax.__version__", "0.0.1")
    with pytest.raises(RunMismatchError, match=r"jax .* not '0\.0\.1'"):
        check_directory(tmp_path, [fake.EXPERIMENT], Request(), resume=True)


def test_only_one_process_carries_an_experiment_out(tmp_path):
    (tmp_path / "fake").mkdir()
    with take_lock(tmp_path / "fake"), pytest.raises(StorageError, match="another process"):
        carry_out(fake.EXPERIMENT, Request(), tmp_path)
    carry_out(fake.EXPERIMENT, Request(), tmp_path)


def test_damaged_request_is_refused(tmp_path):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    (tmp_path / "fake" / "request.json").write_text("{}")
    with pytest.raises(DamagedRunError, match="cannot be continued"):
        check_directory(tmp_path, [fake.EXPERIMENT], Request(), resume=True)


def test_finished_experiment_needs_resume(tmp_path):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    with pytest.raises(StorageError, match="--resume"):
        check_directory(tmp_path, [fake.EXPERIMENT], Request(), resume=False)
    check_directory(tmp_path, [fake.EXPERIMENT], Request(), resume=True)


def test_directory_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(StorageError, match=r"holds 'thesis\.tex'"):
        check_directory(tmp_path, [fake.EXPERIMENT], Request(), resume=True)


def test_results_of_a_future_schema_are_refused_before_anything_runs(tmp_path):
    carry_out(fake.EXPERIMENT, Request(), tmp_path)
    path = tmp_path / "fake" / "results.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(RunError, match="schema 2"):
        check_directory(tmp_path, [fake.EXPERIMENT], Request(), resume=True)


def test_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="Could not"):
        carry_out(fake.EXPERIMENT, Request(), tmp_path / "file")


def test_failure_before_any_work_leaves_nothing(tmp_path, monkeypatch):
    def refuses(experiment, request, work):
        raise RunError("no data")

    monkeypatch.setattr(sys.modules["steppe_edlp.fake.run"], "run", refuses)
    with pytest.raises(RunError, match="no data"):
        carry_out(fake.EXPERIMENT, Request(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("names", "samplers", "said"),
    [
        (("bernouli",), None, "Did you mean bernoulli?"),
        (("xyz",), None, "There are bernoulli"),
        (("bernoulli",), ("edmla",), "Did you mean edmala"),
        (("fake", "bernoulli"), ("edula",), "no sampler in fake named 'edula'"),
        (("",), None, "no experiment named ''"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest_ones(names, samplers, said):
    with pytest.raises(RunError, match=said.replace("?", r"\?")):
        find_experiments(names, Request(samplers=samplers))


def test_all_names_every_experiment_once():
    assert "fake" in [experiment.name for experiment in find_experiments(("all", "fake"), Request())]
    assert len(find_experiments(("fake", "fake"), Request())) == 1


@pytest.mark.parametrize("fields", [{"num_seeds": 0}, {"num_seeds": -1}, {"seed": -1}, {"seed": 2**40}])
def test_request_out_of_range_is_refused(fields):
    with pytest.raises(RunError, match="must be from"):
        Request(**fields)
