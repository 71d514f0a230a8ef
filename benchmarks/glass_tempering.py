# ruff: noqa: NPY002 - numba knows the legacy generator
"""Parallel tempering of three-dimensional ±J spin glasses, beside a tempering program in numba.

    python -m glass_tempering --size 6 --temperature 0.6 --out ../docs/results/glass_tempering_6.json

For every disorder sample: a long reference run of the numba program (eight ladders), kept in `--reference` so
that it is made once; and at 8 and at 64 chains a run of that program and one of
`steppe.parallel_tempering(base=chromatic_gibbs())` with its adapted ladder, as many draws of as many chains;
or one from β = 0 (`--ladder uniform`), or with the 16 temperatures of that program (`--ladder given`). CPU
times are compared per draw.
Energies are per spin, `q²` is the mean squared overlap of independent replicas. Times are CPU seconds of one
thread after compiling; the cost of adapting the ladder, mostly of compiling, stands beside them.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import jax
import numba
import numpy as np

import steppe
from steppe.kernel.compose import Recipe
from steppe.run.storage.identity import describe_software
from steppe.targets import ising_graph


def main() -> None:
    options = read_options()
    made = {"script": f"python -m glass_tempering {' '.join(sys.argv[1:])}", "software": describe_software()}
    rows = []
    for seed in range(options.samples):
        row = {"sample": seed, **compare(options, seed)}
        print(json.dumps(row), flush=True)
        rows.append(row)
        if options.out:
            Path(options.out).write_text(
                json.dumps(
                    {**made, "options": vars(options), "load": os.getloadavg(), "rows": rows}, indent=1
                )
            )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--chains", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--draws", type=int, default=800)
    parser.add_argument("--rival-draws", type=int, help="by default as many")
    parser.add_argument("--ladder", choices=("adapted", "uniform", "given"), default="adapted")
    parser.add_argument("--reference-draws", type=int, default=10_000)
    parser.add_argument("--reference", default="glass_references.json", help="file of reference values")
    parser.add_argument("--out")
    options = parser.parse_args()
    options.rival_draws = options.rival_draws or options.draws
    return options


def make_glass(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bonds of ±1 on a periodic cubic lattice."""
    sites = np.arange(size**3).reshape(size, size, size)
    pairs = [np.stack([sites.ravel(), np.roll(sites, -1, axis).ravel()], axis=1) for axis in range(3)]
    edges = np.concatenate(pairs)
    return edges, np.random.default_rng(seed).choice([-1.0, 1.0], len(edges))


def compare(options: argparse.Namespace, seed: int) -> dict:
    edges, weights = make_glass(options.size, seed)
    reference = find_reference(edges, weights, options, seed)
    target = ising_graph(edges, weights / options.temperature, options.size**3)
    begun = time.process_time()
    given = (options.temperature / list_temperatures(options.temperature)).tolist()
    tempered = steppe.parallel_tempering(
        base=steppe.chromatic_gibbs(),
        inverse_temperatures=given if options.ladder == "given" else None,
        hottest=0.0 if options.ladder == "uniform" else None,
    )
    hottest = given[0]
    if options.ladder != "given":
        tuned = steppe.tune_ladder(target, tempered, key=jax.random.key(seed))
        tempered, hottest = tuned.recipe, float(tuned.inverse_temperatures[0])
    row = {
        "reference": reference,
        "adapting": time.process_time() - begun,
        "hottest": hottest,
    }
    for chains in options.chains:
        shape = options.size**3, options.temperature
        rival = run_numba(edges, weights, *shape, options.rival_draws, chains, seed)
        ours = run_steppe(target, tempered, *shape, options.draws, chains, seed)
        row[f"chains {chains}"] = {
            "numba": rival,
            "steppe": ours,
            "ratio of CPU": ours["seconds"] / options.draws / (rival["seconds"] / options.rival_draws),
            "off in energy": ours["energy"] - reference["energy"],
            "off in q2": ours["q2"] - reference["q2"],
        }
    return row


def find_reference(edges: np.ndarray, weights: np.ndarray, options: argparse.Namespace, seed: int) -> dict:
    """Values of a long run, from the file if it was made before."""
    path, name = Path(options.reference), f"{options.size} {options.temperature} {seed}"
    known = json.loads(path.read_text()) if path.exists() else {}
    if name not in known:
        shape = options.size**3, options.temperature, options.reference_draws, 8
        known[name] = run_numba(edges, weights, *shape, seed + 1000)
        path.write_text(json.dumps(known, indent=1))
    return known[name]


