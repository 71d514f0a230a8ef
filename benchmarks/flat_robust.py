"""Robust modes where the answer is known, and on held-out disturbances against rivals at equal budget.

    python benchmarks/flat_robust.py CASE [INSTANCES] [--out docs/results/flat_robust_CASE.json]

Cases: `cuts`, `planted`, `mixture`, `potts`, `portfolio`. Every case counts or compares over instances, with
95 % intervals of Student over them; disturbances of the judgement are drawn anew.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import steppe
from steppe.intervals import find_student_factor
from steppe.targets import max_cut, paper_bernoulli, planted_mixture, planted_plateau, qubo

BUDGET = 200_000


def summarize(values):
    """Mean with its 95 % interval, and how often it is not negative."""
    values = np.asarray(values, float)
    half = find_student_factor(len(values)) * values.std(ddof=1) / len(values) ** 0.5
    mean = values.mean()
    counted = int((values >= -1e-4 * max(1.0, np.abs(values).max())).sum())
    return {"mean": mean, "low": mean - half, "high": mean + half, "not_negative": counted, "of": len(values)}


def anneal_best(target, seed, budget=BUDGET):
    """Best state of plain annealing with the recommended sampler at the same number of evaluations."""
    found = steppe.anneal(target, key=jax.random.key(1000 + seed), num_steps=1000, num_chains=1)
    per_chain = max(float(found.trace["evaluations"][-1]), 1.0)
    num_chains = max(1, int(budget // per_chain))
    found = steppe.anneal(
        target, key=jax.random.key(1000 + seed), num_steps=1000, num_chains=num_chains, progress=False
    )
    return np.asarray(found.best), float(found.best_log_density.max())


def run_cuts(num):
    """Maximum cuts of G(40, .2): the best known value is in the table, the first row within 2 % of it."""
    rows = []
    for seed in range(num):
        edges = np.argwhere(np.triu(np.random.default_rng(seed).random((40, 40)) < 0.2, 1))
        target = max_cut(edges, num_nodes=40)
        modes = steppe.find_flat_modes(target, key=jax.random.key(seed))
        _, plain = anneal_best(target, seed)
        best = modes.best.log_density
        rows.append({"best": best, "annealing": plain, "first": modes[0].log_density})
    known = [max(row["best"], row["annealing"]) for row in rows]
    found = sum(row["best"] >= top - 1e-3 for row, top in zip(rows, known, strict=True))
    near = sum(row["first"] >= 0.98 * top for row, top in zip(rows, known, strict=True))
    return {"rows": rows, "best_known_in_table": found, "first_within_2_percent": near, "of": num}


def run_planted(num):
    """A plateau 3 nats below fifty wells and worth 6 more after a tenth of flips: is it found?"""
    found, gains = 0, []
    for seed in range(num):
        planted = planted_plateau(seed, loss=3.0)
        modes = steppe.find_flat_modes(planted.target, key=jax.random.key(seed))
        found += int(np.abs(modes.robust.position - planted.plateau).sum() <= planted.radius)
        gains.append(modes.robust.gain)
    return {"plateau_is_most_robust": found, "of": num, "gain": summarize(gains)}


def run_mixture(num):
    """Ten bits with a wide component, and the paper's four bits: the most robust mode by enumeration."""
    planted, bits = planted_mixture(), paper_bernoulli()
    wide = [
        bool(
            (
                steppe.find_flat_modes(planted.target, key=jax.random.key(seed)).robust.position
                == planted.patterns[planted.flat]
            ).all()
        )
        for seed in range(num)
    ]
    values = np.asarray(jax.vmap(bits.log_density)(bits.domain.enumerate()), float)
    kernel = partial(np.kron, np.array([[0.75, 0.25], [0.25, 0.75]]))
    exact = kernel(kernel(kernel(kernel(np.ones((1, 1)))))) @ values
    right = []
    for seed in range(num):
        modes = steppe.find_flat_modes(bits, key=jax.random.key(seed))
        own = int(bits.domain.index(jnp.asarray(modes.robust.position)))
        right.append(bool(exact[own] >= max(m.value for m in modes) - 1e-5))
    return {"wide_component_is_most_robust": sum(wide), "four_bits_right": sum(right), "of": num}


