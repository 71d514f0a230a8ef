"""Examples in docstrings of public names run as they are printed."""

import doctest
import importlib
import inspect

import pytest

MODULES = (
    "steppe",
    "steppe.targets",
    "steppe.datasets",
    "steppe.diagnostics.flatness",
    "steppe.routes",
    "steppe.theory",
    "steppe.training",
    "steppe.interop",
)
# Public names whose docstring has no example yet. It may only fall.
MOST_WITHOUT = 164


def list_public() -> dict[str, object]:
    """Functions and classes of the reference by name."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        named = {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
        found |= {name: one for name, one in named.items() if not inspect.ismodule(one)}
    return found


PUBLIC = list_public()
EXAMPLES = [
    test
    for name, one in PUBLIC.items()
    for test in doctest.DocTestFinder(recurse=False).find(one, name)
    if test.examples
]


def test_no_more_names_lack_an_example_than_before():
    assert len(PUBLIC) - len(EXAMPLES) <= MOST_WITHOUT


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_the_example_of_a_docstring_runs(example):
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)
