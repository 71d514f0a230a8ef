"""A maximum cut whose nodes are not all as reliable: the best cut, and the one that is left after failures.

    python examples/max_cut.py

Ten nodes change sides with probability .3, the others with .01. Writes out/examples/max_cut.png.

Result: here the largest cut, of weight 386, is also the most robust: 352.7 of it are left in the mean.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import max_cut

OUT = Path("out/examples/max_cut")
NUM_NODES, NUM_EDGES = 60, 150
MARKS = ("is_best", "is_robust")


def main():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(np.ones((NUM_NODES, NUM_NODES)), 1))
    edges = pairs[rng.choice(len(pairs), NUM_EDGES, replace=False)]
    weights = rng.integers(1, 6, NUM_EDGES).astype(float)
    target = max_cut(edges, weights, num_nodes=NUM_NODES, inverse_temperature=0.5)
    rates = np.full(NUM_NODES, 0.01)
    rates[rng.choice(NUM_NODES, 10, replace=False)] = 0.3
    found = steppe.find_flat_modes(target, key=jax.random.key(0), flip_rate=rates, num_modes=20)
    print(found)
    cuts = np.asarray(jax.vmap(target.cut_value)(np.stack([mode.position for mode in found])))
    chosen = [next(rank for rank, mode in enumerate(found) if getattr(mode, name)) for name in MARKS]
    draw(edges, found, cuts, chosen)


@style.apply()
def draw(edges, found, cuts, chosen):
    figure, _ = style.make_row(1, 9.0, 3.6)
    figure.clear()
    axes = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    axes[0].plot(cuts, [2 * mode.value for mode in found], "o", color=style.FLAT_COLOR)
    axes[0].set(xlabel="weight of the cut", ylabel="mean weight after failures", title="modes found")
    angles = 2 * np.pi * np.arange(NUM_NODES) / NUM_NODES
    for axis, rank, label in zip(axes[1:], chosen, ("largest cut", "most robust"), strict=True):
        side = np.asarray(found[rank].position) > 0
        order = np.argsort(np.argsort(side, kind="stable"), kind="stable")
        places = np.stack([np.cos(angles[order]), np.sin(angles[order])])
        for i, j in edges:
            across = side[i] != side[j]
            axis.plot(*places[:, [i, j]], lw=0.5, color="#AAAAAA" if across else style.SHARP_COLOR)
        axis.scatter(*places, c=side, cmap="Greys", edgecolors="black", s=14, vmin=-0.2, zorder=2)
        axis.set_title(f"{label}: {cuts[rank]:g}\nred: not cut")
        axis.set(aspect="equal")
        axis.set_axis_off()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
