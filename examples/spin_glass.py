"""A spin glass below its freezing point: tempering crosses valleys that plain sweeps do not.

    python examples/spin_glass.py

Two replicas of a 6³ Edwards-Anderson glass (couplings ±1) at T = 0.7. The histogram of their overlap must be
symmetric, for flipping all spins changes nothing. Writes out/examples/spin_glass.png.

Result: tempered chains agree, with R-hat 1.002 and q² = 0.618 ± 0.005; plain sweeps do not, with R-hat 1.35
and q² = 0.14 ± 0.07.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import spin_glass

OUT = Path("out/examples/spin_glass")
SIDE, TEMPERATURE = 6, 0.7


def main():
    target = spin_glass((SIDE, SIDE, SIDE), seed=0, scale=1 / TEMPERATURE)
    sweeps = steppe.chromatic_gibbs()
    recipes = {"plain sweeps": sweeps, "parallel tempering": steppe.parallel_tempering(base=sweeps)}
    overlaps = {}
    for name, recipe in recipes.items():
        run = steppe.sample(
            target, recipe, key=jax.random.key(1), num_chains=8, num_warmup=500, num_draws=4000
        )
        spins = run.positions
        pairs = (spins[0::2] * spins[1::2]).mean(axis=-1)
        overlaps[name] = pairs.ravel()
        squares = (pairs**2).mean(axis=1)  # a mean for every pair of chains
        found = run.summary().mixing.log_density
        print(
            f"{name}: energy per spin {-TEMPERATURE * found.mean / SIDE**3:.4f}, R-hat {found.rhat:.3f}, "
            f"q² {squares.mean():.3f} ± {squares.std(ddof=1) / len(squares) ** 0.5:.3f}"
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
