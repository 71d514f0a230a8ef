"""The user's own code on the command line: found from where one stands, and named when it fails."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steppe.cli import main

MODEL = """
import jax, jax.numpy as jnp, steppe
def make(scale=1.0):
    return steppe.Target(lambda x: scale * jnp.sum(x), steppe.Binary(3))
def broken():
    raise KeyError("mine")
def leaves():
    raise SystemExit(0)
def wrong():
    return 3
def late():
    def fail(x):
        raise RuntimeError("at run time")
    number = jax.ShapeDtypeStruct((), "float32")
    function = lambda x: jax.pure_callback(fail, number, x, vmap_method="sequential")
    return steppe.Target(function, steppe.Binary(3))
def unmapped():
    number = jax.ShapeDtypeStruct((), "float32")
    return steppe.Target(lambda x: jax.pure_callback(sum, number, x), steppe.Binary(3))
number = 3
class Group:
    make = staticmethod(make)
"""
COUNTS = ["--num-chains", "1", "--num-warmup", "2", "--num-draws", "4", "--recipe", "gibbs"]


def call(*arguments: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for path in ("ownmodel.py", "sub/other.py"):
        (tmp_path / path).write_text(MODEL)
    (tmp_path / "unfinished.py").write_text("def make(:\n")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["ownmodel:make", "sub/other.py:make", "./ownmodel.py:make", "ownmodel:Group.make"]
)
def test_modules_of_the_current_directory_and_files_are_found(here: Path, name: str) -> None:
    call("run", "--target", name, *COUNTS, "--out", "run")
    assert (here / "run" / "run.json").exists()
    assert str(here) not in sys.path


BROKEN = {
    "sys:exit": r"`sys:exit` raised SystemExit: ''\.$",
    "ownmodel:broken": "raised KeyError.*mine.*ownmodel.py, line 6",
    "ownmodel:leaves": "raised SystemExit",
    "ownmodel:wrong": "must return a `steppe.Target`; it returned int",
    "ownmodel:number": "must be a function",
    "ownmodel:nothing": "there is no 'nothing'",
    "unfinished:make": "raised SyntaxError",
    "sub/nowhere.py:make": "there is no file sub/nowhere.py",
    "nomodule:make": r"raised ModuleNotFoundError: \"No module named 'nomodule'\"\.$",
    "ownmodel:late": r"program ran: RuntimeError: at run time \(ownmodel.py, line 13\)\. A callback",
    "ownmodel:unmapped": "one of them cannot be mapped.*[^.]\\. Give a callback `vmap_method='sequential'`",
    "builtins:dict": "builtins:dict",
    "os:_exit": "takes",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", BROKEN)
def test_what_the_users_code_does_wrong_is_one_sentence(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", "--target", name, *COUNTS, "--out", "run"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert re.search(BROKEN[name], said.replace("\n", " ").strip())
    assert not Path("run").exists()


def test_a_directory_that_holds_a_run_names_the_line_that_continues_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--target", "ownmodel:make", *COUNTS, "--out", "run"]
    call(*command)
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 3
    assert "steppe resume run" in capsys.readouterr().err.replace("\n", " ")


def test_an_interrupted_run_says_what_is_kept_and_how_to_go_on(here: Path) -> None:
    command = [sys.executable, "-m", "steppe", "run", "--target", "ownmodel:make", "--recipe", "gibbs"]
    options = ["--num-draws", "2000000", "--out", "run"]
    process = subprocess.Popen(
        [*command, *options], cwd=here, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        deadline = time.monotonic() + 120
        while not (here / "run" / "rows.bin").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "of 2001000 rows of every chain" in said.replace("\n", " ")
    assert "steppe resume run --target ownmodel:make" in said.replace("\n", " ")


def test_what_was_not_foreseen_is_a_sentence_and_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(sys.modules["steppe.cli.main"], "print_list", broken)
    with pytest.raises(SystemExit) as stop:
        main(["samplers"])
    assert stop.value.code == 4
    assert "ZeroDivisionError: ours" in capsys.readouterr().err
    monkeypatch.setenv("STEPPE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["samplers"])


def test_observables_are_followed_and_named_again_at_a_resume(here: Path, capsys) -> None:
    (here / "looks.py").write_text("def first(bits):\n    return bits[0]\n")
    counts = ["--num-chains", "2", "--num-warmup", "2", "--num-draws", "8", "--recipe", "gibbs"]
    asked = ["--observable", "looks.py:first", "--observable", "q=overlap"]
    call("run", "--target", "ownmodel:make", *counts, *asked, "--out", "run", "--json")
    shown = capsys.readouterr().out
    assert '"first"' in shown
    assert '"q"' in shown
    again = ["resume", "run", "--target", "ownmodel:make", "--num-draws", "12"]
    with pytest.raises(SystemExit):
        main(again)
    assert "--observable looks.py:first" in capsys.readouterr().err.replace("\n", " ")
    call(*again, *asked)
    for wrong in ("first", "looks.py:none", "a=looks.py:first=b"):
        with pytest.raises(SystemExit) as stop:
            main(["run", "--target", "ownmodel:make", *counts, "--observable", wrong, "--out", "other"])
        assert stop.value.code == 2
