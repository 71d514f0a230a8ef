"""What needs a process of its own: import, the first sample, memory, and a second core.

    cd benchmarks && python -m speed.processes    # about seven minutes, on an idle machine

Every figure but memory is the median of fresh processes. Times are wall times, because they are what a user
waits for; those of four bits, and what files add, are processor times.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

IMPORT = """
import time; begun = time.perf_counter()
import steppe
print(time.perf_counter() - begun)
"""

FIRST_SAMPLE = """
import time; begun = time.perf_counter()
import jax, steppe
from steppe.targets import paper_bernoulli
steppe.sample(paper_bernoulli(), steppe.dmala(), key=jax.random.key(0))
print(time.perf_counter() - begun)
"""

AFTER_IMPORT = """
import time
import jax, steppe
from steppe.targets import paper_bernoulli
begun = time.perf_counter()
steppe.sample(paper_bernoulli(), steppe.dmala(), key=jax.random.key(0))
print(time.perf_counter() - begun)
"""

ADULT = """
import resource, time
import jax, numpy as np
import steppe
from steppe.targets import binary_network
rng = np.random.default_rng(0)
x, y = rng.standard_normal((29860, 88), np.float32), rng.uniform(size=29860).astype(np.float32)
target = binary_network(x, y, 500, preset="published")
recipe = steppe.edmala(step_size=0.1, center_step_size=0.1, coupling_variance=0.5)
steppe.sample(target, recipe, key=jax.random.key(0), num_chains=50, num_warmup=0, num_draws=1, keep="stats",
              adapt=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

STEPS = """
import time
import jax
from speed import ours
case = next(case for case in ours.rbm_cases(100, ("edmala",), 60) if case.name == "edmala")
case.run()
times = []
for _ in range(7):
    begun = time.perf_counter()
    case.run()
    times.append(time.perf_counter() - begun)
print(sorted(times)[3] / 60 * 1e6)
"""

# Blocks of chains on two devices of one core each, and on one.
SAMPLE = """
import time
import jax, steppe
from speed import ours
target = ours.random_rbm()
def seconds(num_draws):
    begun = time.perf_counter()
    steppe.sample(target, ours.LANGEVIN["edmala"], key=jax.random.key(0), num_chains=100, num_warmup=0,
                  num_draws=num_draws, thinning=10, keep="none", adapt=False, progress=False, chain_block=25,
                  devices=len(jax.devices()))
    return time.perf_counter() - begun
seconds(1)
times = sorted(seconds(31) - seconds(1) for _ in range(3))
print(times[1] / 300 * 1e6)
"""

# The same of sweeps of a lattice.
SWEEPS = """
import time
import jax, steppe
from steppe.targets import ising_lattice
target = ising_lattice((64, 64), 1 / 3)
def seconds(num_draws):
    begun = time.perf_counter()
    steppe.sample(target, steppe.chromatic_gibbs(), key=jax.random.key(0), num_chains=64, num_warmup=0,
                  num_draws=num_draws, thinning=100, keep="none", adapt=False, progress=False, chain_block=32,
                  devices=len(jax.devices()))
    return time.perf_counter() - begun
seconds(1)
times = sorted(seconds(21) - seconds(1) for _ in range(3))
print(times[1] / 2000 * 1e6)
"""

# What files, a bar and commits add to the bare loop, for one block of chains.
OVERHEAD = """
import statistics, tempfile, time
import jax, steppe
from speed import ours
target, chains, steps = ours.random_rbm(), 25, 2000
bare = ours.case("", "", ours.LANGEVIN["edmala"], target, chains, steps).run
def stored(num_draws):
    with tempfile.TemporaryDirectory() as directory:
        steppe.sample(target, ours.LANGEVIN["edmala"], key=jax.random.key(0), num_chains=chains, num_warmup=0,
                      num_draws=num_draws, thinning=10, adapt=False, progress=True, chain_block=chains,
                      out=directory + "/run")
def seconds(run, *given):
    begun = time.process_time()
    run(*given)
    return time.process_time() - begun
bare(), stored(1)
print(statistics.median(
    (seconds(stored, 1 + steps // 10) - seconds(stored, 1)) / seconds(bare) for _ in range(5)
))
"""

FOUR_BITS = """
from speed import ours
from speed.harness import measure
cases = ours.bernoulli_cases(("edmala",))
print(measure(cases, 15)[0].median)
"""
ONE_KERNEL = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000"
TWO_DEVICES = "--xla_force_host_platform_device_count=2"

# What this process set for itself when it began.
PINNING = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def fresh(program: str, cores: int = 2, flags: str = "") -> float:
    """The number that a program prints in a process of its own, on some of the cores, with flags for XLA."""
    path = f"{Path('../src').resolve()}:."
    # No thread runs here, so the process may set its own cores before it begins.
    environment = {name: value for name, value in os.environ.items() if name not in PINNING}
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"PYTHONPATH": path, "STEPPE_BENCH_CORES": str(cores), "XLA_FLAGS": flags},
        preexec_fn=partial(os.sched_setaffinity, 0, range(cores)),
        check=True,
        capture_output=True,
        text=True,
    )
    return float(printed.stdout.split()[-1])


def figures(repeats: int) -> dict[str, float]:
    """All figures by name; pairs that are compared are measured in turns."""
    middle = lambda program, *given: statistics.median(fresh(program, *given) for _ in range(repeats))  # noqa: E731
    steps = [(fresh(STEPS, 1), fresh(STEPS, 2)) for _ in range(repeats)]
    blocks = [(fresh(SAMPLE, 1), fresh(SAMPLE, 2, TWO_DEVICES)) for _ in range(repeats)]
    sweeps = [(fresh(SWEEPS, 1), fresh(SWEEPS, 2, TWO_DEVICES)) for _ in range(repeats)]
    return {
        "import steppe, s": middle(IMPORT),
        "first sample of four bits with import, s": middle(FIRST_SAMPLE),
        "first sample of four bits after import, s": middle(AFTER_IMPORT),
        "peak memory of 50 networks on 29860 rows, MB": fresh(ADULT),
        "four bits ×4 edmala, µs per step": middle(FOUR_BITS, 1),
        "four bits ×4 edmala, small loops as one kernel, µs per step": middle(FOUR_BITS, 1, ONE_KERNEL),
        "rbm ×100 edmala, bare loop on one core, µs per step": statistics.median(one for one, _ in steps),
        "bare loop, two cores over one": statistics.median(one / two for one, two in steps),
        "rbm ×100 edmala, `sample` in blocks of 25 on one core, µs per step": statistics.median(
            one for one, _ in blocks
        ),
        "`sample` with files, bar and commits over the bare loop": middle(OVERHEAD, 1),
        "`sample` on two devices over one": statistics.median(one / two for one, two in blocks),
        "`sample` of chromatic sweeps, 64² ×64, on two devices over one": statistics.median(
            one / two for one, two in sweeps
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("../out/speed_processes.json"))
    given = parser.parse_args()
    found = figures(given.repeats)
    table = Table("figure", "measured")
    for name, value in found.items():
        table.add_row(name, f"{value:.3g}")
    Console(width=100).print(table)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
