"""Tours when a whole district may be slow: the shortest, and the one with the best bad days.

    STEPPE_DATA=/path/to/data python examples/robust_routes.py

Takes TSPLIB's berlin52 where it is at hand, else 30 random cities. Writes out/examples/robust_routes.png.

Result on berlin52: the shortest tour, 7542, is also the one with the best bad days; the worst tenth of them
takes 14187 ± 110.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.datasets import DataError, load
from steppe.report import style
from steppe.targets import tsp

OUT = Path("out/examples/robust_routes")
RISK = "cvar:0.1"
COLORS = {"shortest": style.SHARP_COLOR, "robust": style.FLAT_COLOR}


def instance():
    try:
        berlin = load("tsplib:berlin52", download=False)
        return berlin.name, berlin.coordinates, berlin.distances
    except DataError:
        places = np.random.default_rng(0).random((30, 2))
        return "30 random cities", places, np.linalg.norm(places[:, None] - places, axis=-1)


def slow_district(places, distances, beta, key):
    """Roads that touch a fifth of the map around a random city take up to four times as long."""
    at, how = jax.random.split(key)
    far = jnp.linalg.norm(places - places[jax.random.randint(at, (), 0, len(places))], axis=1)
    near = far <= jnp.quantile(far, 0.2)
    factor = 1 + 3 * jax.random.uniform(how) * (near[:, None] | near)
    return tsp(distances * factor, inverse_temperature=beta)


def main():
    name, places, distances = instance()
    beta = 1 / float(np.median(np.sort(distances, axis=1)[:, 1]))  # a typical road costs a nat
    target = tsp(distances, inverse_temperature=beta)
    scenario = partial(slow_district, jnp.asarray(places), jnp.asarray(distances), beta)
    short = steppe.anneal(target, key=jax.random.key(0), num_steps=2000, num_chains=8)
    after = steppe.robust(target, scenario=scenario, risk=RISK, num_samples=32)
    search = {"num_steps": 20_000, "num_chains": 8, "initial": short.best_position}
    robust = steppe.anneal(after, steppe.uniform_permutation(), key=jax.random.key(1), **search)
    tours = np.stack([short.best, robust.best])
    judged = steppe.measure_robustness(
        target, tours, key=jax.random.key(2), scenario=scenario, risk=RISK, num_samples=2000
    )
    lengths, bad_days = np.asarray(target.cost(tours)), -judged.value / beta
    for label, length, bad, error in zip(COLORS, lengths, bad_days, judged.standard_error, strict=True):
        print(f"{label:9} length {length:.5g}, worst tenth of days {bad:.5g} ± {error / beta:.2g}")
    draw(name, places, tours.astype(int), lengths, bad_days)


@style.apply()
def draw(name, places, tours, lengths, bad_days):
    figure, axes = style.make_row(2, 9.0, 4.4)
    for axis, (label, color), tour, length, bad in zip(
        axes, COLORS.items(), tours, lengths, bad_days, strict=True
    ):
        axis.plot(*places[np.append(tour, tour[0])].T, "o-", ms=3, lw=1, color=color)
        axis.set_title(f"{label}: {length:.5g}, on bad days {bad:.5g}")
        axis.set_axis_off()
    figure.suptitle(name)
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
