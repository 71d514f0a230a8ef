"""The Ising model below, at and above its critical coupling: large patches, slow mixing.

    python examples/ising_at_criticality.py

Gibbs sweeps on a 24 × 24 lattice around J = ln(1 + √2)/2. Prints how many draws a run is worth; writes
out/examples/ising_at_criticality.png.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import ising_lattice

OUT = Path("out/examples/ising_at_criticality")
SIDE, CRITICAL = 24, np.log(1 + np.sqrt(2)) / 2
COUPLINGS = {"below": 0.8 * CRITICAL, "critical": CRITICAL, "above": 1.2 * CRITICAL}


def main():
    lattices, traces = {}, {}
    for name, coupling in COUPLINGS.items():
        target = ising_lattice((SIDE, SIDE), coupling)
        sweeps = steppe.gibbs(num_updates=SIDE * SIDE)
        run = steppe.sample(
            target, sweeps, key=jax.random.key(0), num_chains=4, num_warmup=500, num_draws=500
        )
        positions = run.positions
        lattices[name] = positions[0, -1].reshape(SIDE, SIDE)
        traces[name] = np.abs(positions.mean(axis=-1))
        summary = run.summary({"|m|": lambda s: abs(s.mean(axis=-1))})
        figures = summary.to_dict()["quantities"]["|m|"]
        print(
            f"J = {coupling:.3f} ({name:8}): |m| {figures['mean']:.3f}, {figures['ess']:.0f} effective draws"
        )
    draw(lattices, traces)


@style.apply()
def draw(lattices, traces):
    figure, axes = style.make_row(len(lattices), 9.0, 4.6)
    figure.clear()
    rows = figure.subplots(2, len(lattices), height_ratios=(2, 1))
    axes = rows[0]
    for axis, (name, lattice) in zip(axes, lattices.items(), strict=True):
        axis.imshow(lattice, cmap="Greys", vmin=-1, vmax=1)
        axis.set_title(f"J = {COUPLINGS[name]:.3f}, {name}")
        axis.set_axis_off()
    for axis, trace in zip(rows[1], traces.values(), strict=True):
        axis.plot(trace.T, lw=0.8)
        axis.set(ylim=(0, 1), xlabel="draw")
    rows[1][0].set_ylabel("|magnetisation|")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
