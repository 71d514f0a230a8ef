"""Labels and means of a mixture together: discrete sites by Langevin, real parts by Hamiltonian Monte Carlo.

    python examples/gaussian_mixture.py

Sixty points from two bells. The means are ordered in the log-density, so that labels cannot be exchanged.
Needs BlackJAX: `pip install "steppe[blackjax,plots]"`. Writes out/examples/gaussian_mixture.png.

Result: means −1.249 ± 0.008 and 1.484 ± 0.005 (Monte Carlo errors), posterior deviations 0.22 and 0.20.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.report import style

OUT = Path("out/examples/gaussian_mixture")
TRUTH, SIZES = (-1.5, 1.5), (25, 35)


def main():
    points = np.random.default_rng(1).normal(np.repeat(TRUTH, SIZES), 1.0)
    data = jnp.asarray(points, jnp.float32)

    def log_density(x):
        means = x["mu"][0] + x["label"] * (x["mu"][1] - x["mu"][0])
        order = jnp.where(x["mu"][0] < x["mu"][1], 0.0, -jnp.inf)
        return order - 0.5 * jnp.sum((data - means) ** 2) - 0.5 * jnp.sum((x["mu"] / 5) ** 2)

    domain = steppe.Product(label=steppe.Binary(len(data)), mu=steppe.Real(2, scale=2.0))
    start = {"label": np.tile(points > 0, (4, 1)), "mu": np.tile([-1.0, 1.0], (4, 1))}
    target, recipe = steppe.Target(log_density, domain), steppe.mixed(steppe.dmala())
    run = steppe.sample(target, recipe, key=jax.random.key(0), initial=start, num_draws=3000)
    print(run.summary())
    means = run.positions["mu"].reshape(-1, 2)
    for name, values in zip(("lower", "upper"), means.T, strict=True):
        print(f"{name} mean: {values.mean():.2f} ± {values.std():.2f} (posterior)")
    draw(points, run.positions["label"].mean(axis=(0, 1)), means)


@style.apply()
def draw(points, chance, means):
    figure, _ = style.make_row(1, 8.0, 3.0)
    figure.clear()
    left, right = figure.subplots(1, 2)
    left.scatter(points, chance, color=style.FLAT_COLOR, s=14)
    left.set(xlabel="point", ylabel="probability of the upper bell")
    for column, truth in enumerate(TRUTH):
        right.hist(means[:, column], bins=40, density=True, alpha=0.7)
        right.axvline(truth, color="#444444", lw=0.8)
    right.set(xlabel="mean (line: truth)", ylabel="posterior density")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
