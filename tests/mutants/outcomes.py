"""What became of mutants: one line each of a file that is kept with the tests, so that a trial goes on.

A line names the text that was changed by its digest. An outcome is old once that text is another, and the
mutant is tried again; a killer that is known by then is the first test it meets.
"""

import ast
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from .operators import Mutant
from .patch import find_outermost_function

FILE = Path(__file__).with_name("outcomes.jsonl")
KILLED, SURVIVED, UNTOUCHED = "killed", "survived", "untouched"


class Outcome(NamedTuple):
    """What became of a mutant, now and when it was first tried, and the test that noticed it."""

    name: str
    package: str
    what: str
    text: str
    first: str
    outcome: str
    killer: str


def describe(mutant: Mutant) -> str:
    """A mutant in one line."""
    before, after = (" ".join(text.split())[:60] for text in (mutant.before, mutant.after))
    return f"{mutant.module}, {mutant.function}: {before} -> {after}"


def digest_text(mutant: Mutant, source: str) -> str:
    """Digest of the outermost function that holds a mutant, without layout and comments; else the module."""
    tree: ast.AST = ast.parse(source)
    for name in (find_outermost_function(source, mutant) or "").split("."):
        inside = ast.walk(tree) if name else ()
        tree = next(
            (
                node
                for node in inside
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
                and node.name == name
                and node.lineno <= mutant.line <= (node.end_lineno or node.lineno)
            ),
            tree,
        )
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def read_outcomes() -> dict[str, Outcome]:
    """All outcomes by the name of the mutant."""
    if not FILE.exists():
        return {}
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {row["name"]: Outcome(**row) for row in rows}


def keep_outcome(outcome: Outcome) -> None:
    """Write an outcome in place of an older one."""
    rows = read_outcomes() | {outcome.name: outcome}
    lines = [json.dumps(row._asdict()) for _, row in sorted(rows.items())]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
