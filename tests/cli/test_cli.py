"""The command line: data on standard output, one sentence on standard error, documented exit codes."""

import json
import shutil
from pathlib import Path

import pytest

from steppe.cli.main import app, main

SMALL = ["--num-draws", "30", "--num-warmup", "10"]


def call(*arguments: object) -> int:
    """Run the command line in this process and return its exit code."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "run"
    assert call("run", "--target", "paper_bernoulli", "--recipe", "gibbs", "--out", path, *SMALL) == 0
    return path


def test_run_prints_a_summary_and_leaves_a_whole_run(finished, capsys):
    assert call("verify", finished) == 0
    assert "whole" in capsys.readouterr().out


def test_json_is_the_only_thing_on_standard_output(finished, capsys):
    call("diagnose", finished, "--json")
    assert json.loads(capsys.readouterr().out)["path"] == str(finished)


def test_resume_continues_to_more_draws(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    assert call("resume", copy, "--num-draws", "50", "--json") == 0
    capsys.readouterr()
    import steppe

    assert steppe.open_run(copy).trace.levels().shape == (4, 50, 4)


def test_a_run_whose_sampler_was_recommended_is_resumed(tmp_path, capsys):
    path = tmp_path / "run"
    assert call("run", "--target", "paper_bernoulli", "--out", path, *SMALL) == 0
    assert call("resume", path, "--num-draws", "40") == 0
    assert "40 draws" in capsys.readouterr().out


def test_verify_exits_with_1_when_something_is_damaged(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    assert call("verify", copy, "--quick") == 0
    assert "Every document fits" in capsys.readouterr().out
    rows = copy / "rows.bin"
    rows.write_bytes(b"x" + rows.read_bytes()[1:])
    assert call("verify", copy, "--quick") == 0
    assert call("verify", copy) == 1
    assert rows.name in capsys.readouterr().out


def test_a_run_that_gives_fewer_rows_than_were_committed_says_so(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "copy")
    assert call("resume", copy, "--num-draws", "50") == 0
    journal = copy / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    capsys.readouterr()
    call("diagnose", copy)
    said = capsys.readouterr()
    assert "damaged: journal.jsonl ends in a line that is not finished" in said.out
    assert "Warning" not in said.err
    call("diagnose", copy, "--json")
    assert "not finished" in json.loads(capsys.readouterr().out)["problems"][0]
    assert call("resume", copy, "--num-draws", "50") == 0
    assert "goes on from row" in capsys.readouterr().err
    call("verify", copy, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert any("journal" in name for name in found["quarantined"])


def test_a_run_file_and_its_overrides(tmp_path, capsys):
    file = tmp_path / "run.toml"
    file.write_text('target = "paper_bernoulli"\nrecipe = "gibbs"\nnum_draws = 500\nnum_warmup = 10\n')
    assert call("run", file, "--out", tmp_path / "run", "--num-draws", "30", "--json") == 0
    assert json.loads(capsys.readouterr().out)


def test_own_targets_are_named_again_on_resume(tmp_path, monkeypatch, capsys):
    module = tmp_path / "own_model.py"
    module.write_text(
        "import steppe\n\ndef model(bits: int = 3):\n"
        "    return steppe.Target(lambda x: x.sum(), steppe.Binary(bits))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "run"
    assert call("run", "--target", "own_model:model", "--recipe", "gibbs", "--out", out, *SMALL) == 0
    assert call("resume", out) == 2
    assert "--target own_model:model" in capsys.readouterr().err
    assert call("resume", out, "--target", "own_model:model", "--num-draws", "40") == 0


def test_lists_name_every_sampler_and_target(capsys):
    assert call("samplers") == 0
    assert call("targets") == 0
    shown = capsys.readouterr().out
    assert "edmala_glu" in shown
    assert "paper_bernoulli" in shown
    assert call("version") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--target", "paper_bernouli"], "paper_bernoulli"),
        (["run", "--target", "paper_bernoulli", "--recipe", "dmalla"], "dmala"),
        (["run", "--target", "paper_bernoulli", "--num-draws", "0"], "num_draws"),
        (["run", "--target", "paper_bernoulli", "--num-draws", "many"], "many"),
        (["run", "--target", "paper_bernoulli", "--seed", "-1"], "seed"),
        (["run", "--target", "no_such_module:f"], "no_such_module"),
        (["run", "--target", "steppe:no_such_function"], "no_such_function"),
        (["run", "--target", "math:sqrt"], "math:sqrt"),
        (["run", "--target", "[red]\x1b[31mx"], "no target"),
        (["run", "no_such_file.toml"], "no_such_file"),
        (["run", "--wrong-flag", "1"], "wrong"),
        (["run"], "target"),
    ],
)
def test_a_bad_request_is_one_sentence_exit_code_2_and_no_file(tmp_path, capsys, arguments, said):
    out = tmp_path / "run"
    assert call(*arguments, "--out", out) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert "\x1b[31mx" not in captured.err
    assert captured.out == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("target = ", "TOML"),
        ('target = "paper_bernoulli"\ncolour = 1\n', "colour"),
        ('target = "paper_bernoulli"\nnum_chains = 2.5\n', "num_chains"),
        ('target = "paper_bernoulli"\nkeep = "all"\n', "keep"),
        ('target = "paper_bernoulli"\nrecipe = "dmala"\nrecipe_parameters = {stepsize = 1}\n', "stepsize"),
        (
            'target = "paper_bernoulli"\nrecipe = "dmala"\nrecipe_parameters = {step_size = -1.0}\n',
            "positive",
        ),
        ("num_draws = 5\n", "target"),
        ("\x00", "TOML"),
    ],
)
def test_a_bad_run_file_names_the_field(tmp_path, capsys, content, said):
    file = tmp_path / "run.toml"
    file.write_text(content)
    assert call("run", file, "--out", tmp_path / "run") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("verb", ["resume", "verify", "diagnose"])
def test_verbs_on_something_that_is_no_run(tmp_path, capsys, verb):
    assert call(verb, tmp_path) == 2
    assert "run.json" in capsys.readouterr().err


def test_a_full_directory_is_a_storage_failure(finished, capsys):
    assert call("run", "--target", "paper_bernoulli", "--out", finished) == 3
    assert "already holds" in capsys.readouterr().err


def test_parts_are_merged_into_the_whole_run(tmp_path, capsys):
    request = ["--target", "paper_bernoulli", "--recipe", "gibbs", "--num-chains", "8", *SMALL]
    for part in ("0/2", "1/2"):
        assert call("run", "--out", tmp_path / "parts", "--shard", part, *request) == 0
    assert call("run", "--out", tmp_path / "single", *request) == 0
    assert call("merge", tmp_path / "parts", "--out", tmp_path / "merged") == 0
    assert call("verify", tmp_path / "parts") == 0
    capsys.readouterr()
    import numpy as np

    import steppe

    merged, single = (steppe.open_run(tmp_path / name).trace.arrays for name in ("merged", "single"))
    assert all(np.array_equal(merged[name], single[name]) for name in single)
    assert call("resume", tmp_path / "parts", "--shard", "0/2", "--num-draws", "40", "--json") == 0
    assert call("merge", tmp_path / "parts", "--out", tmp_path / "again") == 2
    assert "equally far" in capsys.readouterr().err


def test_adaptation_is_part_of_a_run_file(tmp_path, capsys):
    file = tmp_path / "run.toml"
    file.write_text(
        'target = "paper_bernoulli"\nnum_draws = 20\nnum_warmup = 5\nadapt = {acceptance = 2.0}\n'
    )
    assert call("run", file, "--out", tmp_path / "run") == 2
    assert "acceptance" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_verb(shell, capsys):
    assert call("completion", shell) == 0
    script = capsys.readouterr().out
    assert all(verb in script for verb in VERBS)


VERBS = sorted(name for name in app if not name.startswith("-"))


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(verb, capsys):
    assert call(verb, "--help") == 0
    assert f"steppe {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_is_explained(verb):
    arguments = app[verb].assemble_argument_collection(parse_docstring=True)
    unexplained = [argument.name for argument in arguments if not (argument.parameter.help or "").strip()]
    assert not unexplained


@pytest.mark.slow
def test_modes_are_ranked_as_json_and_drawn(tmp_path, capsys):
    where = tmp_path / "modes"
    kept = tmp_path / "kept"
    given = ("--budget", 5000, "--json", "--plot", where, "--out", kept)
    assert call("modes", "paper_bernoulli", *given) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["modes"][0]["levels"] == [0, 1, 0, 0]
    assert len(printed["curves"]["values"]) == len(printed["curves"]["modes"])
    assert where.with_suffix(".png").exists()
    saved = json.loads((kept / "results.json").read_text())
    assert saved["facts"]["most robust state"].startswith("0100, U = ")
    assert {table["key"] for table in saved["tables"]} == {"modes", "strengths"}
    assert call("report", kept, "--out", tmp_path / "page.html") == 0
    assert "picture figures/modes.svg is missing" not in (tmp_path / "page.html").read_text()
