"""Binary weights under faults: which solver leaves the best perceptron, committee or network after flips?

    python benchmarks/robust_weights.py {perceptron,committee,breast-cancer,compas} [--size 501] [--out FILE]

Teachers label random patterns; tables are split at random. Every solver gets the same number of gradients of
all patterns (`--budget`), and focusing belief propagation no more CPU time than the others. Each solver runs
at the settings that were best for it on three pilot problems (seeds from 1000; of load 0.8), by the mean test
error over all fault rates; the problems of the table (seeds from 0) were not seen then. One answer per solver
and problem: the chain or replica with the highest log-density, the center of an ensemble, the last weights of
a straight-through run. Faults are drawn anew for the judgement: a fraction of all weights changes its sign.
Intervals are Student's, 95 %, over problems; differences are paired.
"""

import argparse
import json
import time
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import datasets, targets
from steppe.intervals import find_student_factor
from steppe.run.storage.identity import describe_software
from steppe.samplers.flip_fraction import coupling_variance_from_flip_fraction
from steppe_edlp.flatness import focusing_bp

FAULTS = (0.0, 0.01, 0.02, 0.05, 0.1)
NUM_FAULTS = 16
NUM_UNITS = 3
PILOTS = range(1000, 1003)
PILOT_LOAD = 0.8
REPLICAS = 5
SPANS = {
    "logistic": ((0.1, 3.0), (0.3, 10.0), (0.5, 27.0)),
    "softplus": ((0.3, 30.0), (0.3, 100.0), (1.0, 200.0)),
}
# Fraction of weights in which a replica differs from the center on flat ground, at the start and at the end.
TIES = ((0.475, 0.154), (0.25, 0.05))


