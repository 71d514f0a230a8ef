"""Speed of every sampler beside the floor of the machine and a textbook implementation.

    make bench         # every cell; with torch its networks take most of the time
    make bench-quick   # the main cells, about a minute

One process, one pinned core, one thread per engine; CPU time per step, medians over interleaved repeats.
"""

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from speed import ours
from speed.harness import Case, Timing, measure
from steppe.targets.bernoulli import PAPER_PROBABILITIES

MAIN = ("dula", "dmala", "edula", "edmala")
SITES = {"bernoulli ×4": 4, "ising 25×25 ×100": 62_500}


def cases(quick: bool) -> list[Case]:
    """The cells of the table, floors included."""
    every = tuple(ours.LANGEVIN)
    found = [
        *ours.bernoulli_cases(MAIN if quick else every),
        *ours.rbm_cases(1, MAIN, 200),
        *ours.rbm_cases(16, MAIN, 50),
        *ours.rbm_cases(100, MAIN if quick else (*every, *ours.SITE_WISE), 10),
        *ours.ising_cases(25, 100, MAIN if quick else every, 30),
    ]
    if quick:
        return found
    return [
        *found,
        *ours.rbm_cases(1000, MAIN, 2),
        *ours.network_cases("network 4888×13 ×50", 4888, 13, ("dmala", "edmala"), 1),
        *ours.network_cases("network 3732×88 ×50", 3732, 88, ("dmala", "edmala"), 1),
        *ours.tour_cases(8, 2000),
        *ours.tour_cases(52, 200),
    ]


def textbook_cases(quick: bool) -> list[Case]:
    """The same cells in plain PyTorch."""
    from speed import textbook

    target = ours.random_rbm()
    machine = textbook.Rbm(target.weights, target.hidden_bias, target.visible_bias)
    table = textbook.Table(np.log(PAPER_PROBABILITIES))
    found = [
        *textbook.langevin_cases("bernoulli ×4", table, 4, 4, 20),
        *textbook.langevin_cases("rbm ×1", machine, 1, 784, 20),
        *textbook.langevin_cases("rbm ×16", machine, 16, 784, 10),
        *textbook.langevin_cases("rbm ×100", machine, 100, 784, 3),
        *textbook.langevin_cases("ising 25×25 ×100", textbook.Lattice(25, 0.3), 100, 625, 3),
        *textbook.langevin_cases("ising 25×25 ×100", textbook.Stencil(25, 0.3), 100, 625, 3, label="shifts"),
    ]
    if quick:
        return found
    rng = np.random.default_rng(0)
    for rows, columns in ((4888, 13), (3732, 88)):
        network = textbook.Network(rng.standard_normal((rows, columns)), rng.uniform(size=rows), 500)
        cell, num_sites = f"network {rows}×{columns} ×50", (columns + 2) * 500 + 1
        found += [c for c in textbook.langevin_cases(cell, network, 50, num_sites, 1) if "dmala" in c.name]
    return [*found, *textbook.block_cases("rbm ×100", machine, 100, 784, 3)]


def rows(timings: list[Timing]) -> list[dict]:
    """Every sampler with its ratio to the floor and to the textbook."""
    by_name = {(t.cell, t.name): t for t in timings}
    floors = {t.cell: t.median for t in timings if t.name.startswith("floor")}
    found = []
    for t in timings:
        book, shifts = (by_name.get((t.cell, f"{label} {t.name}")) for label in ("textbook", "shifts"))
        found.append(
            {
                **t._asdict(),
                "times_floor": t.median / floors[t.cell] if t.cell in floors else None,
                "textbook_over_ours": book.median / t.median if book else None,
                "shifts_over_ours": shifts.median / t.median if shifts else None,
                "ns_per_site": t.median * 1e3 / SITES[t.cell] if t.cell in SITES else None,
            }
        )
    return found


def show(found: list[dict]) -> None:
    """Print the table."""
    table = Table(
        "cell", "case", "µs/step", "quartiles", "× floor", "textbook/ours", "ns/site", "first call s"
    )
    for row in found:
        table.add_row(
            row["cell"],
            row["name"],
            f"{row['median']:.2f}",
            f"{row['low']:.2f}–{row['high']:.2f}",
            *("" if v is None else f"{v:.2f}" for v in (row["times_floor"], row["textbook_over_ours"])),
            "" if row["ns_per_site"] is None else f"{row['ns_per_site']:.1f}",
            f"{row['first_call_seconds']:.2f}",
        )
    Console(width=130).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("../out/speed.json"))
    given = parser.parse_args()
    found = cases(given.quick)
    if find_spec("torch"):
        found += textbook_cases(given.quick)
    else:
        sys.stderr.write("torch is not installed: no textbook column\n")
    chosen = [case for case in found if given.only in case.cell]
    result = rows(measure(chosen, given.repeats))
    show(result)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
