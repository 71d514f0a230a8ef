"""More than two hundred wrong command lines: a documented exit code, one sentence, nothing left on disk."""

import itertools
import shutil

import pytest

from steppe.cli import main

BAD_REQUEST = 2
TARGET = ["--target", "paper_bernoulli"]
NUMBERS = ["--num-chains", "--num-warmup", "--num-draws", "--thinning", "--seed", "--devices"]
NOT_NUMBERS = ["", "x", "1.5", "-1", "1e3", "0x1g", "٣x", "\x1b[31m1", "[bold]1[/]", "99999999999999999999"]
STRANGE = ["", " ", "\x1b]0;title\x07", "[red]x[/red]", "../../etc", "a:b:c", ":", "os:system", "📉", "a\nb"]


def cases():
    for flag, value in itertools.product(NUMBERS, NOT_NUMBERS):
        yield ["run", *TARGET, flag, value]
    for value in STRANGE:
        yield ["run", "--target", value]
        yield ["run", *TARGET, "--recipe", value]
        yield ["run", *TARGET, "--shard", value]
        yield ["run", *TARGET, "--distributed", "--process", value]
        yield ["completion", value]
        yield [value or "''"]
    for shard in ["2/2", "0/0", "1/0", "-1/2", "0/99", "1", "1/2/3", "a/b"]:
        yield ["run", *TARGET, "--shard", shard]
    for process in ["0/1", "2/2@h:1", "0/2@h", "x"]:
        yield ["run", *TARGET, "--distributed", "--process", process]
    yield ["run", *TARGET, "--process", "0/2@localhost:1"]
    yield ["run", *TARGET, "--num-draws"]
    yield ["run", *TARGET, "--num-draws", "1", "--num-draws", "2", "extra", "more"]
    for name in ("sys:exit", "os:getcwd", "json:nothing", "nowhere.py:make", "math:pi"):
        yield ["run", "--target", name]
        yield ["modes", name]
        yield ["tune", name]
        yield ["compare", name]
    for verb, value in itertools.product(("modes", "tune", "compare"), STRANGE):
        yield [verb, value]
    for value in ("/", "", ".", "nowhere/nowhere/page.html"):
        yield ["report", ".", "--out", value]
    for verb in ("report", "watch"):
        yield [verb, "nowhere"]
        yield [verb, "a" * 5000]
        yield [verb, "--unknown"]
    yield ["reproduce", "all", "--data", "/nope"]
    yield ["reproduce", "bernoulli", "--scale", "huge"]
    for verb in ("resume", "verify", "diagnose", "merge"):
        yield [verb, "nowhere"]
        yield [verb, "a" * 5000]
        yield [verb, "--unknown"]


CASES = list(cases())


def test_there_are_more_than_two_hundred_wrong_calls():
    assert len(CASES) >= 200


def test_every_wrong_call_gets_a_documented_exit_code_and_leaves_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = {}
    for number, arguments in enumerate(CASES):
        needs_out = arguments[0] in ("run", "merge")
        code: object = 0
        try:
            main([*arguments, *(["--out", str(tmp_path / "run")] if needs_out else [])])
        except SystemExit as stop:
            code = stop.code
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            code = f"{type(error).__name__}: {error}"
        said = capsys.readouterr()
        is_one_sentence = said.err.startswith("error") and "Traceback" not in said.err
        is_clean = "\x1b" not in said.err and "\x07" not in said.err and said.out == ""
        if code != BAD_REQUEST or not is_one_sentence or not is_clean or any(tmp_path.iterdir()):
            wrong[number, tuple(arguments)] = (code, said.err[:200], said.out[:200], [*tmp_path.iterdir()])
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
    assert wrong == {}


@pytest.mark.parametrize("verb", ["run", "resume", "merge", "verify", "diagnose", "samplers", "targets"])
def test_markup_and_terminal_commands_in_a_name_are_shown_as_text(verb, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "[red]\x1b[31mx[/red]"
    with pytest.raises(SystemExit) as stop:
        main([verb, name, *(["--out", "run"] if verb in ("run", "merge") else [])])
    assert stop.value.code == BAD_REQUEST
    said = capsys.readouterr()
    assert "\x1b" not in said.err + said.out
    assert "[red]" in said.err


@pytest.mark.parametrize("verb", ["run", "modes", "tune", "compare"])
def test_a_run_file_that_is_nested_by_dots_is_refused_like_one_by_brackets(
    verb, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for content in ("a = " + "[" * 100_000, "a" + ".b" * 2000 + " = 1\n", "[a" + ".b" * 2000 + "]\nc = 1\n"):
        (tmp_path / "deep.toml").write_text(content)
        with pytest.raises(SystemExit) as stop:
            main([verb, "deep.toml", *(["--out", "run"] if verb == "run" else [])])
        assert stop.value.code == BAD_REQUEST
        assert "The run file deep.toml is nested too deeply to be one." in " ".join(
            capsys.readouterr().err.split()
        )
