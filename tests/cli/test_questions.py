"""What the command line answers without JAX is what it would say with it."""

import subprocess
import sys
from importlib import import_module

import pytest

import steppe
from steppe.cli.questions import SUMMARIES, answer, make_overview

full = import_module("steppe.cli.main")  # the package has a function of that name


def shown(app, capsys) -> str:
    app(["--help"], result_action="return_value")
    return capsys.readouterr().out


def test_overview_is_the_help_of_all_verbs(capsys):
    assert shown(make_overview(), capsys) == shown(full.app, capsys)
    assert "resume" in SUMMARIES


@pytest.mark.parametrize("words", [["--help"], ["version"], ["--version"]])
def test_questions_import_no_jax(words):
    program = f"""
import sys
from steppe.cli import main
try:
    main({words!r})
except SystemExit as left:
    sys.exit(left.code or "jax" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("resume" if words == ["--help"] else steppe.__version__) in done.stdout


def test_other_words_are_left_to_the_verbs():
    assert not answer(["run", "--help"])
    assert not answer(["version", "--nonsense"])


def test_functions_keep_their_names_when_modules_of_the_same_name_are_imported():
    import_module("steppe.tune.grids")
    import_module("steppe.compare.measurement")
    import_module("steppe.cli.main")
    assert callable(steppe.tune)
    assert callable(steppe.compare)
    assert callable(import_module("steppe.cli").main)


def test_every_public_name_is_found_and_no_other():
    assert all(getattr(steppe, name) is not None for name in steppe.__all__)
    assert {"sample", "dmala", "targets", "__version__"} <= set(dir(steppe))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = steppe.nonsense  # pyright: ignore[reportAttributeAccessIssue]
