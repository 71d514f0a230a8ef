"""Examples in docstrings: every name of the reference has one, and it runs as it is printed."""

import doctest
import importlib
import inspect

import pytest

from docs.pages import DOCS
from docs.test_public_names import public_names

MODULES = (
    "steppe",
    "steppe.targets",
    "steppe.datasets",
    "steppe.diagnostics.flatness",
    "steppe.diagnostics.exact",
    "steppe.routes",
    "steppe.theory",
    "steppe.training",
    "steppe.interop",
    "steppe.errors",
    "steppe_edlp.theory.paper",
)
CLASSES = (
    "steppe.kernel.compose.Recipe",
    "steppe.kernel.sampler.Sampler",
    "steppe.diagnostics.stationary.StationaryDistribution",
    "steppe.report.summary.Summary",
    "steppe.results.Results",
)


def list_public() -> dict[str, object]:
    """Functions and classes of the reference by name, each where it is listed first."""
    found: dict[str, object] = {}
    for module in map(importlib.import_module, MODULES):
        named = {f"{module.__name__}.{name}": getattr(module, name) for name in public_names(module)}
        found |= {name: one for name, one in named.items() if not inspect.ismodule(one)}
    for path in CLASSES:
        module, _, name = path.rpartition(".")
        found[path] = getattr(importlib.import_module(module), name)
    first = {id(one): name for name, one in reversed(found.items())}
    return {name: one for name, one in found.items() if first[id(one)] == name}


PUBLIC = list_public()
EXAMPLES = {
    test.name: test
    for name, one in PUBLIC.items()
    for test in doctest.DocTestFinder(recurse=False).find(one, name)
    if test.examples
}


def test_the_names_are_those_of_the_reference():
    listed = (DOCS / "api.md").read_text(encoding="utf-8").split()
    assert {word for word in listed if word.startswith("steppe")} >= {*MODULES, *CLASSES}


def test_every_name_has_an_example_of_a_few_lines():
    assert sorted(PUBLIC.keys() - EXAMPLES.keys()) == []
    assert [name for name, test in EXAMPLES.items() if len(test.examples) > 12] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    is_sound = runner.run(EXAMPLES[name], out=said.append).failed == 0
    if "ModuleNotFoundError" in "".join(said):
        pytest.skip("a package that is not always installed is missing")
    assert is_sound, "".join(said)
