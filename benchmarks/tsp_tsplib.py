"""TSPLIB: how close annealed tours come to the optimum, and how many near-optimal tours sampling finds.

    STEPPE_DATA=... taskset -c 0 python benchmarks/tsp_tsplib.py [--only NAME ...] [--file PATH OPTIMUM]

Per instance and seed: `steppe.anneal` with informed 2-opt and insertion moves, then `steppe.sample` at a
fixed temperature from the best tour of every chain, and a ranking of what was met. Seconds include
compilation (in the first seed); `cpu` is processor time, which on one core without other load is the time it
takes. Gaps are to the known optimum.
The asymmetric instance is random, and its optimum is computed here by dynamic programming.
"""

import argparse
import json
import time

import numpy as np

from steppe import datasets
from steppe_edlp.tsp.instance import TOLERANCE, Size, solve

SIZE = Size(num_chains=16, num_steps=4000, num_draws=1000, num_seeds=1)
INSTANCES = ("burma14", "ulysses22", "berlin52", "eil76", "kroA100")


def held_karp(distances: np.ndarray) -> float:
    """Length of the shortest tour, exactly; 2**(n-1) sets of cities."""
    last = len(distances) - 1
    best = np.full((2**last, last), np.inf)
    best[2 ** np.arange(last), np.arange(last)] = distances[last, :last]
    for members in range(1, 2**last):
        inside = [city for city in range(last) if members >> city & 1]
        for city in range(last):
            if not members >> city & 1:
                value = (best[members, inside] + distances[inside, city]).min()
                best[members | 1 << city, city] = value
    return float((best[-1] + distances[:last, last]).min())


def random_asymmetric(num_cities: int = 14) -> tuple[np.ndarray, float]:
    distances = np.random.default_rng(0).integers(1, 1000, (num_cities, num_cities)).astype(float)
    np.fill_diagonal(distances, 0)
    return distances, held_karp(distances)


def measured(name: str, distances: np.ndarray, optimum: float, seed: int) -> dict:
    begun, begun_cpu = time.perf_counter(), time.process_time()
    best, found = solve(distances, seed, SIZE)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    near = found.costs <= (1 + TOLERANCE) * optimum
    robust = np.flatnonzero(near)[0] if near.any() else 0
    gaps = 100 * (best / optimum - 1)
    return {
        "instance": name,
        "cities": len(distances),
        "seed": seed,
        "gap_percent": round(float(min(gaps.min(), 100 * (found.costs.min() / optimum - 1))), 4),
        "median_chain_gap_percent": round(float(np.median(gaps)), 3),
        "seconds": round(seconds, 1),
        "cpu": round(cpu, 1),
        "tours_within_2_percent": int(near.sum()),
        "alternatives_of_most_robust": int(found.num_alternatives[robust]),
        "alternatives_median": float(np.median(found.num_alternatives[near])) if near.any() else 0.0,
        "gap_of_most_robust_percent": round(100 * (float(found.costs[robust]) / optimum - 1), 3),
        "disrupted_cost_percent": [
            round(100 * (float(value) / optimum - 1), 1)
            for value in np.quantile(found.disrupted_cost[near], [0, 0.5, 1])
        ]
        if near.any()
        else [],
    }


def problems(arguments: argparse.Namespace):
    for name in INSTANCES if arguments.only is None else arguments.only:
        if name == "asymmetric":
            continue
        instance = datasets.load(f"tsplib:{name}")
        yield name, instance.distances, instance.optimum
    if not arguments.only or "asymmetric" in arguments.only:
        yield "random asymmetric", *random_asymmetric()
    if arguments.file:
        path, optimum = arguments.file
        instance = datasets.read_tsplib(path)
        yield instance.name, instance.distances, float(optimum)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--file", nargs=2, metavar=("PATH", "OPTIMUM"))
    arguments = parser.parse_args()
    rows = []
    for name, distances, optimum in problems(arguments):
        for seed in range(arguments.seeds):
            rows.append(measured(name, distances, optimum, seed))
            print("  ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    print(json.dumps({"benchmark": "tsp_tsplib", "rows": rows}))


if __name__ == "__main__":
    main()
