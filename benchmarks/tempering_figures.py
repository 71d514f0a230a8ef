"""What parallel tempering reaches where the answer is known, one figure at a time.

    python -m tempering_figures distance mixtures planted coverage barrier swaps --out tempering_figures.json

distance: total variation of 2²⁰ draws from four bits (16 states) and from a 4 × 4 Ising lattice (β = 0.6, h
= 0.1), beside that of as many independent draws (mean of five sets). mixtures: weights of modes of mixtures
with 10 and 200 sites, in standard errors over 16 chains. planted: the same of planted wells and a plateau.
coverage: how many of 200 intervals of `log Z` hold the exact value. barrier: Λ of the adapted ladder over
the integral of the exact one. swaps: CPU time of a tempered run of an RBM (784 × 500) with 16 rungs over
that of 16 chains of its base, nine alternations, with a 95 % interval by Student's t of their logarithms.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from scipy.stats import t

import steppe
from steppe import targets
from steppe.diagnostics.exact import target_distribution

KEY = jax.random.key(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="+", choices=tuple(FIGURES))
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--out")
    options = parser.parse_args()
    record = {}
    for name in options.figures:
        begun = time.process_time()
        record[name] = {**FIGURES[name](options), "cpu_seconds": time.process_time() - begun}
        print(name, json.dumps(record[name]), flush=True)
        if options.out:
            Path(options.out).write_text(json.dumps(record, indent=1))


# ---- total variation ---------------------------------------------------------------------------------------


def measure_distances(options: argparse.Namespace) -> dict:
    lattice = targets.ising_lattice((4, 4), coupling=0.6, field=0.06)
    tempered = steppe.parallel_tempering
    return {
        "16 states": compare_draws(targets.paper_bernoulli(), tempered(base=steppe.gibbs())),
        "4 × 4 Ising": compare_draws(lattice, tempered(base=steppe.chromatic_gibbs())),
    }


def compare_draws(target: steppe.Target, recipe, num_draws: int = 2**20) -> dict:
    exact = np.float64(target_distribution(target))
    exact /= exact.sum()
    run = steppe.sample(
        target,
        recipe,
        key=KEY,
        num_chains=64,
        num_draws=num_draws // 64,
        thinning=4,
        num_warmup=500,
        progress=False,
    )
    places = 2 ** np.arange(target.domain.num_sites)
    every = np.asarray(target.domain.to_levels(target.domain.enumerate())).astype(int) @ places
    order = np.argsort(every)
    found = order[run.levels.reshape(num_draws, -1).astype(int) @ places]
    rng = np.random.default_rng(0)
    floor = np.mean([measure_distance(rng.choice(len(exact), num_draws, p=exact), exact) for _ in range(5)])
    distance = measure_distance(found, exact)
    return {"distance": distance, "independent": float(floor), "ratio": distance / float(floor)}


def measure_distance(states: np.ndarray, exact: np.ndarray) -> float:
    counts = np.bincount(states, minlength=len(exact))
    return float(np.abs(counts / counts.sum() - exact).sum() / 2)


# ---- weights of modes --------------------------------------------------------------------------------------


def weigh_modes(options: argparse.Namespace) -> dict:
    planted = targets.planted_mixture()
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    patterns = np.random.default_rng(0).integers(0, 2, (4, 200))
    sites = np.where(patterns == 1, 0.8, 0.2)
    return {
        "10 sites": weigh(planted.target, planted.weights, planted.site_probabilities),
        "200 sites": weigh(targets.mixture(weights, sites), weights, sites),
    }


def weigh_planted(options: argparse.Namespace) -> dict:
    """Weights of wells and plateau: `exp U` is a sum over them, each a known sum over distances."""
    found = {}
    for num_sites, num_wells in ((30, 4), (60, 8)):
        target = targets.planted_plateau(0, num_sites=num_sites, num_wells=num_wells, slope=2.0).target
        away = np.arange(num_sites + 1)
        levels = target.lifts[:, None] - target.slope * np.maximum(away, target.floors[:, None])
        exact = np.array([math.comb(num_sites, k) for k in away]) * np.exp(np.float64(levels))
        weights = exact.sum(axis=1) / exact.sum()

        def share(states: np.ndarray, target=target) -> np.ndarray:
            distances = jax.vmap(target._distances)(states)
            return jax.nn.softmax(target.lifts - target.slope * jax.numpy.maximum(distances, target.floors))

        found[f"{num_sites} sites, {num_wells} wells"] = weigh_by(target, weights, share)
    return found


def weigh(target: steppe.Target, weights: np.ndarray, sites: np.ndarray) -> dict:
    return weigh_by(target, weights, lambda states: targets.mixture_responsibilities(weights, sites, states))


def weigh_by(target: steppe.Target, weights: np.ndarray, share: Callable) -> dict:
    run = steppe.sample(
        target,
        steppe.parallel_tempering(base=steppe.gibbs()),
        key=jax.random.key(0),
        num_chains=16,
        num_draws=8000,
        progress=False,
    )
    states = run.positions.reshape(-1, target.domain.num_sites)
    shares = np.asarray(share(states))
    means = shares.reshape(16, 8000, -1).mean(axis=1)
    error = means.std(axis=0, ddof=1) / 4
    off = np.abs(means.mean(axis=0) - weights) / error
    return {"most standard errors off": float(off.max()), "largest standard error": float(error.max())}


# ---- log Z and the barrier ---------------------------------------------------------------------------------


def count_covered(options: argparse.Namespace) -> dict:
    target = targets.ising_lattice((3, 3), coupling=0.6, field=0.06)
    exact = steppe.log_normalizer(target, key=KEY).value
    ladder = steppe.tune_ladder(target, steppe.parallel_tempering(base=steppe.gibbs()), key=KEY).recipe
    covered = np.zeros(2, int)
    for seed in range(options.replicates):
        key = jax.random.key(seed)
        found = steppe.log_normalizer(target, key=key, recipe=ladder, exact=False, num_draws=500)
        assert found.annealed is not None
        covered += [one.low <= exact <= one.high for one in (found.tempered, found.annealed)]
    return {"replicates": options.replicates, "ladder": int(covered[0]), "annealed": int(covered[1])}


def compare_barriers(options: argparse.Namespace) -> dict:
    rows = {}
    for coupling in (0.3, 0.6):
        target = targets.ising_lattice((4, 4), coupling=coupling, field=0.06)
        values = np.asarray(jax.lax.map(target.log_density, target.domain.enumerate(), batch_size=4096))
        recipe = steppe.parallel_tempering(base=steppe.chromatic_gibbs())
        found = steppe.tune_ladder(target, recipe, key=KEY)
        exact = integrate_barrier(values.astype(float))
        rows[f"4 × 4, J = {coupling}"] = {
            "adapted": found.barrier,
            "exact": exact,
            "ratio": found.barrier / exact,
            "rungs": len(found.inverse_temperatures),
        }
    return rows


def integrate_barrier(values: np.ndarray, num_points: int = 400) -> float:
    """`Λ = ½ ∫ E|U − U'| dβ` over independent pairs at the same temperature."""
    levels, counts = np.unique(values.round(4), return_counts=True)
    apart = np.abs(levels[:, None] - levels)
    spread = []
    for beta in np.linspace(0, 1, num_points):
        weights = counts * np.exp(beta * (levels - levels.max()))
        weights /= weights.sum()
        spread.append(weights @ apart @ weights)
    return float(np.trapezoid(spread, dx=1 / (num_points - 1)) / 2)


# ---- what swaps cost ---------------------------------------------------------------------------------------


def time_swaps(options: argparse.Namespace, num_steps: int = 60, num_pairs: int = 9) -> dict:
    rng = np.random.default_rng(0)
    target = targets.rbm(
        rng.normal(scale=0.05, size=(500, 784)).astype(np.float32),
        np.zeros(500, np.float32),
        np.zeros(784, np.float32),
    )
    base = steppe.dmala(step_size=0.2)
    tempered = steppe.parallel_tempering(base=base, inverse_temperatures=np.linspace(0, 1, 16).tolist())

    def run(recipe, num_chains: int, steps: int) -> float:
        begun = time.process_time()
        steppe.sample(
            target,
            recipe,
            key=KEY,
            num_chains=num_chains,
            num_warmup=0,
            num_draws=steps,
            chain_block=num_chains,
            keep="none",
            adapt=False,
            progress=False,
        )
        return time.process_time() - begun

    def time_both() -> float:
        # Less a short run of the same program: what a call costs beside its steps.
        each = [
            run(recipe, chains, 2 + num_steps) - run(recipe, chains, 2)
            for recipe, chains in ((tempered, 1), (base, 16))
        ]
        return math.log(each[0] / each[1])

    time_both()  # compiles
    logs = np.array([time_both() for _ in range(num_pairs)])
    half = float(t.ppf(0.975, num_pairs - 1)) * logs.std(ddof=1) / math.sqrt(num_pairs)
    middle = float(logs.mean())
    return {"ratio": math.exp(middle), "low": math.exp(middle - half), "high": math.exp(middle + half)}


FIGURES: dict[str, Callable[[argparse.Namespace], dict]] = {
    "distance": measure_distances,
    "mixtures": weigh_modes,
    "planted": weigh_planted,
    "coverage": count_covered,
    "barrier": compare_barriers,
    "swaps": time_swaps,
}

if __name__ == "__main__":
    main()
