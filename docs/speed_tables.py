"""Tables of the page on performance, from what `make bench` recorded in docs/results."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def speed_tables() -> dict[str, str]:
    """Every table of the page by the name of its place there."""
    return {"steps": steps(), "growth": growth(), "peers": peers(), "processes": processes()}


def steps() -> str:
    """Cells and samplers with their ratios."""
    rows = [
        (
            row["cell"],
            row["name"],
            f"{row['median']:.4g}",
            f"{row['low']:.4g} to {row['high']:.4g}",
            ratio(row["times_floor"]),
            ratio(row["textbook_over_ours"]),
        )
        for row in recorded("speed")
        if not row["name"].startswith(("textbook", "shifts"))
    ]
    return table(("cell", "sampler", "µs per step", "quartiles", "× floor", "textbook / ours"), rows)


def growth() -> str:
    """Cost per unit of size, and the fitted exponents."""
    found = recorded("speed_growth")
    units = {"sites": "ns per chain and site", "chains": "µs per chain"}
    rows = [
        (row["cell"], f"{row['us']:.4g}", f"{row['unit']:.3g} {units[row['grows']]}")
        for row in found["cells"]
    ]
    fitted = [
        f"{slope['sampler']} in {slope['grows']} {slope['exponent']:.3f}" for slope in found["exponents"]
    ]
    return table(("cell", "µs per step", "cost"), rows) + f"\n\nFitted exponents: {', '.join(fitted)}."


def peers() -> str:
    """Effective draws per second beside other packages."""
    rows = [
        (
            row["cell"],
            row["name"],
            f"{row['effective_per_second']:.3g}",
            f"{row['mean']:.2f} ± {row['standard_error']:.2f}",
        )
        for row in recorded("speed_peers")
    ]
    return table(("target", "sampler", "effective draws per s", "mean log-density"), rows)


def processes() -> str:
    """Figures that need a process of their own."""
    return table(
        ("figure", "measured"), [(name, f"{v:.3g}") for name, v in recorded("speed_processes").items()]
    )


def recorded(name: str) -> Any:
    """What a benchmark wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def ratio(value: float | None) -> str:
    """A ratio, or nothing."""
    return "" if value is None else f"{value:.3g}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown, with names to the left and numbers to the right."""
    head = tuple(head)
    marks = ["---" if column in ("cell", "sampler", "target", "figure") else "---:" for column in head]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
