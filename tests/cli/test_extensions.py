"""Commands of other packages: found by entry points, imported when called, refused in one sentence."""

import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from cyclopts import App

from steppe.cli.extensions import add_commands, find_extensions, load_command
from steppe.cli.resolve import describe_samplers, describe_targets, make_recipe, make_target
from steppe.errors import MissingPackageError, RunError

BAD_REQUEST = 2
HANDLER = '''
"""A verb."""


def greet(name: str, *, loudly: bool = False):
    """Greet somebody.

    Parameters
    ----------
    name
        Whom.
    """
    print("HELLO" if loudly else "hello", name)
'''


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Put a package with a verb of `steppe` on the path: `put(name, source)`."""

    def put(name, source):
        (tmp_path / f"{name}.py").write_text(source)
        described = tmp_path / f"{name}-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nSummary: What {name} does.\n"
        )
        (described / "entry_points.txt").write_text(
            f"[steppe.commands]\ngreet = {name}:greet\n[steppe.samplers]\n{name}_walk = {name}:walk\n"
            f"[steppe.targets]\n{name}_bits = {name}:bits\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    return put


def test_verb_of_a_package_is_listed_explained_and_run(put, capsys):
    put("greeting", HANDLER)
    app = App(name="steppe")
    added = add_commands(app, find_extensions())
    app(["--help"], result_action="return_value")
    assert "What greeting does." in capsys.readouterr().out
    assert "greeting" not in sys.modules
    load_command(app, added, "greet")
    app(["greet", "--help"], result_action="return_value")
    assert "Whom." in capsys.readouterr().out
    app(["greet", "you", "--loudly"], result_action="return_value")
    assert capsys.readouterr().out == "HELLO you\n"


def test_package_that_cannot_be_imported_is_named_in_a_sentence_and_other_verbs_work(put):
    path = put("faulty_verb", "raise RuntimeError('no such thing')")
    program = (
        "import sys\nfrom steppe.cli import main\n"
        "for words in (['--help'], ['completion', 'bash'], ['version'], ['greet', 'you']):\n"
        "    try:\n        main(words)\n    except SystemExit as left:\n        print('code', left.code)\n"
        "assert not any(name.startswith('steppe_edlp.bernoulli') for name in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert re.findall(r"^code (\d)", done.stdout, re.MULTILINE) == ["0", "0", "0", str(BAD_REQUEST)]
    assert "`faulty_verb` (faulty_verb:greet)" in done.stderr
    assert "no such thing" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("value", ["nowhere:greet", "sys:greet"])
def test_entry_point_that_leads_nowhere_is_refused(value):
    app = App(name="steppe")
    added = add_commands(app, {"greet": [EntryPoint("greet", value, "steppe.commands")]})
    with pytest.raises(MissingPackageError, match=f"given by `{value}`, which cannot be imported"):
        load_command(app, added, "greet")


def test_verb_that_two_packages_give_is_refused():
    points = [EntryPoint("greet", value, "steppe.commands") for value in ("one:greet", "two:greet")]
    app = App(name="steppe")
    added = add_commands(app, {"greet": points})
    with pytest.raises(MissingPackageError, match="`one:greet` and by `two:greet`"):
        load_command(app, added, "greet")


def test_no_package_replaces_a_verb_of_steppe():
    app = App(name="steppe")
    app.command(lambda: "own", name="run")
    assert "run" not in add_commands(app, {"run": [EntryPoint("run", "other:run", "steppe.commands")]})
    assert app("run", result_action="return_value") == "own"


@pytest.mark.parametrize(
    "words", [["reproduce"], ["reproduce", "all", "--scale", "full"], ["reproduce", "-h"]]
)
def test_missing_reproduction_says_which_line_installs_it(words):
    app = App(name="steppe")
    assert add_commands(app, {}) == {}
    with pytest.raises(MissingPackageError, match="`pip install steppe-edlp` adds it"):
        app(["reproduce", *words], exit_on_error=False, print_error=False)


PLUGIN = """
import steppe


def walk(step_size=0.3):
    return steppe.dmala(step_size=step_size)


def bits(num_sites=3):
    return steppe.Target(lambda x: x.sum(), steppe.Binary(num_sites))
"""


def test_samplers_and_targets_of_a_package_have_names(put):
    put("plugged", PLUGIN)
    assert "plugged:walk" in describe_samplers()["plugged_walk"]
    assert "plugged:bits" in describe_targets()["plugged_bits"]
    assert "plugged" not in sys.modules
    assert make_recipe("plugged_walk", {"step_size": 0.5}).parameters["step_size"] == 0.5
    assert make_target("plugged_bits", {"num_sites": 5}).domain.num_sites == 5


def test_a_package_of_samplers_that_fails_is_named_and_others_work(put):
    put("faulty_sampler", "raise RuntimeError('no such thing')")
    assert "faulty_sampler_walk" in describe_samplers()
    with pytest.raises(MissingPackageError, match=r"`faulty_sampler_walk` is given by .*no such thing"):
        make_recipe("faulty_sampler_walk", {})
    assert make_recipe("dmala", {}).name == "dmala"
    with pytest.raises(RunError, match="Did you mean faulty_sampler_walk"):
        make_recipe("faulty_sampler_wal", {})


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("walk = 3", MissingPackageError, "is not a function but int"),
        ("def walk():\n    return 3", RunError, "must return a recipe of `steppe`; it returned int"),
    ],
)
def test_an_entry_point_of_a_sampler_that_is_none_is_refused(put, source, error, said):
    put(f"odd_{len(source)}", source)
    with pytest.raises(error, match=said):
        make_recipe(f"odd_{len(source)}_walk", {})


def test_every_sampler_and_target_is_listed():
    assert {"dmala", "chromatic_gibbs", "informed_permutation"} <= set(describe_samplers())
    listed = describe_targets()
    assert {"tsp", "tsp_paper", "ising_lattice"} <= set(listed)
    assert "coordinates" in listed["tsp"]
