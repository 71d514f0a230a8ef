"""How the cost of a step grows with sites and with chains, through `steppe.sample` itself.

    cd benchmarks && python -m speed.growth     # some minutes

Every cell is two calls of `steppe.sample` that differ only in their number of steps; the difference is the
cost of the steps alone. An exponent of 1 is linear growth; it is fitted over the logarithms of all cells.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import steppe
from speed.harness import Case, measure
from speed.ours import LANGEVIN, random_rbm
from steppe.targets import ising_lattice

LENGTHS = (8, 16, 32, 64, 128, 256)
CHAINS = (1, 10, 100, 1000, 10_000)
NAMES = ("edula", "edmala")
LATTICE_CHAINS = 100
THINNING = 5
# Chain-sites and chains per call, so that every cell takes about as long.
LATTICE_WORK = 40_000_000
MACHINE_WORK = 15_000


def runs(target: steppe.Target, name: str, num_chains: int, num_rows: int) -> Callable[[], steppe.Run]:
    """A call of `steppe.sample` of so many rows, with nothing kept."""
    return lambda: steppe.sample(
        target,
        LANGEVIN[name],
        key=jax.random.key(0),
        num_chains=num_chains,
        num_warmup=0,
        num_draws=num_rows,
        thinning=THINNING,
        keep="none",
        adapt=False,
        progress=False,
    )


def pair(cell: str, target: steppe.Target, name: str, num_chains: int, num_steps: int) -> list[Case]:
    """The long and the short call of a cell; a case counts as one step, so that their times subtract."""
    rows = max(num_steps // THINNING, 1)
    return [
        Case(cell, f"{name} {length}", runs(target, name, num_chains, 1 + extra), 1)
        for length, extra in (("long", rows), ("short", 0))
    ]


def cells() -> dict[str, tuple[str, int, int, list[Case]]]:
    """By cell and sampler: what grows, its size, the number of steps, and the two calls."""
    found = {}
    machine = random_rbm()
    for name in NAMES:
        for length in LENGTHS:
            steps = _steps(LATTICE_WORK, length * length * LATTICE_CHAINS)
            cell = f"ising {length}×{length} ×{LATTICE_CHAINS} {name}"
            cases = pair(cell, ising_lattice((length, length), 0.3), name, LATTICE_CHAINS, steps)
            found[cell] = ("sites", length * length, steps, cases)
        for chains in CHAINS:
            steps = _steps(MACHINE_WORK, chains)
            cell = f"rbm ×{chains} {name}"
            found[cell] = ("chains", chains, steps, pair(cell, machine, name, chains, steps))
    return found


def _steps(work: int, per_step: int) -> int:
    return max(work // per_step // THINNING, 1) * THINNING


def rows(repeats: int) -> list[dict]:
    """Microseconds per step of every cell, and per chain and site or per chain."""
    grid = cells()
    timings = measure([case for *_, pair_ in grid.values() for case in pair_], repeats)
    median = {(t.cell, t.name.split()[-1]): t.median for t in timings}
    found = []
    for cell, (grows, size, steps, _) in grid.items():
        per_step = (median[cell, "long"] - median[cell, "short"]) / steps
        name = cell.split()[-1]
        unit = per_step * 1e3 / (size * LATTICE_CHAINS) if grows == "sites" else per_step / size
        found.append(
            {"cell": cell, "sampler": name, "grows": grows, "size": size, "us": per_step, "unit": unit}
        )
    return found


def exponents(found: list[dict]) -> list[dict]:
    """Slope of log time against log size, sampler by sampler."""
    slopes = []
    for grows in ("sites", "chains"):
        for name in NAMES:
            chosen = [row for row in found if row["grows"] == grows and row["sampler"] == name]
            sizes, times = ([np.log(row[key]) for row in chosen] for key in ("size", "us"))
            slopes.append(
                {"grows": grows, "sampler": name, "exponent": float(np.polyfit(sizes, times, 1)[0])}
            )
    return slopes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("../out/speed_growth.json"))
    given = parser.parse_args()
    found = rows(given.repeats)
    slopes = exponents(found)
    table = Table("cell", "µs/step", "ns per chain-site, or µs per chain")
    for row in found:
        table.add_row(row["cell"], f"{row['us']:.1f}", f"{row['unit']:.2f}")
    console = Console(width=110)
    console.print(table)
    for slope in slopes:
        console.print(f"{slope['sampler']}: time grows as {slope['grows']} to the {slope['exponent']:.3f}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"cells": found, "exponents": slopes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
