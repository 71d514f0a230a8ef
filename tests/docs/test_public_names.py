"""Every public name says what it is."""

import inspect
from importlib import import_module

import pytest

MODULES = [
    "steppe",
    "steppe.errors",
    "steppe.targets",
    "steppe.datasets",
    "steppe.diagnostics.exact",
    "steppe.diagnostics.flatness",
    "steppe.routes",
    "steppe.theory",
    "steppe_edlp.theory.paper",
    "steppe.training",
    "steppe.interop",
]


def public_names(module):
    given = getattr(module, "__all__", None)
    if given is None:
        given = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    return [name for name in given if not name.startswith("_")]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring(name):
    module = import_module(name)
    silent = [n for n in public_names(module) if not has_own_docstring(getattr(module, n))]
    assert module.__doc__
    assert not silent, f"{name}: {silent}"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_method_has_a_docstring(name):
    module = import_module(name)
    classes = [value for n in public_names(module) if inspect.isclass(value := getattr(module, n))]
    silent = [
        f"{one.__name__}.{method}"
        for one in classes
        for method, value in vars(one).items()
        if not method.startswith("_")
        and isinstance(value, staticmethod | classmethod | property | type(has_own_docstring))
        and not inspect.getdoc(getattr(one, method))
    ]
    assert not silent, f"{name}: {silent}"


def has_own_docstring(value) -> bool:
    """Whether it has a docstring beyond the one that Python makes for tuples and dataclasses."""
    text = inspect.getdoc(value) or ""
    return bool(text.strip()) and not text.startswith(f"{getattr(value, '__name__', '')}(")
