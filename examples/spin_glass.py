"""A spin glass below its freezing point: tempering crosses valleys that plain sweeps do not.

    python examples/spin_glass.py

Two replicas of a 6³ Edwards-Anderson glass (couplings ±1) at T = 0.7. The histogram of their overlap must be
symmetric, for flipping all spins changes nothing. Writes out/examples/spin_glass.png.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import ising_graph

OUT = Path("out/examples/spin_glass")
SIDE, TEMPERATURE = 6, 0.7


def main():
    sites = np.arange(SIDE**3).reshape(SIDE, SIDE, SIDE)
    edges = np.concatenate(
        [np.stack([sites, np.roll(sites, -1, axis)], -1).reshape(-1, 2) for axis in range(3)]
    )
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(edges))
    target = ising_graph(edges, signs / TEMPERATURE)
    sweeps = steppe.chromatic_gibbs()
    recipes = {"plain sweeps": sweeps, "parallel tempering": steppe.parallel_tempering(base=sweeps)}
    overlaps = {}
    for name, recipe in recipes.items():
        run = steppe.sample(
            target, recipe, key=jax.random.key(1), num_chains=8, num_warmup=500, num_draws=1000
        )
        spins = run.positions
        overlaps[name] = (spins[0::2] * spins[1::2]).mean(axis=-1).ravel()
        energy = -TEMPERATURE * run.trace.statistic("log_density").mean() / SIDE**3
        verdict = run.summary().diagnosis
        print(
            f"{name}: energy per spin {energy:.4f}, q² {np.mean(overlaps[name] ** 2):.3f}, ok: {verdict.ok}"
        )
    draw(overlaps)


@style.apply()
def draw(overlaps):
    figure, panels = style.make_row(2, 8.0, 3.2)
    for axes, (name, values) in zip(panels, overlaps.items(), strict=True):
        axes.hist(values, np.linspace(-1, 1, 41).tolist(), density=True, color=style.FLAT_COLOR)
        axes.set(title=name, xlabel="overlap q of two replicas")
    panels[0].set_ylabel("density")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
