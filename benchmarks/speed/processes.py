"""What needs a process of its own: import, the first sample, memory, and a second core.

    cd benchmarks && python -m speed.processes    # about two minutes, on an idle machine

Every figure is the median of fresh processes. Times are wall times, because they are what a user waits for.
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

ADULT = """
import resource, time
import jax, numpy as np
import steppe
from steppe.targets import binary_network
rng = np.random.default_rng(0)
x, y = rng.standard_normal((29860, 88), np.float32), rng.uniform(size=29860).astype(np.float32)
target = binary_network(x, y, 500, preset="published")
steppe.sample(target, steppe.edmala(0.1, 0.1, 0.5), key=jax.random.key(0), num_chains=50, num_warmup=0,
              num_draws=1, keep="stats", adapt=False)
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

# What this process set for itself when it began.
PINNING = ("XLA_FLAGS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def fresh(program: str, cores: int = 2) -> float:
    """The number that a program prints in a process of its own, on some of the cores."""
    path = f"{Path('../src').resolve()}:."
    # No thread runs here, so the process may set its own cores before it begins.
    environment = {name: value for name, value in os.environ.items() if name not in PINNING}
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"PYTHONPATH": path, "STEPPE_BENCH_CORES": str(cores)},
        preexec_fn=partial(os.sched_setaffinity, 0, range(cores)),
        check=True,
        capture_output=True,
        text=True,
    )
    return float(printed.stdout.split()[-1])


def figures(repeats: int) -> dict[str, float]:
    """All figures by name."""
    one, two = (statistics.median(fresh(STEPS, cores) for _ in range(repeats)) for cores in (1, 2))
    return {
        "import steppe, s": statistics.median(fresh(IMPORT) for _ in range(repeats)),
        "first sample of four bits with import, s": statistics.median(
            fresh(FIRST_SAMPLE) for _ in range(repeats)
        ),
        "peak memory of 50 networks on 29860 rows, MB": fresh(ADULT),
        "rbm ×100 edmala on one core, µs per step": one,
        "rbm ×100 edmala on two cores, µs per step": two,
        "two cores over one": one / two,
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
