"""What the pages hold: python blocks, shell blocks, `steppe` commands, and files by name."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from sybil import Document
from sybil.parsers.myst import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "api")

SHELL_BLOCK = re.compile(r"^(?:<!-- not run: (.*?) -->\n)?```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED_FILE = re.compile(r"^```toml\n# (\S+\.toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Also behind `exec`, `srun` and the like.
COMMAND = re.compile(r"^(?!\s*#)(?:.*\s)?steppe (?=[a-z])")


class ShellBlock(NamedTuple):
    """A block of shell commands, and why the tests do not run it where they do not."""

    text: str
    why_not_run: str | None


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(path: Path) -> Document:
    """The page with its python blocks, which share their names."""
    return Document.parse(str(path), PythonCodeBlockParser())


def shell_blocks(path: Path) -> list[ShellBlock]:
    found = SHELL_BLOCK.findall(path.read_text(encoding="utf-8"))
    return [ShellBlock(text, reason or None) for reason, text in found]


def commands(path: Path) -> list[list[str]]:
    """The calls of `steppe` in shell blocks, as arguments."""
    lines = [line for block in shell_blocks(path) for line in block.text.replace("\\\n", " ").splitlines()]
    return [shlex.split(COMMAND.sub("", line), comments=True) for line in lines if COMMAND.match(line)]


def named_files(path: Path) -> dict[str, str]:
    """Blocks that begin with the name of the file they stand for."""
    return dict(NAMED_FILE.findall(path.read_text(encoding="utf-8")))


def reader(home: Path) -> dict[str, str]:
    """The environment of a reader of this version, who has `steppe` on the path."""
    script = home / "bin" / "steppe"
    script.parent.mkdir()
    # `diagnose` ends with 1 where a run is not to be trusted; that is an answer and not a failure.
    script.write_text(
        f'#!/bin/sh\n"{sys.executable}" -m steppe "$@"\ncode=$?\n'
        '[ "$1" = diagnose ] && [ $code = 1 ] && exit 0\nexit $code\n'
    )
    script.chmod(0o755)
    found = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": found, "PYTHONPATH": str(ROOT / "src"), "XLA_FLAGS": ""}
