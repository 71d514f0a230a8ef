"""Speed of two checkouts in turn: is one slower? The ratio of every cell with its interval.

    cd benchmarks && python -m speed.alternate ../../old            # this checkout beside another one
    python -m speed.alternate ../../old --times 9 --out ../docs/results/speed_alternate.json

Each turn runs `python -m speed --quick` of both checkouts, each with its own `src`, the order changing from
turn to turn. A cell's ratio is new over old within a turn; the interval of its geometric mean over turns is
Student's at 95 %.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

LEVEL = 0.95
LIMIT = 1.05
HERE = Path(__file__).parents[2]


def measure(checkout: Path) -> dict[str, float]:
    """Run the main cells of a checkout: µs per step by cell and case."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "speed.json"
        command = [sys.executable, "-m", "speed", "--quick", "--out", str(out)]
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        subprocess.run(
            command, cwd=checkout / "benchmarks", env=environment, check=True, stdout=subprocess.DEVNULL
        )
        rows = json.loads(out.read_text(encoding="utf-8"))
    return {f"{row['cell']} {row['name']}": row["median"] for row in rows}


def summarize(turns: list[tuple[dict[str, float], dict[str, float]]]) -> list[dict]:
    """The geometric mean of new over old and its interval, by cell."""
    found = []
    for cell in turns[0][0]:
        logs = np.log([new[cell] / old[cell] for old, new in turns])
        half = stats.t.ppf((1 + LEVEL) / 2, len(logs) - 1) * np.std(logs, ddof=1) / np.sqrt(len(logs))
        mean, low, high = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half])
        found.append({"cell": cell, "ratio": mean, "low": low, "high": high, "is_slower": bool(low > LIMIT)})
    return found


def name_commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--out", type=Path, default=HERE / "out" / "speed_alternate.json")
    given = parser.parse_args()
    old, turns = given.old.resolve(), []
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for turn in range(given.times):
        order = (old, HERE) if turn % 2 == 0 else (HERE, old)
        measured = {checkout: measure(checkout) for checkout in order}
        turns.append((measured[old], measured[HERE]))
        sys.stderr.write(f"turn {turn + 1} of {given.times}\n")
        if turn:
            rows = summarize(turns)
            record = {"old": name_commit(old), "new": name_commit(HERE), "turns": turn + 1, "cells": rows}
            given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        verdict = f"slower than {LIMIT}" if row["is_slower"] else ""
        print(f"{row['cell']:40} {row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}] {verdict}")


if __name__ == "__main__":
    main()