def couple(tables, fields, rows):
    """`U` of a Potts model with a table for every pair of sites."""
    flat = rows.reshape(-1)
    return 0.5 * flat @ tables @ flat + fields @ flat


def make_potts(seed, sites=60, levels=20):
    """Random coupling tables on a sparse graph of contacts, and fields, as in protein design."""
    rng = np.random.default_rng(seed)
    pairs = np.triu(rng.random((sites, sites)) < 0.1, 1)
    tables = rng.normal(size=(sites, levels, sites, levels)) * pairs[:, None, :, None]
    tables = (tables + tables.transpose(2, 3, 0, 1)).reshape(sites * levels, -1)
    fields = 0.5 * rng.normal(size=sites * levels)
    function = Partial(couple, jnp.asarray(tables, jnp.float32), jnp.asarray(fields, jnp.float32))
    return steppe.Target(function, steppe.Categorical(sites, levels), multilinear=True)


def run_potts(num, budget=40_000):
    """Designs of 60 sites × 20 levels: mean after 1, 3, 6 mutations against highest mode, annealing."""
    gains = {f"{rival}, {flips}": [] for flips in (1, 3, 6) for rival in ("highest mode", "annealing")}
    for seed in range(num):
        target = make_potts(seed)
        annealed, _ = anneal_best(target, seed, budget)
        for flips in (1, 3, 6):
            modes = steppe.find_flat_modes(target, key=jax.random.key(seed), flips=flips, budget=budget)
            states = np.stack([modes.robust.position, modes.best.position, annealed])
            judged = steppe.measure_robustness(
                target, states, key=jax.random.key(5000 + seed), flips=flips, num_samples=2000
            ).outcomes.mean(axis=1)
            gains[f"highest mode, {flips}"].append(judged[0] - judged[1])
            gains[f"annealing, {flips}"].append(judged[0] - judged[2])
    return {"budget": budget, "gain_in_nats": {name: summarize(values) for name, values in gains.items()}}


def make_market(seed, assets=40):
    """Expected returns and a covariance of three factors; ten percent a year, in units of a percent."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(assets, 3))
    returns = 0.5 + 0.6 * rng.normal(size=assets) + 0.3 * factors[:, 0]
    covariance = 0.15 * factors @ factors.T / 3 + np.diag(rng.uniform(0.1, 0.4, assets))
    return returns, covariance


def run_portfolio(num, noise_levels=(0.1, 0.3, 0.6)):
    """Choose assets by `returns − covariance`, all coefficients known with an error: value out of sample."""
    table = {}
    for noise in noise_levels:
        gains = {"mean": [], "cvar:0.1": []}
        for seed in range(num):
            returns, covariance = make_market(seed)
            matrix = jnp.asarray(covariance - np.diag(returns), jnp.float32)
            scale = jnp.abs(matrix)

            def scenario(key, matrix=matrix, scale=scale, noise=noise):
                shock = jax.random.normal(key, matrix.shape)
                return qubo(matrix + noise * scale * (shock + shock.T) / 2**0.5)

            nominal = qubo(matrix)
            best, _ = anneal_best(nominal, seed, 20_000)
            robust = steppe.robust(
                nominal, scenario=scenario, risk="cvar:0.1", num_samples=64, key=jax.random.key(seed)
            )
            chosen = steppe.anneal(robust, key=jax.random.key(seed), num_steps=300, num_chains=8)
            states = np.stack([np.asarray(chosen.best), best])
            for risk, into in gains.items():
                judged = steppe.measure_robustness(
                    nominal,
                    states,
                    key=jax.random.key(7000 + seed),
                    scenario=scenario,
                    risk=risk,
                    num_samples=2000,
                )
                into.append(judged.value[0] - judged.value[1])
        table[str(noise)] = {risk: summarize(values) for risk, values in gains.items()}
    return {"gain_of_cvar_choice": table}


CASES = {
    "cuts": run_cuts,
    "planted": run_planted,
    "mixture": run_mixture,
    "potts": run_potts,
    "portfolio": run_portfolio,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    parser.add_argument("instances", type=int, nargs="?", default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    before = time.process_time()
    found = CASES[given.case](given.instances)
    found |= {
        "script": f"python benchmarks/flat_robust.py {given.case} {given.instances}",
        "cpu_seconds": round(time.process_time() - before, 1),
    }
    text = json.dumps(found, indent=1, default=float)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
