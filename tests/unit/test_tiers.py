"""Cases left to the full suite because of their cost."""

from pathlib import Path

from tiers import MAX_SECONDS, choose_dear, read_listed

ROOT = Path(__file__).parents[2]


def test_listed_cases_are_of_functions_that_exist():
    for name in read_listed():
        path, _, function = name.partition("[")[0].partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(), name


def test_every_function_keeps_its_cheapest_case_and_those_that_cost_little():
    dear, cheap = 2 * MAX_SECONDS, MAX_SECONDS / 2
    times = [
        (3 * dear, "f[a]"),
        (dear, "f[b]"),
        (2 * dear, "f[c]"),
        (dear, "g"),
        (cheap, "h[a]"),
        (cheap, "h[b]"),
    ]
    assert choose_dear(times) == ["f[a]", "f[c]"]
