"""Robust modes where the answer is known, and on held-out disturbances against rivals at equal budget.

    python benchmarks/flat_robust.py CASE [INSTANCES] [--out docs/results/flat_robust_CASE.json]

Cases: `cost`, `cuts`, `planted`, `mixture`, `potts`, `portfolio`, `tours`. Every case counts or compares over
instances, with 95 % intervals of Student over them; disturbances of the judgement are drawn anew.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import steppe
from steppe.intervals import find_student_factor
from steppe.kernel.proposals.permutation_moves import apply_move, as_move, differences
from steppe.recommend import recommend_for_search
from steppe.run.storage.identity import describe_software
from steppe.targets import (
    max_cut,
    paper_bernoulli,
    planted_mixture,
    planted_plateau,
    potts_tables,
    qubo,
    tsp,
)

BUDGET = 200_000


def summarize(values):
    """Mean with its 95 % interval, and how often it is not negative."""
    values = np.asarray(values, float)
    half = find_student_factor(len(values)) * values.std(ddof=1) / len(values) ** 0.5
    mean = values.mean()
    counted = int((values >= -1e-4 * max(1.0, np.abs(values).max())).sum())
    return {"mean": mean, "low": mean - half, "high": mean + half, "not_negative": counted, "of": len(values)}


def anneal_best(target, seed, budget=BUDGET, num_steps=1000, recipe=None):
    """Best state of plain annealing at the same number of evaluations, by default as recommended."""
    recipe = recommend_for_search(target).recipe if recipe is None else recipe
    per_step = float(recipe.build(target, audit=False).evaluations_per_step)
    num_chains = max(1, int(budget // (num_steps * per_step)))
    key = jax.random.key(1000 + seed)
    found = steppe.anneal(target, recipe, key=key, num_steps=num_steps, num_chains=num_chains, progress=False)
    return np.asarray(found.best), float(found.best_log_density.max())


def run_cuts(num):
    """Maximum cuts of G(40, .2), and a knapsack: the best known value is in the table, the first row near."""
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
    counted = {"best_known_in_table": found, "first_within_2_percent": near, "of": num}
    return {"rows": rows, **counted, "knapsack": count_knapsack(num)}


def count_knapsack(num):
    """Four of twelve things, with as many keys: the optimum is that of the four dearest."""
    values = jnp.linspace(0.2, 1.5, 12)
    target = steppe.Target(lambda x: values @ x, steppe.Binary(12), is_valid=lambda x: x.sum() <= 4)
    optimum, counted = float(values[-4:].sum()), {"best_known_in_table": 0, "first_within_2_percent": 0}
    for seed in range(num):
        modes = steppe.find_flat_modes(target, key=jax.random.key(seed))
        counted["best_known_in_table"] += int(modes.best.log_density >= optimum - 1e-3)
        counted["first_within_2_percent"] += int(modes[0].log_density >= 0.98 * optimum)
    return counted | {"optimum": optimum, "of": num}


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


def make_potts(seed, sites=60, levels=20):
    """Random coupling tables on one sparse graph of contacts, and fields, as in protein design."""
    contacts = np.argwhere(np.triu(np.random.default_rng(0).random((sites, sites)) < 0.1, 1))
    rng = np.random.default_rng([1, seed])
    tables = rng.normal(size=(len(contacts), levels, levels))
    return potts_tables(tables, 0.5 * rng.normal(size=(sites, levels)), edges=contacts, num_sites=sites)


def run_potts(num, budget=120_000, mutations=(1, 3, 6), num_steps=4000):
    """Designs of 60 sites × 20 levels: mean after 1, 3, 6 mutations against highest mode, annealing.

    One search for each number of mutations; of its table the design with the largest mean after them is
    compared. Means after mutations are exact for coupling tables. Annealing has the sweeps that evaluate
    least, one site after another, and the best of 200, 1200, 4000 and 24 000 sweeps per chain.
    """
    gains = {f"{rival}, {flips}": [] for flips in mutations for rival in ("highest mode", "annealing")}
    losses = {flips: [] for flips in mutations}
    for seed in range(num):
        target = make_potts(seed)
        sweeps = steppe.gibbs(num_updates=target.domain.num_sites)
        annealed, _ = anneal_best(target, seed, budget, num_steps, sweeps)
        for flips in mutations:
            modes = steppe.find_flat_modes(target, key=jax.random.key(seed), flips=flips, budget=budget)
            states = np.stack([annealed, modes.best.position, *(mode.position for mode in modes)])
            losses[flips].append(modes.best.log_density - modes.robust.log_density)
            after = jax.vmap(steppe.robust(target, flips=flips).log_density)(jnp.asarray(states))
            values = np.asarray(after, float)
            gains[f"highest mode, {flips}"].append(values[2:].max() - values[1])
            gains[f"annealing, {flips}"].append(values[2:].max() - values[0])
            print(seed, flips, round(time.process_time()), modes.robust.gain, modes.num_evaluations)
        print([round(float(gains[f"annealing, {flips}"][-1]), 4) for flips in mutations], flush=True)
    return {
        "budget": budget,
        "given_up_in_nats": {flips: summarize(values) for flips, values in losses.items()},
        "gain_in_nats": {name: summarize(values) for name, values in gains.items()},
    }


def make_market(seed, assets=40):
    """Expected returns and a covariance of three factors; ten percent a year, in units of a percent."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(assets, 3))
    returns = 0.5 + 0.6 * rng.normal(size=assets) + 0.3 * factors[:, 0]
    covariance = 0.15 * factors @ factors.T / 3 + np.diag(rng.uniform(0.1, 0.4, assets))
    return returns, covariance