def run_steppe(
    target: steppe.Target,
    recipe: Recipe,
    num_spins: int,
    temperature: float,
    num_draws: int,
    num_chains: int,
    seed: int,
) -> dict:
    def sample(draws: int, key: jax.Array) -> steppe.Run:
        return steppe.sample(
            target,
            recipe,
            key=key,
            num_chains=num_chains,
            num_warmup=draws // 2,
            num_draws=draws,
            progress=False,
        )

    key = jax.random.key(seed)
    sample(8, key)  # compiles
    begun = time.process_time()
    run = sample(num_draws, jax.random.fold_in(key, 1))
    seconds = time.process_time() - begun
    energy = -run.trace.statistic("log_density").mean() * temperature / num_spins
    swaps = run.trace.statistic("swap_rate")
    trips = run.trace.statistic("round_trips")
    return {
        "num_rungs": swaps.shape[-1] + 1,
        "barrier": float(np.sum(1 - swaps.mean(axis=(0, 1)))),
        "energy": float(energy),
        "q2": measure_overlap(2.0 * run.levels - 1),
        "seconds": seconds,
        "round_trips": int((trips[:, -1] - trips[:, 0]).sum()),
    }


def measure_overlap(spins: np.ndarray) -> float:
    """Mean squared overlap of all pairs of chains, (chain, draw, site)."""
    # The sum over all pairs of the squared overlap of a draw is that of its Gram matrix, less its diagonal.
    num_chains, num_draws, num_sites = spins.shape
    total = 0.0
    for draw in range(num_draws):
        gram = spins[:, draw] @ spins[:, draw].T / num_sites
        total += float(np.sum(gram**2)) - num_chains
    return total / (num_draws * num_chains * (num_chains - 1))


def run_numba(
    edges: np.ndarray,
    weights: np.ndarray,
    num_spins: int,
    temperature: float,
    num_draws: int,
    num_chains: int,
    seed: int,
) -> dict:
    neighbours, bonds = list_neighbours(edges, weights, num_spins)
    betas = 1 / list_temperatures(temperature)
    temper(neighbours, bonds, betas, 2, 2, 0)  # compiles
    begun = time.process_time()
    found = [
        temper(neighbours, bonds, betas, num_draws // 2, num_draws, seed * 1000 + c)
        for c in range(num_chains)
    ]
    seconds = time.process_time() - begun
    spins = np.stack([states for states, _ in found]).astype(float)
    energy = float(np.mean([energies.mean() for _, energies in found]) / num_spins)
    return {"energy": energy, "q2": measure_overlap(spins), "seconds": seconds}


def list_temperatures(temperature: float) -> np.ndarray:
    """Those of the numba program; the last exactly the one asked for."""
    return np.append(np.geomspace(2.5, temperature, 16)[:-1], temperature)


def list_neighbours(edges: np.ndarray, weights: np.ndarray, num_spins: int) -> tuple[np.ndarray, np.ndarray]:
    lists = [[] for _ in range(num_spins)]
    for (a, b), weight in zip(edges, weights, strict=True):
        lists[a].append((b, weight))
        lists[b].append((a, weight))
    return (
        np.array([[b for b, _ in one] for one in lists], np.int64),
        np.array([[w for _, w in one] for one in lists]),
    )


@numba.njit(cache=False)
def temper(neighbours, bonds, betas, num_warmup, num_draws, seed):
    """Metropolis sweeps in order and swaps of all neighbours; states and energies at the last temperature."""
    np.random.seed(seed)
    num_spins, degree = neighbours.shape
    num_rungs = len(betas)
    spins = np.empty((num_rungs, num_spins), np.int8)
    for rung in range(num_rungs):
        for site in range(num_spins):
            spins[rung, site] = 1 if np.random.random() < 0.5 else -1
    energy = np.zeros(num_rungs)
    for rung in range(num_rungs):
        for site in range(num_spins):
            for k in range(degree):
                energy[rung] -= 0.5 * bonds[site, k] * spins[rung, site] * spins[rung, neighbours[site, k]]
    kept = np.empty((num_draws, num_spins), np.int8)
    energies = np.empty(num_draws)
    for draw in range(num_warmup + num_draws):
        for rung in range(num_rungs):
            for site in range(num_spins):
                field = 0.0
                for k in range(degree):
                    field += bonds[site, k] * spins[rung, neighbours[site, k]]
                cost = 2 * spins[rung, site] * field
                if cost <= 0 or np.random.random() < np.exp(-betas[rung] * cost):
                    spins[rung, site] = -spins[rung, site]
                    energy[rung] += cost
        for rung in range(num_rungs - 1):
            ratio = (betas[rung + 1] - betas[rung]) * (energy[rung + 1] - energy[rung])
            if ratio >= 0 or np.random.random() < np.exp(ratio):
                for site in range(num_spins):
                    held = spins[rung, site]
                    spins[rung, site] = spins[rung + 1, site]
                    spins[rung + 1, site] = held
                energy[rung], energy[rung + 1] = energy[rung + 1], energy[rung]
        if draw >= num_warmup:
            kept[draw - num_warmup] = spins[num_rungs - 1]
            energies[draw - num_warmup] = energy[num_rungs - 1]
    return kept, energies


if __name__ == "__main__":
    main()
