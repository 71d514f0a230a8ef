"""Short tours: length found, and processor time after compiling, against the known optimum.

STEPPE_DATA=... taskset -c 0 python benchmarks/short_tours.py [NAME ...]
"""

import os
import sys
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax

from steppe import datasets
from steppe.routes import find_short_tours
from steppe.targets import tsp

NUM_SEEDS = 5


def main(names: list[str]) -> None:
    """One row per instance."""
    for name in names:
        instance = datasets.load(f"tsplib:{name}")
        target = tsp(instance)
        find_short_tours(target, key=jax.random.key(0), num_bridges=1)
        costs, seconds = [], []
        for seed in range(NUM_SEEDS):
            started = time.process_time()
            costs.append(float(find_short_tours(target, key=jax.random.key(seed)).costs[0]))
            seconds.append(time.process_time() - started)
        reached = sum(cost == instance.optimum for cost in costs)
        sys.stdout.write(
            f"{name}: optimum {instance.optimum:g} reached from {reached} of {NUM_SEEDS} seeds, longest "
            f"{max(costs):g}, {min(seconds):.1f} to {max(seconds):.1f} CPU s\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or ["kroA100", "lin105", "pr76"])
