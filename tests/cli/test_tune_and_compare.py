"""`steppe tune` and `steppe compare`: documents on standard output, sentences on standard error."""

import json

import pytest

from steppe.cli.main import main

QUICK = ["--num-chains", "2", "--num-warmup", "20", "--num-draws", "20"]


def call(arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


def test_tune_prints_what_it_tried_as_json_and_draws_it(capsys, tmp_path):
    call(["tune", "paper_bernoulli", *QUICK, "--json", "--out", str(tmp_path)])
    found = json.loads(capsys.readouterr().out)
    assert found["recipe"] == "dmala"
    assert len(found["trials"]) == 5
    assert (tmp_path / "tuning.svg").exists()


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "model.toml"
    text = 'target = "ising_lattice"\n[target_parameters]\nshape = [2, 3]\ncoupling = 0.3\n'
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_run_file_names_a_target_with_its_parameters(capsys, run_file):
    counts = ["--seeds", "2", "--budget", "100", "--tuned-by", "none"]
    call(["compare", run_file, "--samplers", "gibbs", *counts, "--json"])
    assert "Spin(6)" in json.loads(capsys.readouterr().out)["question"]


@pytest.mark.slow
def test_run_file_serves_every_verb_that_looks_at_a_target(capsys, run_file):
    call(["tune", run_file, *QUICK, "--json"])
    assert json.loads(capsys.readouterr().out)["recipe"] == "dmala"
    call(["modes", run_file, "--budget", "8000", "--json"])
    assert len(json.loads(capsys.readouterr().out)["modes"][0]["levels"]) == 6


def test_compare_prints_results_as_json_and_saves_them(capsys, tmp_path):
    counts = ["--seeds", "2", "--budget", "100", "--tuned-by", "none"]
    call(["compare", "paper_bernoulli", "--samplers", "gibbs", *counts, "--json", "--out", str(tmp_path)])
    found = json.loads(capsys.readouterr().out)
    assert [table["key"] for table in found["tables"]] == ["efficiency", "spending", "distribution"]
    assert (tmp_path / "results.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "paper_bernoulli", "--samplers", "dmalla"], "Did you mean dmala"),
        (["compare", "paper_bernoulli", "--samplers", ","], "needs recipes"),
        (["compare", "paper_bernoulli", "--seeds", "1"], "at least 2"),
        (["compare", "paper_bernoulli", "--samplers", "informed_permutation"], "moves permutations"),
        (["tune", "paper_bernoulli", "--recipe", "dula"], "accepts every proposal"),
        (["tune", "paper_bernouli"], "Did you mean paper_bernoulli"),
        (["tune", "missing.toml"], "no run file missing.toml"),
    ],
)
def test_bad_request_exits_with_2_and_a_remedy(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
