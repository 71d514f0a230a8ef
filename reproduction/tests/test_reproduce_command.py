"""`steppe reproduce` from outside: exit codes, one sentence, kills and interrupts."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fake_experiment as fake
from fake_experiment import without_times
from steppe.cli import main

HERE = Path(__file__).parent
BAD_REQUEST, STORAGE_FAILED, INTERRUPTED = 2, 3, 130


@pytest.fixture
def _known(monkeypatch, tmp_path):
    fake.install(monkeypatch.setitem)
    monkeypatch.chdir(tmp_path)


def call(*words):
    with pytest.raises(SystemExit) as left:
        main(["reproduce", *words])
    return left.value.code


@pytest.mark.usefixtures("_known")
def test_verdicts_are_printed_with_where_the_files_are(capsys):
    assert call("fake", "--out", "here") == 0
    said = capsys.readouterr().out
    assert "Squares are positive." in said
    assert "shown" in said
    assert str(Path("here/fake")) in said


@pytest.mark.usefixtures("_known")
def test_json_is_a_document_of_the_verdicts(capsys):
    assert call("fake", "--out", "here", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["experiments"]["fake"]["verdicts"][0]["outcome"] == "shown"


@pytest.mark.usefixtures("_known")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fak"], BAD_REQUEST, "Did you mean fake?"),
        ([], BAD_REQUEST, "no experiment"),
        (["fake", "--samplers", "dulla"], BAD_REQUEST, "Did you mean dula"),
        (["fake", "--samplers", ""], BAD_REQUEST, "no sampler"),
        (["fake", "--seeds", "0"], BAD_REQUEST, "number of seeds"),
        (["fake", "--seeds", "1.5"], BAD_REQUEST, "seeds"),
        (["fake", "--seed", "-1"], BAD_REQUEST, "first seed"),
        (["fake", "--protocol", "wishful"], BAD_REQUEST, "protocol"),
        (["fake", "--scale", "huge"], BAD_REQUEST, "scale"),
        (["eta", "--data", "nowhere"], BAD_REQUEST, "nowhere"),
        (["fake", "--out", "occupied"], STORAGE_FAILED, "holds"),
        (["fake", "--out", "file"], STORAGE_FAILED, "Could not"),
    ],
)
def test_wrong_call_gets_one_sentence_an_exit_code_and_leaves_nothing(words, code, said, capsys):
    Path("occupied").mkdir()
    Path("occupied/own.txt").write_text("x")
    Path("file").write_text("x")
    assert call(*words) == code
    heard = capsys.readouterr()
    assert said in heard.err.replace("\n", " ")
    assert heard.out == ""
    assert sorted(path.name for path in Path().rglob("*") if path.is_file()) == ["file", "own.txt"]
    assert not Path("out/reproduce").exists()


@contextlib.contextmanager
def child(out, *, seconds=0.0, resume=False, mark=""):
    """A process of the command line; it is gone when the block ends."""
    words = [sys.executable, str(HERE / "fake_experiment.py"), "reproduce", "fake"]
    words += ["--out", str(out), *["--resume"] * resume]
    environment = {**os.environ, "FAKE_SECONDS": str(seconds), "FAKE_MARK": str(mark)}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_run_killed_half_way_resumes_to_the_same_results(tmp_path):
    own = tmp_path / "killed" / "fake"
    with child(tmp_path / "killed", seconds=0.5) as killed:
        wait_for(own / "parts" / "part-2.json", killed)
    assert not (own / "results.json").exists()
    with child(tmp_path / "killed", seconds=60, resume=True, mark=tmp_path / "begun") as interrupted:
        wait_for(tmp_path / "begun", interrupted)
        interrupted.send_signal(signal.SIGINT)
        _, said = interrupted.communicate(timeout=30)
        assert interrupted.returncode == INTERRUPTED
        assert "--resume" in said
        assert "Traceback" not in said
    for out, resume in ((own.parent, True), (tmp_path / "whole", False)):
        with child(out, resume=resume) as process:
            _, said = process.communicate()
            assert process.returncode == 0, said
    paths = [tmp_path / name / "fake" / "results.json" for name in ("killed", "whole")]
    assert without_times(paths[0]) == without_times(paths[1])
