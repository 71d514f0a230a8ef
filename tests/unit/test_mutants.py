"""Mutation testing itself: what its operators change, and that the bugs it plants can still be planted."""

import ast
import importlib

import pytest

from mutants.operators import list_mutants, name_functions
from mutants.patch import find_outermost_function, replace_function
from mutants.planted import read_planted
from mutants.tree import ROOT
from mutants.trial import wilson

LIBRARY = ROOT / "src" / "steppe"

CHANGES = {
    "a < b": ["(a <= b)", "(a > b)"],
    "a is None": ["(a is not None)"],
    "a + b": ["(a - b)"],
    "a ** 2": ["(a * 2)", "a ** (3)"],
    "not a": ["(a)"],
    "-a": ["(a)"],
    "a and b": ["(a or b)"],
    "True": ["False"],
    "0": ["1"],
    "2.5": ["(5.0)"],
    "b if a else 'c'": ["b if (not (a)) else 'c'"],
    "f(a, b)": ["(f(b, a))"],
    "f(a, k=b)": ["(f(a))"],
    "jnp.sum(a)": ["(jnp.mean(a))"],
    "a[b:]": ["(a[:])"],
    "'text'": [],
    "f'{a + b}'": [],
}


@pytest.mark.parametrize("expression", CHANGES)
def test_every_operator_makes_the_change_it_is_named_after(expression):
    source = f"x = {expression}\n"
    made = [mutant.apply(source) for mutant in list_mutants("m.py", source)]
    assert made == [f"x = {after}\n" for after in CHANGES[expression]]


STATEMENTS = '''
def f(a: int = 0) -> bool:
    """A docstring."""
    assert a > 0
    if a:
        raise ValueError(f"{a + 1}" "2")
    elif g(a):
        a += 1
    h(a)
    for _ in a:
        break
    return a
'''


def test_statements_are_dropped_and_conditions_negated_in_their_place():
    made = {(m.operator, m.before, m.after) for m in list_mutants("m.py", STATEMENTS)}
    assert made == {
        ("constant", "0", "1"),
        ("negate", "a", "(not (a))"),
        ("drop statement", 'raise ValueError(f"{a + 1}" "2")', "pass"),
        ("negate", "g(a)", "(not (g(a)))"),
        ("arithmetic", "a += 1", "a -= 1"),
        ("drop statement", "a += 1", "pass"),
        ("constant", "1", "(2)"),
        ("drop statement", "h(a)", "pass"),
        ("loop", "break", "continue"),
    }


def test_mutants_have_names_of_their_own_that_do_not_depend_on_where_a_function_stands():
    source = "def f(a):\n    return a + 1 + 1\n"
    names = [mutant.name for mutant in list_mutants("m.py", source)]
    assert len(set(names)) == len(names) == 4
    assert [mutant.name for mutant in list_mutants("m.py", f"B = C\n\n\n{source}")] == names


def test_lines_belong_to_the_innermost_function():
    source = (
        "A = 1\n\n\nclass C:\n    def f(self):\n        def g():\n            return 1\n        return g\n"
    )
    assert name_functions(source) == {6: ("C.f", 5), 7: ("C.f.g", 6), 8: ("C.f", 5)}


@pytest.mark.parametrize("bug", read_planted(), ids=lambda bug: bug.what)
def test_a_planted_bug_still_fits_the_code_and_names_a_test(bug):
    source = (LIBRARY / bug.module).read_text(encoding="utf-8")
    assert source.count(bug.before) == 1
    ast.parse(source.replace(bug.before, bug.after))
    file, _, name = bug.test.partition("::")
    assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


def test_wilsons_interval_is_the_published_one():
    """Newcombe 1998, 81 of 263: .2553 to .3662."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


REPLACED = """
LIMIT = 3


class A:
    size = 1

    def f(self, a=2):
        def g(b):
            return b + 1

        return g(a) * 5
"""


def test_only_bodies_of_functions_can_be_replaced_after_an_import():
    mutants = list_mutants("m", REPLACED)
    found = {
        (mutant.function, mutant.before): find_outermost_function(REPLACED, mutant) for mutant in mutants
    }
    assert found == {
        ("<module>", "3"): None,
        ("A", "1"): None,
        ("A.f", "2"): None,
        ("A.f", "5"): "A.f",
        ("A.f.g", "b + 1"): "A.f",
        ("A.f.g", "1"): "A.f",
        ("A.f", "g(a) * 5"): "A.f",
    }


def test_a_replaced_function_is_called_by_everything_that_holds_it(tmp_path, monkeypatch):
    path = tmp_path / "replaced_by_a_mutant.py"
    path.write_text(REPLACED)
    monkeypatch.syspath_prepend(tmp_path)
    held = importlib.import_module("replaced_by_a_mutant").A().f
    assert held(1) == 10
    path.write_text(REPLACED.replace("b + 1", "b - 1"))
    replace_function(path, "A.f")
    assert held(1) == 0