def draw_market(nominal, noise, key):
    """Coefficients known with an error: normal, a fraction of the size of each."""
    shock = jax.random.normal(key, nominal.bonds.matrix.shape)
    tied = nominal.bonds.matrix * (1 + noise * (shock + shock.T) / 2**0.5)
    field = nominal.field * (1 + noise * jnp.diagonal(shock))
    return dataclasses.replace(nominal, bonds=dataclasses.replace(nominal.bonds, matrix=tied), field=field)


def run_portfolio(num, noise_levels=(0.3, 1.0), num_scenarios=256, num_steps=60):
    """Choose assets by `returns − covariance`, all coefficients known with an error: value out of sample.

    One choice for the mean of the worst tenth over 256 scenarios, one for the nominal coefficients. Both get
    the same number of evaluations of one scenario: the nominal search has 256 times the chains. With 64
    scenarios the choice followed their few worst and lost on others.
    """
    table = {}
    for noise in noise_levels:
        gains, values = {"mean": [], "cvar:0.1": []}, []
        for seed in range(num):
            returns, covariance = make_market(seed)
            nominal, key = qubo(covariance - np.diag(returns)), jax.random.key(seed)
            disturbed = {"scenario": Partial(draw_market, nominal, jnp.asarray(noise)), "risk": "cvar:0.1"}
            robust = steppe.robust(nominal, num_samples=num_scenarios, key=key, **disturbed)
            options = {"key": key, "num_steps": num_steps, "progress": False}
            recipe = steppe.gibbs(num_updates=40)
            chosen = steppe.anneal(robust, recipe, num_chains=2, **options)
            best = steppe.anneal(nominal, recipe, num_chains=2 * num_scenarios, **options)
            states = np.stack([np.asarray(chosen.best), np.asarray(best.best)])
            fresh = jax.random.key(7000 + seed)
            judged = steppe.measure_robustness(nominal, states, key=fresh, num_samples=2000, **disturbed)
            gains["cvar:0.1"].append(judged.value[0] - judged.value[1])
            gains["mean"].append(np.subtract(*judged.outcomes.mean(axis=1)))
            values.append(judged.value[1])
        table[str(noise)] = {risk: summarize(found) for risk, found in gains.items()}
        table[str(noise)]["cvar:0.1 of the nominal choice"] = summarize(values)
        print(noise, round(time.process_time()), table[str(noise)], flush=True)
    return {"num_scenarios": num_scenarios, "gain_of_cvar_choice_in_percent_a_year": table}


RADIUS, SLOW = 0.25, 4.0


def close_district(target, cities, key):
    """All roads whose middle lies in a disc about a random place near the center take four times as long."""
    place = 0.5 + 0.15 * jax.random.normal(key, (2,))
    middles = (cities[:, None] + cities) / 2
    is_slow = jnp.sum(jnp.square(middles - place), axis=-1) < RADIUS**2
    return dataclasses.replace(target, lengths=jnp.where(is_slow, SLOW, 1.0) * target.lengths)


def search_again(position, scenario):
    """Reverse stretches of the tour while that shortens it under the scenario."""

    def move(state):
        tour, _ = state
        table = differences(scenario, "two_opt", tour)
        row, column = jnp.unravel_index(jnp.argmax(table), table.shape)
        moved = apply_move(("two_opt",), tour, as_move("two_opt", row, column))
        is_better = jnp.max(table) > 1e-5
        return jnp.where(is_better, moved, tour), is_better

    return jax.lax.while_loop(lambda state: state[1], move, (position, jnp.asarray(True)))[0]


