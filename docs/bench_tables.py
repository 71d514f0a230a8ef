"""Sections of the page on problems of other papers, from what `steppe bench` recorded in docs/results."""

import json
from pathlib import Path
from typing import Any

from speed_tables import table

RESULTS = Path(__file__).parent / "results"


def write_suites() -> str:
    """A section for every recorded suite."""
    paths = sorted(RESULTS.glob("bench_*.json"))
    return "\n\n".join(write_suite(json.loads(path.read_text(encoding="utf-8"))) for path in paths)


def write_suite(results: dict[str, Any]) -> str:
    """Question, facts, table and notes of one suite, with the command and the commit that made it."""
    scores, made = results["tables"][0], results["provenance"]
    columns = [
        column
        for column in scores["columns"]
        if any(row.get(column["key"]) is not None for row in scores["rows"])
    ]
    rows = [
        tuple(show(row.get(column["key"]), column["digits"]) for column in columns) for row in scores["rows"]
    ]
    parts = [
        f"## {results['title']}",
        f"{results['question']} `{made['command']}` at commit `{made['commit'][:9]}`. {scores['title']}.",
        "\n".join(f"- {name}: {fact}" for name, fact in results["facts"].items()),
        table(tuple(head(column) for column in columns), rows),
        "\n".join(f"- {note}" for note in results["notes"]),
    ]
    return "\n\n".join(part for part in parts if part)


def head(column: dict[str, Any]) -> str:
    """Heading of a column with its unit."""
    return f"{column['label']}, {column['unit']}" if column["unit"] == "%" else column["label"]


def show(cell: Any, digits: int) -> str:
    """A cell: a number, or an estimate with its ends where they differ."""
    if cell is None:
        return ""
    if isinstance(cell, dict):
        value, low, high = (number(cell[end], digits) for end in ("value", "low", "high"))
        return value if low == high else f"{value} ({low}–{high})"
    return cell if isinstance(cell, str) else number(cell, digits)


def number(value: float, digits: int) -> str:
    """A number without zeros at its end."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
