"""Four bits with two flat and two sharp modes: who visits them how often?

    python examples/bernoulli.py

Corrected samplers visit a mode as often as π says, the entropic ones too; the tilt does not, and its
distribution says so. Writes out/examples/bernoulli.png.

Result: flat modes have 0.145 of π; `dmala` spends 0.146 ± 0.002 and `edmala` 0.146 ± 0.005 of its time
there, `roughness_tilted` 0.369 ± 0.006.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import paper_bernoulli
from steppe.targets.bernoulli import PAPER_MODES

OUT = Path("out/examples/bernoulli")
RECIPES = [steppe.dula(step_size=0.2), steppe.dmala(), steppe.edmala(), steppe.roughness_tilted(strength=2.0)]


def main():
    target = paper_bernoulli()
    domain = target.domain
    modes = [index_of(domain, states) for states in PAPER_MODES]  # flat, sharp
    values = np.asarray(jax.vmap(target.log_density)(domain.enumerate()))
    rows = {"π": figures(np.exp(values)[None], modes, values)}
    for recipe in RECIPES:
        run = steppe.sample(
            target, recipe, key=jax.random.key(0), num_chains=16, num_warmup=500, num_draws=2000
        )
        index = index_of(domain, run.trace.levels())
        counts = np.stack([np.bincount(chain, minlength=16) for chain in index])
        rows[recipe.name] = figures(counts, modes, values)
    for name, (means, errors) in rows.items():
        print(f"{name:17} flat, sharp, E[U]: {means.round(3)} ± {errors.round(3)}")
    draw(rows)


def figures(counts, modes, values):
    """Mass of flat and of sharp modes and E[U], with standard errors over chains."""
    fractions = counts / counts.sum(axis=1, keepdims=True)
    columns = np.stack([*(fractions[:, group].sum(axis=1) for group in modes), fractions @ values])
    return columns.mean(axis=1), columns.std(axis=1) / np.sqrt(max(1, len(fractions) - 1))


def index_of(domain, bits):
    return np.asarray(domain.index(jnp.asarray(bits, float)))


@style.apply()
def draw(rows):
    figure, (axis,) = style.make_row(1, 7.0, 3.4)
    places = np.arange(len(rows))
    colors = {"flat modes": style.FLAT_COLOR, "sharp modes": style.SHARP_COLOR}
    for column, (label, color) in enumerate(colors.items()):
        fractions, errors = np.transpose([[means[column], errors[column]] for means, errors in rows.values()])
        axis.bar(places + 0.4 * column - 0.2, fractions, 0.38, yerr=errors, label=label, color=color)
        axis.axhline(fractions[0], color=color, lw=1, ls="--")
    axis.set_xticks(places, [f"{name}\nE[U] {means[2]:.2f}" for name, (means, _) in rows.items()])
    axis.set_ylabel("fraction of draws")
    axis.set_title("Fraction of draws on flat and sharp modes; dashed: under π")
    axis.legend()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
