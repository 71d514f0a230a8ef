"""Plugins of pytest for one run of tests: to stop at the first failure, or to follow the lines of each."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import coverage
import pytest

from .operators import name_functions
from .tree import HOME, PACKAGES, SOURCE, read_module

# Plugins of packages that are already imported are not rewritten, which is a warning.
REWRITE = "-Wignore::pytest.PytestAssertRewriteWarning"
NOTHING_RUN = "-Wignore::coverage.exceptions.CoverageWarning"
# No plugins beside pytest's own, and none that looks through the memory for what went wrong unseen.
LEFT_OUT = ("cacheprovider", "unraisableexception", "threadexception")
OPTIONS = (
    *("-o", "addopts=", "-q", "-m", "not slow", REWRITE, NOTHING_RUN),
    *(word for plugin in LEFT_OUT for word in ("-p", f"no:{plugin}")),
)
KILLER, RECORDED = HOME / "killer.txt", HOME / "recorded.json"
# Of a file with many tests so many CPU seconds are followed: the rest repeats them on other domains.
FILE_SECONDS = 20.0


class ChosenTests:
    """Runs some tests, or whole files, in the order given, and remembers the one that failed."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: index for index, test in enumerate(tests)}
        KILLER.unlink(missing_ok=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose and order the tests, which are named as on the command line: cases, functions or files."""
        found = [(place, item) for item in items if (place := self._find(item.nodeid)) is not None]
        items[:] = [item for _, item in sorted(found, key=lambda pair: pair[0])]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure, for the parent."""
        if report.outcome == "failed":
            KILLER.write_text(report.nodeid, encoding="utf-8")

    def _find(self, name: str) -> int | None:
        names = (name, name.split("[", maxsplit=1)[0], name.split("::", maxsplit=1)[0])
        return next((self._order[one] for one in names if one in self._order), None)


class Recorder:
    """A plugin that follows each test by itself."""

    def __init__(self) -> None:
        self._coverage = make_coverage()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._coverage.start()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the tests in a random order, for not all may be followed."""
        random.Random(0).shuffle(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        """Follow a test from its setup to its end."""
        self._coverage.switch_context(item.nodeid)
        began = sum(os.times()[:4])  # of this process and of those it started
        yield_value = yield
        self._seconds[item.nodeid] = sum(os.times()[:4]) - began
        self._coverage.switch_context("")
        if sum(self._seconds.values()) > FILE_SECONDS:
            item.session.shouldstop = "enough of this file"
        return yield_value

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that fail, or are skipped, without any mutant."""
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was found."""
        self._coverage.stop()
        lines: dict[str, dict[str, dict[str, list[int]]]] = {}
        for test, module, function, line in list_lines(self._coverage):
            lines.setdefault(test, {}).setdefault(module, {}).setdefault(function, []).append(line)
        found = [
            (test, round(seconds, 3), lines.get(test, {}))
            for test, seconds in self._seconds.items()
            if test not in self._failed and test in lines
        ]
        RECORDED.write_text(json.dumps({"found": found, "failed": sorted(self._failed)}), encoding="utf-8")


def make_coverage() -> coverage.Coverage:
    """What follows the lines of the packages that mutants are made of."""
    include = [f"{SOURCE / 'steppe' / package}/*" for package in PACKAGES]
    return coverage.Coverage(data_file=None, config_file=False, include=include)


def list_lines(followed: coverage.Coverage) -> Iterator[tuple[str, str, str, int]]:
    """Every line that was run: by which test, its module and function, and its place in the function."""
    data = followed.get_data()
    for path in data.measured_files():
        module = str(Path(path).relative_to(SOURCE / "steppe"))
        functions = name_functions(read_module(module))
        for line, contexts in data.contexts_by_lineno(path).items():
            name, first = functions.get(line, ("", 0))
            for test in contexts if name else ():
                yield test, module, name, line - first