def run_tours(num, num_cities=40, num_scenarios=64, num_starts=4):
    """Tours of 40 cities when a district is slow: the shortest, and two that expect it.

    The length of a tour is linear in the roads, so the tour of least mean length is the shortest one of the
    mean roads. For the mean after repair (2-opt once the district is known), the best of all tours found is
    taken on 64 scenarios. All are judged on 300 others.
    """
    rows = []
    for seed in range(num):
        cities = jnp.asarray(np.random.default_rng([2, seed]).random((num_cities, 2)), jnp.float32)
        nominal = tsp(coordinates=cities)
        scenario = Partial(close_district, nominal, cities)
        drawn = jax.vmap(scenario)(jax.random.split(jax.random.key(seed), num_scenarios))
        expected = dataclasses.replace(nominal, lengths=drawn.lengths.mean(axis=0))
        search = {"key": jax.random.key(seed), "num_starts": num_starts, "num_bridges": 100}
        short = steppe.routes.find_short_tours(nominal, **search).tours
        expecting = steppe.routes.find_short_tours(expected, **search).tours
        tours = np.concatenate([short, expecting]).astype(np.float32)
        disturbed = {"scenario": scenario, "key": jax.random.key(seed), "num_samples": num_scenarios}
        repaired = steppe.measure_robustness(nominal, tours, repair=search_again, **disturbed)
        chosen = np.stack([short[0], expecting[0], tours[int(np.argmax(repaired.value))]]).astype(np.float32)
        fresh = disturbed | {"key": jax.random.key(9000 + seed), "num_samples": 300}
        left = -steppe.measure_robustness(nominal, chosen, **fresh).outcomes
        mended = -steppe.measure_robustness(nominal, chosen, repair=search_again, **fresh).outcomes
        lengths = [nominal.cost(jnp.asarray(chosen))]
        for after in (left, mended):
            lengths += [after.mean(axis=1), np.sort(after, axis=1)[:, -30:].mean(axis=1)]
        rows.append(np.stack(lengths, axis=1))
    rows = np.asarray(rows)  # instances × tours × measures
    percent = 100 * (rows - rows[:, :1]) / rows[:, :1]
    measures = ("undisturbed", "mean", "worst tenth", "mean after repair", "worst tenth after repair")
    table = {
        tour: {name: summarize(percent[:, place, i]) for i, name in enumerate(measures)}
        for place, tour in ((1, "least mean length"), (2, "least mean length after repair"))
    }
    # What repair alone does for the shortest tour, in the same units.
    gain = 100 * (rows[:, 0, 3] - rows[:, 0, 1]) / rows[:, 0, 1]
    return {
        "longer_than_the_shortest_tour_in_percent": table,
        "repair_of_the_shortest_tour_in_percent": summarize(gain),
        "shortest_tour_disturbed_in_percent": summarize(100 * (rows[:, 0, 1] / rows[:, 0, 0] - 1)),
    }


SMALL = """
import sys, time
import jax, jax.numpy as jnp, numpy as np
import steppe
values = jnp.linspace(0.2, 1.5, 12)
edges = np.argwhere(np.triu(np.random.default_rng(0).random((40, 40)) < 0.2, 1))
tied = jnp.asarray(np.triu(np.random.default_rng(0).normal(size=(24, 24)), 1))
targets = {
    "maximum cut, 40 nodes": lambda: steppe.targets.max_cut(edges, num_nodes=40),
    "knapsack, 12 bits": lambda: steppe.Target(
        lambda x: values @ x, steppe.Binary(12), is_valid=lambda x: x.sum() <= 4
    ),
    "mixture, 10 bits": lambda: steppe.targets.planted_mixture().target,
    "function of 24 bits": lambda: steppe.Target(
        lambda x: 8 * jnp.tanh((2 * x - 1) @ tied @ (2 * x - 1) / 5), steppe.Binary(24)
    ),
}
target = targets[sys.argv[1]]()
begun = time.process_time()
steppe.find_flat_modes(target, key=jax.random.key(0), progress=False)
print(time.process_time() - begun)
"""


def run_cost(num):
    """CPU seconds of `find_flat_modes` by default in a new process, programs compiled by one before."""
    names = ("maximum cut, 40 nodes", "knapsack, 12 bits", "mixture, 10 bits", "function of 24 bits")
    table = {}
    for name in names:
        command = [sys.executable, "-c", SMALL, name]
        done = [
            float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(1 + num)
        ]
        table[name] = {"first": done[0], "warm": done[1:]}
        print(name, done, flush=True)
    return {"cpu_seconds_by_target": table, "load": os.getloadavg()}


CASES = {
    "cost": run_cost,
    "cuts": run_cuts,
    "planted": run_planted,
    "mixture": run_mixture,
    "potts": run_potts,
    "portfolio": run_portfolio,
    "tours": run_tours,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=CASES)
    parser.add_argument("instances", type=int, nargs="?", default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    before, software = time.process_time(), describe_software()
    found = CASES[given.case](given.instances)
    found |= {
        "software": software,
        "script": f"python benchmarks/flat_robust.py {given.case} {given.instances}",
        "cpu_seconds": round(time.process_time() - before, 1),
    }
    text = json.dumps(found, indent=1, default=float)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
