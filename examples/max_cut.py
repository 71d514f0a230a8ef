"""A maximum cut that stays good when nodes change sides.

    python examples/max_cut.py

At a local maximum the mean loss of moving one node is fixed by the cut itself, (4 cut − 2 total) / nodes. So
flatness is taken as mass within a radius, the local entropy F. Writes out/examples/max_cut.png.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import max_cut

OUT = Path("out/examples/max_cut")
NUM_NODES, NUM_EDGES = 60, 150


def main():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(np.ones((NUM_NODES, NUM_NODES)), 1))
    edges = pairs[rng.choice(len(pairs), NUM_EDGES, replace=False)]
    weights = rng.integers(1, 6, NUM_EDGES).astype(float)
    target = max_cut(edges, weights, num_nodes=NUM_NODES, inverse_temperature=0.5)
    found = steppe.find_flat_modes(
        target, key=jax.random.key(0), num_modes=30, budget=200_000, flatness="local_entropy"
    )
    cuts = np.asarray(jax.vmap(target.cut_value)(np.stack([mode.position for mode in found])))
    print(found)
    best, flattest = int(np.argmax(cuts)), 0
    for label, rank in (("largest cut", best), ("largest F", flattest)):
        mode = found[rank]
        print(f"{label}: cut {cuts[rank]:g}, F {mode.local_entropy:.2f} ± {mode.local_entropy_error:.2f}")
    draw(edges, found, cuts, (best, flattest))


@style.apply()
def draw(edges, found, cuts, chosen):
    figure, _ = style.make_row(1, 9.0, 3.6)
    figure.clear()
    axes = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    entropies = [mode.local_entropy for mode in found]
    errors = [mode.local_entropy_error for mode in found]
    axes[0].errorbar(cuts, entropies, yerr=errors, fmt="o", color=style.FLAT_COLOR)
    axes[0].set(xlabel="weight of the cut", ylabel="local entropy F", title="30 modes of largest F")
    angles = 2 * np.pi * np.arange(NUM_NODES) / NUM_NODES
    for axis, rank, label in zip(axes[1:], chosen, ("largest cut", "largest F"), strict=True):
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
