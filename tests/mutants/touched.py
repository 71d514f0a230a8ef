"""Which tests touch which functions, and how long each takes: made once for every file of tests.

A compiled program is traced by the first test of a process that needs it, so every file of tests runs in a
process of its own, and a test is known to touch the lines it ran or traced there.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .operators import name_functions
from .tree import HOME, SOURCE, TREE, read_module
from .warm import run_in_fork

PACKAGES = ("kernel", "run", "diagnostics")
FILE = HOME / "touched.jsonl"
# Folders of tests that reach the three packages, the most direct first; pages, browsers and data do not
# tell more of them.
FOLDERS = ("unit", "run", "laws", "exact", "contract", "statistics", "modes", "cli", "compare", "targets")
# Of a file with many tests so many CPU seconds are followed: the rest repeats them on other domains.
FILE_SECONDS = 25.0
# Plugins of packages that are already imported are not rewritten, which is a warning.
REWRITE = "-Wignore::pytest.PytestAssertRewriteWarning"
OPTIONS = ("-n", "0", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:cov", REWRITE)
CPU_SECONDS, WALL_SECONDS = 400.0, 1500.0


class Touch(NamedTuple):
    """A test, its CPU seconds, and lines by module and function, counted from where the function begins."""

    test: str
    seconds: float
    lines: dict[str, dict[str, list[int]]]


class Recorder:
    """A plugin that follows each test by itself."""

    def __init__(self, out: Path) -> None:
        import coverage

        folders = [str(SOURCE / "steppe" / package) for package in PACKAGES]
        self._out, self._folders = out, folders
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{f}/*" for f in folders]
        )
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        """Follow a test from its setup to its end."""
        self._coverage.switch_context(item.nodeid)
        began = time.process_time()
        yield_value = yield
        self._seconds[item.nodeid] = time.process_time() - began
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
        data = self._coverage.get_data()
        if not data.measured_files():
            return
        lines: dict[str, dict[str, dict[str, list[int]]]] = {}
        for path in data.measured_files():
            module = str(Path(path).relative_to(SOURCE / "steppe"))
            functions = name_functions(read_module(module))
            for line, contexts in data.contexts_by_lineno(path).items():
                name, first = functions.get(line, ("", 0))
                for test in contexts if name else ():
                    lines.setdefault(test, {}).setdefault(module, {}).setdefault(name, []).append(
                        line - first
                    )
        found = [
            Touch(test, round(seconds, 3), lines.get(test, {}))
            for test, seconds in self._seconds.items()
            if test not in self._failed and test in lines
        ]
        self._out.write_text(json.dumps({"found": found, "failed": sorted(self._failed)}))


def list_files() -> list[Path]:
    """Files of tests."""
    return [path for folder in FOLDERS for path in sorted((TREE / "tests" / folder).rglob("test_*.py"))]


def make_map(say) -> None:
    """Run every file of tests that is new or has changed since it was last run."""
    known = {row["file"]: row["digest"] for row in _read_rows()}
    for path in list_files():
        name, digest = str(path.relative_to(TREE)), hashlib.sha256(path.read_bytes()).hexdigest()
        if known.get(name) == digest:
            continue
        out = HOME / "recorded.json"
        out.unlink(missing_ok=True)

        def work(name: str = name, out: Path = out) -> int:
            return int(pytest.main([*OPTIONS, name], plugins=[Recorder(out)]))

        end, seconds = run_in_fork(work, CPU_SECONDS, WALL_SECONDS)
        record = json.loads(out.read_text()) if out.exists() else {"found": [], "failed": []}
        row = {"file": name, "digest": digest, "end": end, "seconds": round(seconds, 1), **record}
        with FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        say(
            f"{name}: {len(record['found'])} tests, {seconds:.0f} s, ended {end}, left out {record['failed']}"
        )


def read_map() -> list[Touch]:
    """What every test touches, of the newest run of its file."""
    newest = {row["file"]: row for row in _read_rows()}
    there = {str(path.relative_to(TREE)) for path in list_files()}
    return [Touch(*touch) for file, row in newest.items() if file in there for touch in row["found"]]


def _read_rows() -> Iterator[dict]:
    if FILE.exists():
        with FILE.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
