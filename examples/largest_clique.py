"""How many nodes of a graph are all joined to each other? A clique problem of DIMACS, by annealing.

    STEPPE_DATA=/path/to/data python examples/largest_clique.py

Takes C125.9 of DIMACS where it is at hand, whose largest known clique has 34 nodes; else a random graph in
which a clique of 20 is hidden. Twenty seeds say how often a short search finds it. Writes
out/examples/largest_clique.png.

Result: 34 nodes in all of 20 searches, so in at least 86 % of such searches (95 % confidence).
"""

from pathlib import Path

import jax
import numpy as np
from scipy.stats import beta

import steppe
from steppe.datasets import DataError, load
from steppe.report import style
from steppe.targets import clique

OUT = Path("out/examples/largest_clique")
NUM_SEEDS, NUM_STEPS = 20, 100


def instance():
    try:
        graph = load("dimacs:C125.9", download=False)
        return graph.name, graph.num_nodes, graph.edges, 34
    except DataError:
        rng = np.random.default_rng(0)
        is_edge = rng.random((100, 100)) < 0.5
        hidden = rng.choice(100, 20, replace=False)
        is_edge[np.ix_(hidden, hidden)] = True
        return "100 nodes and a hidden clique", 100, np.argwhere(np.triu(is_edge, 1)), 20


def main():
    name, num_nodes, edges, known = instance()
    target = clique(edges, num_nodes=num_nodes)
    sizes, climbs, best = [], [], None
    for seed in range(NUM_SEEDS):
        found = steppe.anneal(target, key=jax.random.key(seed), num_steps=NUM_STEPS, num_chains=2)
        nodes = np.asarray(target.repair(found.best)) > 0.5
        best = nodes if best is None or nodes.sum() > best.sum() else best
        sizes.append(int(nodes.sum()))
        climbs.append((found.history["progress"][0], found.history["best_log_density"].max(axis=0)))
    hits = sum(size >= known for size in sizes)
    least = beta.ppf(0.05, hits, NUM_SEEDS - hits + 1)  # one-sided, exact
    print(f"{name}: {known} nodes in {hits} of {NUM_SEEDS} searches, a rate of at least {least:.0%} (95 %)")
    draw(name, num_nodes, edges, best, known, climbs)


@style.apply()
def draw(name, num_nodes, edges, best, known, climbs):
    figure, _ = style.make_row(1, 8.5, 3.6)
    figure.clear()
    left, right = figure.subplots(1, 2)
    matrix = np.zeros((num_nodes, num_nodes))
    order = np.argsort(np.argsort(~best, kind="stable"), kind="stable")
    for first, second in (edges.T, edges.T[::-1]):
        matrix[order[first], order[second]] = 1 + (best[first] & best[second])
    left.imshow(matrix, cmap="Greens", vmin=-0.3, interpolation="nearest")
    left.set(title=f"{name}: the clique first", xlabel="node", ylabel="node")
    left.grid(visible=False)
    for progress, sizes in climbs:
        right.plot(100 * progress, sizes, color=style.FLAT_COLOR, lw=0.8, alpha=0.6)
    right.axhline(known, color="#888888", lw=0.8, ls="--")
    right.set(xlabel="progress of a search, %", ylabel="nodes", title="largest clique so far, 20 searches")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
