"""Documents of a run directory, changed and sealed again as somebody would who knows how."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steppe.run.storage.durable import read_json, seal_json, write_json
from steppe.run.storage.journal import write_line

Change = Callable[[Any], object]


def change_document(path: Path, change: Change) -> None:
    """Change `run.json` or `acknowledged.json`, and seal it again."""
    content = read_json(path)
    change(content)
    write_json(path, content)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Lines of the journal of a run, without their seals."""
    lines = [json.loads(line) for line in (path / "journal.jsonl").read_bytes().splitlines()]
    for line in lines:
        del line["sha256"]
    return lines


def change_line(path: Path, number: int, change: Change) -> None:
    """Change one line of the journal and seal it; what follows keeps the seal it had of it."""
    lines = read_lines(path)
    change(lines[number])
    (path / "journal.jsonl").write_bytes(b"".join(write_line(line)[0] for line in lines))


def write_journal(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write lines as the journal of whatever is in `run.json`, every seal and its successor right."""
    config = seal = seal_json(read_json(path / "run.json"))
    written = b""
    for line in lines:
        line["previous"] = seal
        content, seal = write_line(line)
        written += content
    (path / "journal.jsonl").write_bytes(written)
    acknowledged = {"format": 2, "index": len(lines) - 1, "commit": seal, "config": config}
    write_json(path / "acknowledged.json", acknowledged)


def change_run(path: Path, change: Change) -> None:
    """Change `run.json`, and seal everything again: a run that was started as something else."""
    change_document(path / "run.json", change)
    if (path / "journal.jsonl").read_bytes():
        write_journal(path, read_lines(path))
