"""Bugs that somebody planted and no fast test saw: each is planted again, and the test named must fail."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .tree import mutated, read_module
from .warm import Request, run_tests

FILE = Path(__file__).with_name("planted.toml")
CPU_SECONDS, WALL_SECONDS = 200.0, 1200.0
TESTS_FAILED = "1"


class Planted(NamedTuple):
    """A bug: what is replaced in a module, and the test that must notice it."""

    what: str
    module: str
    before: str
    after: str
    test: str


def read_planted() -> list[Planted]:
    """All bugs of the file."""
    return [Planted(**row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["bug"]]


def try_planted(say: Callable[[str], None]) -> int:
    """Plant each bug; return how many were not noticed by the test that should, or whose text is gone."""
    missed = 0
    for bug in read_planted():
        source = read_module(bug.module)
        if source.count(bug.before) != 1:
            say(f"not planted, its text is not there once: {bug.what}")
            missed += 1
            continue
        with mutated(bug.module, source.replace(bug.before, bug.after)):
            end, _ = run_tests(Request((bug.test,), CPU_SECONDS, WALL_SECONDS))
        is_noticed = end == TESTS_FAILED
        missed += not is_noticed
        say(f"{'noticed' if is_noticed else f'NOT NOTICED (ended {end})'}: {bug.what}")
    return missed
