"""Updates of single sites per CPU second while annealing, beside dwave-samplers on the same targets.

    STEPPE_DATA=... taskset -c 0 python benchmarks/updates_per_second.py --json FILE

An update is one site of one chain that is given the chance to change. `steppe.anneal(target)` with nothing
chosen runs for some CPU seconds, compiling not counted; D-Wave's annealer makes 16 reads of as many sweeps as
take about as long. Both on one thread, one after the other, `--seeds` times; medians, lowest and highest.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import networkx as nx
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

import steppe
from steppe import datasets, targets
from steppe.results import Cell, Column, Estimate, Provenance, Results, Table
from steppe.run.storage.identity import describe_software

NUM_READS, PROBE = 16, 50


def draw_regular(degree: int) -> steppe.Target:
    """Cuts of a random regular graph of 2000 nodes."""
    return targets.max_cut(np.asarray(nx.random_regular_graph(degree, 2000, seed=0).edges), num_nodes=2000)


CASES: dict[str, tuple[str, Callable[[], steppe.Target]]] = {
    "±J glass 64 × 64": ("4", lambda: targets.spin_glass((64, 64), seed=0)),
    "3-regular, 2000 nodes": ("3", lambda: draw_regular(3)),
    "4-regular, 2000 nodes": ("4", lambda: draw_regular(4)),
    "G81": ("4", lambda: targets.max_cut(datasets.load("gset:G81"))),
    "±J glass 10³": ("6", lambda: targets.spin_glass((10, 10, 10), seed=0)),
    "8-regular, 2000 nodes": ("8", lambda: draw_regular(8)),
    "G1": ("48 on average", lambda: targets.max_cut(datasets.load("gset:G1"))),
    "G22": ("20 on average", lambda: targets.max_cut(datasets.load("gset:G22"))),
}


def measure_steppe(target: steppe.Target, seconds: float, seed: int) -> float:
    """Millions of updates per CPU second of `anneal`."""
    found = steppe.anneal(
        target, key=jax.random.key(seed), until=steppe.until(cpu_seconds=seconds), progress=False
    )
    sweeps = found.trace["evaluations"][-1]  # an evaluation is a sweep of one chain
    return sweeps * target.domain.num_sites / found.cpu_seconds / 1e6


def measure_dwave(target: steppe.Target, seconds: float, seed: int) -> float:
    """Millions of updates per CPU second of D-Wave's annealer."""
    bqm, sampler = steppe.interop.to_bqm(target), SimulatedAnnealingSampler()

    def run(num_sweeps: int) -> float:
        begun = time.process_time()
        sampler.sample(bqm, num_reads=NUM_READS, num_sweeps=num_sweeps, seed=seed)
        return time.process_time() - begun

    num_sweeps = max(int(PROBE * seconds / run(PROBE)), PROBE)
    return NUM_READS * num_sweeps * target.domain.num_sites / run(num_sweeps) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Cell]] = []
    for name in options.only:
        degree, make = CASES[name]
        target, found = make(), {"steppe": [], "dwave": []}
        for seed in range(options.seeds):  # alternating, so that a busy machine is fair to both
            found["steppe"].append(measure_steppe(target, options.seconds, seed))
            found["dwave"].append(measure_dwave(target, options.seconds, seed))
        estimates = {
            side: Estimate(value=float(np.median(values)), low=min(values), high=max(values))
            for side, values in found.items()
        }
        rows.append({"instance": name, "degree": degree, **estimates})
        print(name, {side: round(one.value, 1) for side, one in estimates.items()}, flush=True)
    if options.json:
        options.json.write_text(_tabulate(rows, options).model_dump_json(indent=1) + "\n")


def _tabulate(rows: list[dict[str, Cell]], options: argparse.Namespace) -> Results:
    return Results(
        name="updates-per-second",
        title="Updates of single sites while annealing",
        question="How many sites are given the chance to change in a CPU second?",
        facts={},
        tables=[
            Table(
                key="updates",
                title=f"Median over {options.seeds} seeds, with the lowest and the highest",
                columns=[
                    Column(key="instance", label="instance"),
                    Column(key="degree", label="degree"),
                    Column(
                        key="steppe", label="steppe", unit="millions per CPU s", better="higher", digits=0
                    ),
                    Column(key="dwave", label="dwave", unit="millions per CPU s", better="higher", digits=0),
                ],
                rows=rows,
            )
        ],
        settings={"seconds": options.seconds, "seeds": options.seeds},
        notes=["Processor time of one thread, compiling not counted; both sides in one process, in turn."],
        provenance=Provenance.of_software(
            describe_software(),
            command=f"python benchmarks/updates_per_second.py --seconds {options.seconds:g}"
            f" --seeds {options.seeds}",
            seeds=list(range(options.seeds)),
        ),
    )


if __name__ == "__main__":
    main()