class Task(NamedTuple):
    """Patterns and labels to learn and to test on, each with how many units vote."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    num_units: int

    @property
    def num_weights(self):
        """All weights of all units."""
        return self.num_units * self.x.shape[1]


def answer(weights, x):
    """Sums of votes for stacks of weights: stack × patterns."""
    sums = np.einsum("pn,skn->skp", x.astype(np.float32), weights.astype(np.float32), optimize=True)
    return np.sign(sums).sum(axis=1)


# ---- problems ----------------------------------------------------------------------------------------------


def draw_signs(rng, shape):
    return (2 * rng.integers(0, 2, shape) - 1).astype(np.int8)


def make_teacher_task(num_units, size, load, seed):
    """Random patterns labelled by a random teacher of the same form."""
    rng = np.random.default_rng([seed, size, int(100 * load), num_units])
    num_inputs = size // num_units
    teacher = draw_signs(rng, (1, num_units, num_inputs))
    x = draw_signs(rng, (round(load * num_units * num_inputs) + 2000, num_inputs))
    y = np.where(answer(teacher, x)[0] > 0, 1, -1).astype(np.int8)
    return Task(x[:-2000], y[:-2000], x[-2000:], y[-2000:], num_units)


def make_table_task(name, num_units, num_rows, seed):
    """Rows of a table embedded as signs: every feature above each of its deciles or not, and a bias.

    Deciles are those of all rows, so that all splits have the same inputs; no label is looked at.
    """
    x, y = load_table(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    train, test = order[:num_rows], order[num_rows : num_rows + 2000]
    levels = [np.unique(np.quantile(column, np.linspace(0.1, 0.9, 9))) for column in x.T]
    coded = [np.where(x[:, [i]] > cuts, 1, -1) for i, cuts in enumerate(levels)]
    coded = np.concatenate([*coded, np.ones((len(x), 1))], axis=1)
    keep = np.ptp(coded, axis=0) > 0
    keep[-1] = True
    coded = coded[:, keep].astype(np.int8)
    if coded.shape[1] % 2 == 0:  # an odd number of inputs has no ties
        coded = np.concatenate([coded, coded[:, -1:]], axis=1)
    return Task(coded[train], y[train], coded[test], y[test], num_units)


@cache
def load_table(name):
    """Features and labels of ±1."""
    data = datasets.load("compas", as_published=True) if name == "compas" else datasets.load(name)
    x = np.concatenate([data.train.x, data.test.x])
    y = np.concatenate([data.train.y, data.test.y])
    return x, np.where(y > 0.5, 1, -1).astype(np.int8)


# ---- solvers -----------------------------------------------------------------------------------------------


def make_target(task, loss):
    """The log-density of weights."""
    if task.num_units > 1:
        return targets.committee(task.x, task.y, task.num_units)
    return targets.perceptron(task.x, task.y, loss)


def curve(span):
    return steppe.geometric_schedule(*span)


def run_chains(recipe, num_chains, curves, task, loss, budget, seed, replicas=1):
    """Anneal, and return the answer with the highest log-density, and the center where there is one."""
    target = make_target(task, loss)
    found = steppe.anneal(
        target,
        recipe,
        None if curves is None else steppe.parameter_schedule(**curves),
        key=jax.random.key(seed),
        num_steps=budget // (num_chains * replicas),
        num_chains=num_chains,
        progress=False,
    )
    states = np.asarray(found.position).reshape(-1, target.domain.num_sites)
    best = states[int(np.argmax(np.asarray(found.log_density).reshape(-1)))]
    shape = (task.num_units, -1)
    answers = {"best": np.where(best > 0.5, 1, -1).reshape(shape)}
    if replicas > 1:
        center = np.asarray(found.center).reshape(-1)
        answers["center"] = np.where(center > 0.5, 1, -1).reshape(shape)
    return answers


def solve_dmala(task, loss, budget, seed, span, chains):
    return run_chains(steppe.dmala(), chains, {"inverse_temperature": curve(span)}, task, loss, budget, seed)


def solve_edmala(task, loss, budget, seed, span, variance):
    recipe = steppe.edmala(coupling_variance=variance, center_step_size=0.5)
    return run_chains(recipe, REPLICAS, {"inverse_temperature": curve(span)}, task, loss, budget, seed)


def solve_ensemble(task, loss, budget, seed, span, ties):
    ends = [coupling_variance_from_flip_fraction(f, squared_unit=1.0) for f in ties]
    recipe = steppe.robust_ensemble(replicas=REPLICAS, coupling_variance=ends[0], center="lattice")
    curves = {"inverse_temperature": curve(span), "coupling_variance": curve(ends)}
    return run_chains(recipe, 1, curves, task, loss, budget, seed, REPLICAS)


def solve_by_default(task, loss, budget, seed):
    """The ensemble along the schedule that `anneal` chooses."""
    recipe = steppe.robust_ensemble(replicas=REPLICAS, center="lattice")
    return run_chains(recipe, 1, None, task, loss, budget, seed, REPLICAS)


@partial(jax.jit, static_argnames=("num_units", "num_steps", "batch"))
def descend(key, x, y, num_units, num_steps, batch, rate, sharpness):
    """Adam on real weights whose signs are used and whose gradients pass through the sign."""
    size = x.shape[1]

    def price(weights, rows):
        hard = weights + jax.lax.stop_gradient(jnp.sign(weights) - weights)
        sums = x[rows] @ hard.T / size**0.5
        sums = jnp.tanh(2 * sums) if num_units > 1 else sums
        margins = y[rows] * sums.sum(axis=1) / num_units**0.5
        return jnp.mean(jax.nn.softplus(-sharpness * margins)) / sharpness

    def step(carry, index):
        weights, first, second = carry
        rows = jax.random.randint(jax.random.fold_in(key, index), (batch,), 0, len(x))
        rows = jnp.arange(len(x)) if batch == len(x) else rows
        gradient = jax.grad(price)(weights, rows)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        t = index + 1.0
        cooled = rate * (1 - index / num_steps)
        move = cooled * first / (1 - 0.9**t) / (jnp.sqrt(second / (1 - 0.999**t)) + 1e-8)
        return (jnp.clip(weights - move, -1, 1), first, second), None

    start = jax.random.uniform(key, (num_units, size), minval=-0.1, maxval=0.1)
    zero = jnp.zeros_like(start)
    (weights, _, _), _ = jax.lax.scan(step, (start, zero, zero), jnp.arange(num_steps))
    return jnp.where(weights >= 0, 1, -1)


def solve_straight_through(task, loss, budget, seed, rate, fraction):
    batch = max(1, round(fraction * len(task.x)))
    sharpness = {"logistic": 4.0, "softplus": 30.0}[loss]
    x, y = jnp.asarray(task.x, jnp.float32), jnp.asarray(task.y, jnp.float32)
    num_steps = int(budget * len(task.x) / batch)
    found = descend(jax.random.key(seed), x, y, task.num_units, num_steps, batch, rate, sharpness)
    return {"best": np.asarray(found)}


def solve_focusing(task, loss, budget, seed, rates, sweeps, noise=0.0):
    facing = focusing_bp.fold_labels(task.x, task.y, task.num_units)
    found = focusing_bp.solve(
        facing, jax.random.key(seed), num_rates=rates, sweeps_per_rate=sweeps, noise=noise
    )
    return {"best": np.asarray(found.weights)}


def list_settings(losses):
    """Solver → (function, its settings to choose from, the answers to choose from)."""
    return {
        "dmala": (
            solve_dmala,
            [(loss, span, chains) for loss in losses for span in SPANS[loss] for chains in (1, 5)],
            ("best",),
        ),
        "edmala": (
            solve_edmala,
            [(loss, span, variance) for loss in losses for span in SPANS[loss] for variance in (1.0, 4.0)],
            ("best",),
        ),
        "ensemble": (
            solve_ensemble,
            [(loss, span, ties) for loss in losses for span in SPANS[loss] for ties in TIES],
            ("center", "best"),
        ),
        "ensemble by default": (solve_by_default, [(loss,) for loss in losses], ("center",)),
        "straight-through + Adam": (
            solve_straight_through,
            [
                (loss, rate, fraction)
                for loss in losses
                for rate in (0.003, 0.01, 0.03)
                for fraction in (0.1, 1.0)
            ],
            ("best",),
        ),
        "focusing BP": (
            solve_focusing,
            [(losses[0], 50, 4), (losses[0], 100, 10), (losses[0], 50, 4, 0.05), (losses[0], 50, 4, 0.2)],
            ("best",),
        ),
    }


# ---- judgement ---------------------------------------------------------------------------------------------


def judge(task, weights, seed):
    """Training and test error of one answer at every fault rate, over fresh faults."""
    rng = np.random.default_rng([77, seed])
    rows = []
    for rate in FAULTS:
        number = round(rate * weights.size)
        noisy = np.repeat(weights[None], NUM_FAULTS if number else 1, axis=0).reshape(-1, weights.size)
        for row in noisy:
            chosen = rng.choice(weights.size, number, replace=False)
            row[chosen] = -row[chosen]
        noisy = noisy.reshape(-1, *weights.shape)
        train = (task.y * answer(noisy, task.x) <= 0).mean()
        test = (task.test_y * answer(noisy, task.test_x) <= 0).mean()
        rows.append((float(train), float(test)))
    return rows


def run_one(function, setting, task, budget, seed):
    loss, *rest = setting
    begun = time.process_time()
    answers = function(task, loss, budget, seed, *rest)
    seconds = time.process_time() - begun
    return {kind: judge(task, weights, seed) for kind, weights in answers.items()}, seconds


def choose(function, settings, kinds, make, budget):
    """The setting and the kind of answer with the least mean test error over faults, for every loss."""
    best = {}
    for setting in settings:
        judged = [run_one(function, setting, make(seed), budget, seed)[0] for seed in PILOTS]
        for kind in kinds:
            error = float(np.mean([[test for _, test in one[kind]] for one in judged]))
            if setting[0] not in best or error < best[setting[0]][0]:
                best[setting[0]] = (error, setting, kind)
    return best


def summarize(values):
    values = np.asarray(values, float)
    half = find_student_factor(len(values)) * values.std(axis=0, ddof=1) / len(values) ** 0.5
    mean = values.mean(axis=0)
    return {
        "mean": np.round(mean, 5).tolist(),
        "low": np.round(mean - half, 5).tolist(),
        "high": np.round(mean + half, 5).tolist(),
    }


def choose_all(make, given):
    """Row of the table → solver, setting and kind of answer, chosen on pilot problems."""
    chosen = {}
    for name, (function, settings, kinds) in list_settings(given.losses).items():
        best = choose(function, settings, kinds, make, given.budget)
        for loss, (pilot, setting, kind) in best.items():
            row = name if name == "focusing BP" or len(given.losses) == 1 else f"{name}, {loss}"
            chosen[row] = (function, pilot, setting, kind)
            print("chosen:", row, setting, kind, round(pilot, 4), flush=True)
    return chosen


def compare(make, chosen, given):
    """All solvers on all problems, with paired differences to the ensembles."""
    table, errors = {}, {}
    for row, (function, pilot, setting, kind) in chosen.items():
        done = [run_one(function, setting, make(seed), given.budget, seed) for seed in range(given.problems)]
        values = np.asarray([one[kind] for one, _ in done])  # problems × faults × (train, test)
        errors[row] = values
        seconds = np.median([seconds for _, seconds in done])
        table[row] = {
            "setting": setting,
            "answer": kind,
            "pilot_error": pilot,
            "median_cpu_seconds": round(float(seconds), 3),
            "train": summarize(values[..., 0]),
            "test": summarize(values[..., 1]),
            "solved": int((values[:, 0, 0] == 0).sum()),
        }
        shown = table[row]
        print(row, setting, kind, shown["median_cpu_seconds"], shown["solved"], shown["train"]["mean"][0],
              shown["test"]["mean"], flush=True)  # fmt: skip
    for ours in [row for row in table if row.startswith("ensemble")]:
        table[ours]["test_error_below"] = {
            row: summarize(errors[row][..., 1] - errors[ours][..., 1]) for row in table if row != ours
        }
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=["perceptron", "committee", "breast-cancer", "compas"])
    parser.add_argument("--size", type=int, default=501, help="weights of a teacher")
    parser.add_argument("--loads", type=float, nargs="+", default=[0.4, 0.6, 0.8, 1.0])
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--budget", type=int, default=6000, help="gradients per problem")
    parser.add_argument("--losses", nargs="+", default=["logistic"], choices=list(SPANS))
    parser.add_argument("--rows", type=int, default=None, help="training rows of a table")
    parser.add_argument("--units", type=int, default=None, help="units of a committee or network")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    begun, tables, software = time.process_time(), {}, describe_software()
    units = given.units or (1 if given.case == "perceptron" else NUM_UNITS)
    if given.case in ("perceptron", "committee"):
        chosen = choose_all(partial(make_teacher_task, units, given.size, PILOT_LOAD), given)
        for load in given.loads:
            print(f"load {load}", flush=True)
            tables[str(load)] = compare(partial(make_teacher_task, units, given.size, load), chosen, given)
    else:
        rows = given.rows or {"breast-cancer": 285, "compas": 500}[given.case]
        make = partial(make_table_task, given.case, units, rows)
        tables["all"] = compare(make, choose_all(make, given), given)
    record = {
        "script": "python benchmarks/robust_weights.py",
        "arguments": {name: value for name, value in vars(given).items() if name != "out"},
        "software": software,
        "faults": FAULTS,
        "cpu_seconds": round(time.process_time() - begun, 1),
        "tables": tables,
    }
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
