"""Clusters beside colours on square lattices near the critical point, and their energies beside Kaufman's.

    taskset -c 0 python benchmarks/lattice_energies.py [--lengths 32 64 128] [--json FILE]

At T = 2.3, 20 chains, one thread: the mean energy with the standard error of 20 chain means, its distance
from the exact value of the finite lattice, and effective draws of the squared magnetisation per second of
processor time, warm-up included; second call, so that nothing is compiled in it.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import arviz_stats
import jax
import numpy as np
from speed.harness import stamp

import steppe
from kaufman import kaufman_energy
from steppe.targets import ising_lattice

TEMPERATURE = 2.3
NUM_CHAINS = 20
# Draws of each sampler by length: of clusters so many that the energy is known to a thousandth.
NUM_DRAWS = {
    "swendsen_wang": {32: 2500, 64: 2400, 128: 1000},
    "chromatic_gibbs": {32: 2500, 64: 4000, 128: 4000},
}


def sample_lattice(name: str, length: int, num_draws: int, seed: int) -> tuple[float, steppe.Run]:
    """CPU seconds and draws of a run."""
    target = ising_lattice((length, length), 1 / TEMPERATURE)
    begun = time.process_time()
    run = steppe.sample(
        target, getattr(steppe, name)(), key=jax.random.key(seed), num_chains=NUM_CHAINS,
        num_warmup=num_draws // 4, num_draws=num_draws, progress=False,
    )  # fmt: skip
    return time.process_time() - begun, run


def measure(name: str, length: int) -> dict:
    """Energy and effective draws of one sampler on one lattice."""
    sample_lattice(name, length, 8, seed=0)
    seconds, run = sample_lattice(name, length, NUM_DRAWS[name][length], seed=1)
    spins = 2 * np.asarray(run.levels, np.int32) - 1
    squares = spins.sum(-1, dtype=float) ** 2
    effective = float(arviz_stats.ess(squares, method="mean"))
    means = run.trace.statistic("log_density").astype(float).mean(axis=1) * TEMPERATURE
    error, exact = float(means.std(ddof=1) / NUM_CHAINS**0.5), kaufman_energy(length, 1 / TEMPERATURE)
    return {
        "length": length,
        "sampler": name,
        "seconds": seconds,
        "effective_squares": effective,
        "effective_squares_per_second": effective / seconds,
        "energy": float(means.mean()),
        "exact_energy": float(exact),
        "standard_errors_away": float((means.mean() - exact) / error),
        "relative_error": error / float(exact),
        **stamp(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--samplers", nargs="+", default=list(NUM_DRAWS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = json.loads(given.json.read_text()) if given.json and given.json.exists() else []
    for length in given.lengths:
        for name in given.samplers:
            row = measure(name, length)
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
            found = [old for old in found if (old["length"], old["sampler"]) != (length, name)] + [row]
            if given.json is not None:
                given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
