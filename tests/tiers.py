"""Which cases of a parametrised test run in the fast tier, and which in the full suite only.

Two ways to leave a case to the full suite: where it is written, by `cases` or `pytest.mark.slow`, because of
what it is; and in `full_suite.txt`, because of what it costs. To measure costs and write that file anew:

    STEPPE_TEST_TIMES=times.txt make test-all
    PYTHONPATH=tests python -m tiers times.txt

Every function keeps its cheapest case in the fast tier, whatever it costs.
"""

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

LISTED = Path(__file__).with_name("full_suite.txt")
# Seconds of processor time above which further cases of a function are left to the full suite.
MAX_SECONDS = 0.1


def cases(names: Collection[str], *, slow: Collection[str] = (), fast: Collection[str] | None = None) -> list:
    """Parameters of which those named slow, or those not named fast, are left to the full suite."""
    left = set(slow) if fast is None else set(names) - set(fast)
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in left)) for name in names]


def read_listed() -> set[str]:
    """Ids of the cases that are left to the full suite because of their cost."""
    return set(LISTED.read_text(encoding="utf-8").splitlines())


def choose_dear(times: Iterable[tuple[float, str]]) -> list[str]:
    """Ids of all cases that cost more than the limit, but the cheapest of every function."""
    functions = defaultdict(list)
    for seconds, name in times:
        functions[name.partition("[")[0]].append((seconds, name))
    return sorted(
        name for found in functions.values() for seconds, name in sorted(found)[1:] if seconds > MAX_SECONDS
    )


def read_times(path: Path) -> list[tuple[float, str]]:
    """Seconds and id of every test, as the suite writes them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(float(seconds), name) for seconds, name in (line.split("\t") for line in lines)]


if __name__ == "__main__":
    chosen = choose_dear(read_times(Path(sys.argv[1])))
    LISTED.write_text("".join(f"{name}\n" for name in chosen), encoding="utf-8")
