"""What `steppe.sample` takes with the block of chains it chooses, beside the best of other blocks.

    cd benchmarks && taskset -c 0 python -m speed.block_widths --chains 1 4 16

CPU time per step of all chains, from two runs that differ in their number of steps only; all blocks of a row
in turns. Blocks that are tried hold 1 to 128 chains, without those that leave lanes idle.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import steppe
from speed.harness import stamp
from speed.ours import random_rbm
from steppe.run.chain_blocks import choose_chain_block
from steppe.targets import ising_lattice

CHAINS = (1, 4, 5, 16, 100, 1000)
WIDTHS = (1, 4, 5, 8, 10, 16, 20, 25, 32, 50, 100, 128)
REPEATS = 3
SECONDS = 0.15
KEY = jax.random.key(0)


def cells() -> dict[str, tuple[steppe.Target, steppe.samplers.Recipe]]:
    """Targets and recipes."""
    lattice = ising_lattice((64, 64), 1 / 3)
    return {
        "rbm edmala": (random_rbm(), steppe.edmala()),
        "ising 64×64 dmala": (lattice, steppe.dmala()),
        "ising 16×16 gibbs, a sweep": (ising_lattice((16, 16), 1 / 3), steppe.gibbs(num_updates=256)),
        "ising 64×64 chromatic_gibbs": (lattice, steppe.chromatic_gibbs()),
    }


def seconds_of(run: Callable[[int], object], num_steps: int) -> float:
    begun = time.process_time()
    run(num_steps)
    return time.process_time() - begun


def measure(target: steppe.Target, recipe: steppe.samplers.Recipe, num_chains: int) -> dict:
    """Microseconds per step by width of blocks, and the one that is chosen."""
    chosen = choose_chain_block(recipe.build(target), num_chains)
    widths = sorted({chosen, *(width for width in WIDTHS if num_chains % width == 0)})

    def runner(width: int) -> Callable[[int], object]:
        return lambda num_steps: steppe.sample(
            target, recipe, key=KEY, num_chains=num_chains, num_warmup=0, num_draws=num_steps, adapt=False,
            keep="stats", chain_block=width, progress=False,
        )  # fmt: skip

    runs = {width: runner(width) for width in widths}
    for run in runs.values():
        run(10)
    probe = max(seconds_of(runs[chosen], 20) / 20, 1e-6)
    few, many = 10, 10 + int(np.clip(SECONDS / probe, 10, 20_000))
    found: dict[int, list[float]] = {width: [] for width in widths}
    for _ in range(REPEATS):
        for width, run in runs.items():
            found[width].append((seconds_of(run, many) - seconds_of(run, few)) / (many - few) * 1e6)
    times = {width: float(np.median(values)) for width, values in found.items()}
    return {"chosen": chosen, "times": times, "ratio": times[chosen] / min(times.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, nargs="+", default=CHAINS)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("../out/speed_blocks.json"))
    given = parser.parse_args()
    table, found = Table("cell", "chains", "chosen", "µs per step", "best", "µs per step", "ratio"), []
    for name, (target, recipe) in cells().items():
        if given.only not in name:
            continue
        for num_chains in given.chains:
            entry = {"cell": name, "num_chains": num_chains, **measure(target, recipe, num_chains), **stamp()}
            print(json.dumps(entry), flush=True)
            found.append(entry)
            best = min(entry["times"], key=entry["times"].__getitem__)
            cells_of = (entry["chosen"], f"{entry['times'][entry['chosen']]:.1f}", best)
            table.add_row(
                name,
                str(num_chains),
                *map(str, cells_of),
                f"{entry['times'][best]:.1f}",
                f"{entry['ratio']:.2f}",
            )
    Console(width=100).print(table)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
