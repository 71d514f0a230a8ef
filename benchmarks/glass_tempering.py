# ruff: noqa: NPY002 - numba knows the legacy generator
"""Parallel tempering of three-dimensional ±J spin glasses, beside a tempering program in numba.

    python -m glass_tempering --size 6 --temperature 0.6 --samples 5 --out glass_6.json

For every disorder sample: a long reference run of the numba program (two independent ladders), a short one,
and `steppe.parallel_tempering(base=chromatic_gibbs())` with its adapted ladder. Energies are per spin, `q²`
is the mean squared overlap of independent replicas. Times are CPU seconds of one thread after compiling; the
cost of adapting the ladder is reported beside them.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numba
import numpy as np

import steppe
from steppe.targets import ising_graph


def main() -> None:
    options = read_options()
    rows = []
    for seed in range(options.samples):
        edges, weights = make_glass(options.size, seed)
        row = {"sample": seed, **compare(edges, weights, options, seed)}
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.out:
        Path(options.out).write_text(json.dumps({"options": vars(options), "rows": rows}, indent=1))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--reference", type=int, default=100_000)
    parser.add_argument("--out")
    return parser.parse_args()


def make_glass(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bonds of ±1 on a periodic cubic lattice."""
    sites = np.arange(size**3).reshape(size, size, size)
    pairs = [np.stack([sites.ravel(), np.roll(sites, -1, axis).ravel()], axis=1) for axis in range(3)]
    edges = np.concatenate(pairs)
    return edges, np.random.default_rng(seed).choice([-1.0, 1.0], len(edges))


def compare(edges: np.ndarray, weights: np.ndarray, options: argparse.Namespace, seed: int) -> dict:
    num_spins = options.size**3
    reference = run_numba(edges, weights, num_spins, options.temperature, options.reference, 2, seed + 1000)
    rival = run_numba(edges, weights, num_spins, options.temperature, options.draws, options.chains, seed)
    ours = run_steppe(edges, weights, num_spins, options, seed)
    return {"reference": reference, "numba": rival, "steppe": ours}


def run_steppe(
    edges: np.ndarray, weights: np.ndarray, num_spins: int, options: argparse.Namespace, seed: int
) -> dict:
    target = ising_graph(edges, weights / options.temperature, num_spins)
    key = jax.random.key(seed)
    begun = time.process_time()
    tuned = steppe.tune_ladder(target, steppe.parallel_tempering(base=steppe.chromatic_gibbs()), key=key)
    adapting = time.process_time() - begun

    def sample(draws: int, key: jax.Array) -> steppe.Run:
        return steppe.sample(
            target,
            tuned.recipe,
            key=key,
            num_chains=options.chains,
            num_warmup=draws // 2,
            num_draws=draws,
            chain_block=options.chains,
            progress=False,
        )

    sample(8, key)  # compiles
    begun = time.process_time()
    run = sample(options.draws, jax.random.fold_in(key, 1))
    seconds = time.process_time() - begun
    spins = 2.0 * run.levels - 1
    energy = -run.trace.statistic("log_density").mean() * options.temperature / num_spins
    trips = run.trace.statistic("round_trips")
    return {
        "energy": float(energy),
        "q2": measure_overlap(spins),
        "seconds": seconds,
        "adapting": adapting,
        "num_rungs": len(tuned.inverse_temperatures),
        "round_trips": int((trips[:, -1] - trips[:, 0]).sum()),
    }


def measure_overlap(spins: np.ndarray) -> float:
    """Mean squared overlap of all pairs of chains, (chain, draw, site)."""
    num_chains = len(spins)
    pairs = [(a, b) for a in range(num_chains) for b in range(a + 1, num_chains)]
    return float(np.mean([np.mean(np.mean(spins[a] * spins[b], axis=-1) ** 2) for a, b in pairs]))


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
    betas = 1 / np.geomspace(2.5, temperature, 16)
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
