"""Communities and coupling tables against Gibbs loops written in numba beside them.

    python benchmarks/gibbs_loops.py communities --seeds 5 --json FILE    1000 nodes, 4 groups
    python benchmarks/gibbs_loops.py tables --seeds 5 --json FILE         60 sites of 20 levels
    python benchmarks/gibbs_loops.py tables --chains 16                   more chains on either side

Both sides draw from the same distribution, with the same number of chains. Times are processor time of one
thread, compiling not counted; effective draws are those of the log-density.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import numba
import numpy as np
from arviz_stats.base.array import array_stats

import steppe
from steppe import targets
from steppe.results import Column, Estimate, Provenance, Results, Table
from steppe.run.storage.identity import describe_software

DEFAULT_CHAINS = 4
NUM_NODES, NUM_GROUPS, INSIDE, BETWEEN = 1000, 4, 0.05, 0.01
NUM_SITES, NUM_LEVELS, STRENGTH = 60, 20, 0.06


@numba.njit
def draw_groups(firsts, near, ratio, penalty, groups, num_groups, num_sweeps, seed):
    """Gibbs sweeps over the groups of nodes; returns the state after every sweep."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    size = len(groups)
    sizes = np.zeros(num_groups)
    for node in range(size):
        sizes[groups[node]] += 1
    kept = np.empty((num_sweeps, size), np.int8)
    weights = np.empty(num_groups)
    for sweep in range(num_sweeps):
        for node in range(size):
            sizes[groups[node]] -= 1
            weights[:] = -penalty * sizes
            for slot in range(firsts[node], firsts[node + 1]):
                weights[groups[near[slot]]] += ratio
            weights[:] = np.exp(weights - weights.max())
            point, level = np.random.random() * weights.sum(), 0  # noqa: NPY002
            while point > weights[level] and level < num_groups - 1:
                point -= weights[level]
                level += 1
            groups[node] = level
            sizes[level] += 1
        kept[sweep] = groups
    return kept


@numba.njit
def draw_levels(couplings, field, levels, num_sweeps, seed):
    """Gibbs sweeps over sites with coupling tables; returns the state after every sweep."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    size, num_levels = field.shape
    kept = np.empty((num_sweeps, size), np.int8)
    for sweep in range(num_sweeps):
        for site in range(size):
            weights = field[site].copy()
            for other in range(size):
                weights += couplings[site, other, levels[other]]
            weights = np.exp(weights - weights.max())
            point, level = np.random.random() * weights.sum(), 0  # noqa: NPY002
            while point > weights[level] and level < num_levels - 1:
                point -= weights[level]
                level += 1
            levels[site] = level
        kept[sweep] = levels
    return kept


def make_network(seed):
    """Edges of a planted partition, and the groups it was drawn from."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(NUM_NODES) % NUM_GROUPS)
    chance = np.where(truth[:, None] == truth[None], INSIDE, BETWEEN)
    return np.argwhere(np.triu(rng.random((NUM_NODES, NUM_NODES)) < chance, 1)), truth


def sample_twice(target, seed, num_chains, num_draws, num_warmup):
    """Run the recommended sampler, compiled before; return the run and the processor time of its steps."""
    for key in (seed + 1000, seed):
        begun = time.process_time()
        run = steppe.sample(
            target,
            key=jax.random.key(key),
            num_chains=num_chains,
            num_draws=num_draws,
            num_warmup=num_warmup,
            progress=False,
        )
        used = time.process_time() - begun
    return run, used


