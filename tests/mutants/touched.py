"""Which tests touch which functions, and how long each takes: made once for every file of tests.

A compiled program is traced by the first test of a process that needs it, so every file of tests runs in a
process of its own, and a test is known to touch the lines it ran or traced there.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .plugins import RECORDED, list_lines, make_coverage
from .tree import HOME, TREE
from .warm import Request, Server, import_library, run_in_fork

FILE = HOME / "touched.jsonl"
IMPORTED = HOME / "imported.json"
# Folders of tests that reach the three packages, the most direct first; pages, browsers and data do not
# tell more of them.
FOLDERS = (
    "run",
    "unit",
    "laws",
    "exact",
    "contract",
    "statistics",
    "modes",
    "robust",
    "cli",
    "compare",
    "targets",
)
CPU_SECONDS, WALL_SECONDS = 200.0, 1500.0


class Touch(NamedTuple):
    """A test, its CPU seconds, and lines by module and function, counted from where the function begins."""

    test: str
    seconds: float
    lines: dict[str, dict[str, list[int]]]


def list_files(places: Sequence[str] = FOLDERS) -> list[Path]:
    """Files of tests, by themselves and in folders."""
    paths = [TREE / "tests" / place for place in places]
    return [
        file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("test_*.py")))
    ]


def make_map(server: Server, places: Sequence[str], say: Callable[[str], None]) -> None:
    """Run every file of tests that is new or has changed since it was last run."""
    known = {row["file"]: row["digest"] for row in _read_rows()}
    for path in list_files(places):
        name, digest = str(path.relative_to(TREE)), hashlib.sha256(path.read_bytes()).hexdigest()
        if known.get(name) == digest:
            continue
        RECORDED.unlink(missing_ok=True)
        end, seconds = server.run_tests(Request((name,), CPU_SECONDS, WALL_SECONDS, is_followed=True))
        record = (
            json.loads(RECORDED.read_text(encoding="utf-8"))
            if RECORDED.exists()
            else {"found": [], "failed": []}
        )
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


def list_imported() -> set[tuple[str, str]]:
    """Modules and functions that run while the library is imported: they cannot be replaced afterwards."""

    def work() -> int:
        followed = make_coverage()
        followed.start()
        import_library()
        followed.stop()
        found = sorted({(module, name) for _, module, name, _ in list_lines(followed)})
        IMPORTED.write_text(json.dumps(found), encoding="utf-8")
        return 0

    end, _ = run_in_fork(work, CPU_SECONDS, WALL_SECONDS)
    assert end == "0", "the library cannot be imported"
    return {(module, name) for module, name in json.loads(IMPORTED.read_text(encoding="utf-8"))}


def _read_rows() -> Iterator[dict]:
    if FILE.exists():
        with FILE.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
