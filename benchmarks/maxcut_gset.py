"""Gset: fraction of the best known cut that annealed samplers reach.

    STEPPE_DATA=... taskset -c 0 python benchmarks/maxcut_gset.py [--seeds 3] [--only G1 ...]

`gibbs` sweeps all nodes one by one with the incremental form; `dmala` moves all nodes at once with an adapted
step size. Seconds include compilation (in the first seed); `cpu` is processor time, which on one core without
other load is the time it takes.
"""

import argparse
import json
import time

import jax
import numpy as np

import steppe
from steppe import datasets, targets

NUM_CHAINS = 8
INSTANCES = ("G1", "G14", "G22", "G43")
# Inverse temperatures at the start and the end: a node of G14 has 12 neighbours, of the others 20 to 48.
RANGES = {"G14": (0.5, 5.0)}
DEFAULT_RANGE = (0.2, 3.0)
NUM_SWEEPS, NUM_LANGEVIN_STEPS = 1000, 30_000


def recipes(num_nodes: int) -> dict:
    return {
        "gibbs": (steppe.gibbs(num_updates=num_nodes, scan="systematic"), NUM_SWEEPS),
        "dmala": (steppe.dmala(), NUM_LANGEVIN_STEPS),
    }


def measured(name: str, graph: datasets.GraphInstance, recipe_name: str, seed: int) -> dict:
    begun, begun_cpu = time.perf_counter(), time.process_time()
    target = targets.max_cut(graph)
    recipe, num_steps = recipes(graph.num_nodes)[recipe_name]
    annealed = steppe.anneal(
        target,
        recipe,
        steppe.parameter_schedule(
            inverse_temperature=steppe.geometric_schedule(*RANGES.get(name, DEFAULT_RANGE))
        ),
        key=jax.random.key(seed),
        num_chains=NUM_CHAINS,
        num_steps=num_steps,
        progress=False,
    )
    cuts = np.asarray(jax.vmap(target.cut_value)(annealed.best_position))
    return {
        "graph": name,
        "nodes": graph.num_nodes,
        "edges": len(graph.edges),
        "sampler": recipe_name,
        "seed": seed,
        "best_cut": int(cuts.max()),
        "best_known": int(graph.best_known),
        "percent_of_best_known": round(100 * float(cuts.max()) / graph.best_known, 3),
        "median_chain_percent": round(100 * float(np.median(cuts)) / graph.best_known, 3),
        "seconds": round(time.perf_counter() - begun, 1),
        "cpu": round(time.process_time() - begun_cpu, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=INSTANCES)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.only:
        graph = datasets.load(f"gset:{name}")
        for recipe_name in recipes(graph.num_nodes):
            for seed in range(arguments.seeds):
                rows.append(measured(name, graph, recipe_name, seed))
                print("  ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    print(json.dumps({"benchmark": "maxcut_gset", "rows": rows}))


if __name__ == "__main__":
    main()
