"""What the pages hold: python blocks and `steppe` commands."""

import re
import shlex
from pathlib import Path

from sybil import Document
from sybil.parsers.myst import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "api")

SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Also behind `exec`, `srun` and the like.
COMMAND = re.compile(r"^(?!\s*#)(?:.*\s)?steppe (?=[a-z])")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(path: Path) -> Document:
    """The page with its python blocks, which share their names."""
    return Document.parse(str(path), PythonCodeBlockParser())


def commands(path: Path) -> list[list[str]]:
    """The calls of `steppe` in shell blocks, as arguments."""
    blocks = SHELL_BLOCK.findall(path.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(COMMAND.sub("", line), comments=True) for line in lines if COMMAND.match(line)]