def compare_communities(seed, num_chains, num_sweeps=2000):
    """Overlap with the truth and processor time of both sides, half of the sweeps as warm-up."""
    edges, truth = make_network(seed)
    target = targets.block_model(edges, NUM_GROUPS, inside=INSIDE, between=BETWEEN, num_nodes=NUM_NODES)
    run, ours = sample_twice(target, seed, num_chains, num_sweeps // 2, num_sweeps // 2)
    findings = map(str, run.summary().to_dict()["findings"])
    said = [f"Seed {seed}: {line.split(':')[0]}." for line in findings if "relabel" in line]
    draws = np.asarray(run.levels)[:, ::10]
    near = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.argsort(np.concatenate([edges[:, 0], edges[:, 1]]), kind="stable")
    firsts = np.concatenate([[0], np.cumsum(np.bincount(edges.ravel(), minlength=NUM_NODES))])
    strength = np.log(INSIDE / BETWEEN * (1 - BETWEEN) / (1 - INSIDE))
    penalty = np.log((1 - BETWEEN) / (1 - INSIDE))
    rng, loops = np.random.default_rng(seed), []
    starts = rng.integers(0, NUM_GROUPS, (num_chains, NUM_NODES))
    draw_groups(firsts, near[order], strength, penalty, starts[0].copy(), NUM_GROUPS, 1, 0)
    begun = time.process_time()
    for chain, start in enumerate(starts):
        args = firsts, near[order], strength, penalty, start, NUM_GROUPS, num_sweeps, seed + 10 * chain
        loops.append(draw_groups(*args)[num_sweeps // 2 :: 10])
    theirs = time.process_time() - begun
    one_hot, row = np.eye(NUM_GROUPS), {"said": said, "ratio": ours / theirs}
    for side, states, seconds in (("steppe", draws, ours), ("numba", np.asarray(loops), theirs)):
        positions = one_hot[states].astype(np.float32)
        overlaps = [np.mean([target.overlap(state, truth) for state in chain]) for chain in positions]
        values = np.asarray(jax.vmap(jax.vmap(target.log_density))(positions))
        row |= {
            f"{side} overlap": float(np.mean(overlaps)),
            f"{side} overlap SE": float(np.std(overlaps, ddof=1) / np.sqrt(num_chains)),
            f"{side} U": float(values.mean()),
            f"{side} s": seconds,
        }
    return row


COMMUNITIES = {
    "ratio": "time of steppe / numba",
    "steppe s": "steppe, CPU s",
    "numba s": "numba, CPU s",
    "steppe overlap": "overlap with the truth, steppe",
    "numba overlap": "overlap with the truth, numba",
    "steppe U": "mean U, steppe",
    "numba U": "mean U, numba",
}


def compare_tables(seed, num_chains, num_sweeps=1000):
    """Effective draws per second and frequencies of both sides."""
    rng = np.random.default_rng(seed)
    tables = STRENGTH * rng.normal(size=(NUM_SITES, NUM_SITES, NUM_LEVELS, NUM_LEVELS))
    tables = (tables + tables.transpose(1, 0, 3, 2)) / np.sqrt(2)
    tables[np.arange(NUM_SITES), np.arange(NUM_SITES)] = 0
    field = 0.5 * rng.normal(size=(NUM_SITES, NUM_LEVELS))
    target = targets.potts_tables(tables, field)
    run, ours = sample_twice(target, seed, num_chains, num_sweeps, 100)
    couplings = np.ascontiguousarray(tables.transpose(0, 1, 3, 2))  # site, other, level of other, own level
    loops, starts = [], rng.integers(0, NUM_LEVELS, (num_chains, NUM_SITES))
    draw_levels(couplings, field, starts[0].copy(), 1, 0)
    begun = time.process_time()
    for chain, start in enumerate(starts):
        loops.append(draw_levels(couplings, field, start, num_sweeps + 100, seed + 10 * chain)[100:])
    theirs = time.process_time() - begun
    sides = {"steppe": (np.asarray(run.levels), ours), "numba": (np.asarray(loops), theirs)}
    row = {"said": [f"recipe: {run.recipe.name}"]}
    for side, (levels, seconds) in sides.items():
        values = _weigh(tables, field, levels)
        effective = float(np.asarray(array_stats.ess(values)))
        row |= {f"{side} ESS/s": effective / seconds, f"{side} s": seconds, f"{side} U": float(values.mean())}
    row["ratio"] = row["steppe ESS/s"] / row["numba ESS/s"]
    for name, list_features in (("sites", _single), ("pairs", _pairs)):
        scores = np.abs(_compare(*(list_features(levels) for levels, _ in sides.values())))
        row |= {f"{name} worst": float(scores.max()), f"{name} square": float(np.mean(scores**2))}
    return row


TABLES = {
    "ratio": "effective draws per CPU s, steppe / numba",
    "steppe ESS/s": "steppe",
    "numba ESS/s": "numba",
    "steppe U": "mean U, steppe",
    "numba U": "mean U, numba",
    "sites worst": "1200 frequencies of sites: largest difference, SE",
    "sites square": "their mean square, 1 by chance",
    "pairs worst": "400 frequencies of pairs: largest difference, SE",
    "pairs square": "their mean square",
}


def _weigh(tables, field, levels):
    """Log-density of every draw."""
    total = np.zeros(levels.shape[:2])
    for site in range(NUM_SITES):
        total += field[site][levels[..., site]]
        for other in range(site):
            total += tables[site, other][levels[..., site], levels[..., other]]
    return total


def _single(levels):
    return (levels[..., None] == np.arange(NUM_LEVELS)).reshape(*levels.shape[:2], -1).astype(float)


def _pairs(levels):
    rng = np.random.default_rng(0)
    picked = [(*rng.choice(NUM_SITES, 2, replace=False), *rng.integers(0, NUM_LEVELS, 2)) for _ in range(400)]
    both = [(levels[..., i] == a) & (levels[..., j] == b) for i, j, a, b in picked]
    return np.stack(both, axis=-1).astype(float)


def _compare(first, second):
    """Differences of means over their standard errors, from ten batches of each chain."""

    def batch(features):
        chains, draws, size = features.shape
        return features[:, : draws // 10 * 10].reshape(chains * 10, draws // 10, size).mean(axis=1)

    ours, theirs = batch(first), batch(second)
    error = np.sqrt(ours.var(0, ddof=1) / len(ours) + theirs.var(0, ddof=1) / len(theirs))
    is_seen = error > 0
    return (ours.mean(0) - theirs.mean(0))[is_seen] / error[is_seen]


QUESTIONS = {
    "communities": (
        "Communities of 1000 nodes in 4 groups, beside a Gibbs loop in numba",
        "How long do as many sweeps take, and are the communities the same?",
    ),
    "tables": (
        "Coupling tables of 60 sites of 20 levels, beside a Gibbs loop in numba",
        "How many effective draws come in a second, and are the frequencies the same?",
    ),
}


def _slug(key):
    return key.lower().replace(" ", "-").replace("/", "-per-")


def tabulate(arguments, rows, columns):
    """Results of all seeds: one row each."""
    title, question = QUESTIONS[arguments.case]
    ratios = [row["ratio"] for row in rows]
    chains = "" if arguments.chains == DEFAULT_CHAINS else f" --chains {arguments.chains}"
    middle = Estimate(value=float(np.median(ratios)), low=min(ratios), high=max(ratios))
    return Results(
        name=f"gibbs-loops-{arguments.case}",
        title=title,
        question=question,
        facts={columns["ratio"]: f"{middle.value:.2f} ({middle.low:.2f}–{middle.high:.2f})"},
        tables=[
            Table(
                key="seeds",
                title=f"{arguments.chains} chains on either side",
                columns=[
                    Column(key="seed", label="seed"),
                    *(Column(key=_slug(key), label=label, digits=3) for key, label in columns.items()),
                ],
                rows=[
                    {"seed": seed, **{_slug(key): row[key] for key in columns}}
                    for seed, row in enumerate(rows)
                ],
            )
        ],
        settings={"chains": arguments.chains, "seeds": arguments.seeds},
        notes=[
            "Processor time of one thread, compiling not counted; both sides in one process, in turn.",
            *dict.fromkeys(line for row in rows for line in row["said"]),
        ],
        provenance=Provenance.of_software(
            describe_software(),
            command=f"python benchmarks/gibbs_loops.py {arguments.case} --seeds {arguments.seeds}{chains}",
            seeds=list(range(arguments.seeds)),
        ),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=("communities", "tables"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--chains", type=int, default=DEFAULT_CHAINS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    compare, columns = {
        "communities": (compare_communities, COMMUNITIES),
        "tables": (compare_tables, TABLES),
    }[arguments.case]
    rows = []
    for seed in range(arguments.seeds):
        rows.append(compare(seed, arguments.chains))
        print(rows[-1], flush=True)
    if arguments.json:
        record = tabulate(arguments, rows, columns)
        arguments.json.write_text(record.model_dump_json(indent=1) + "\n")
