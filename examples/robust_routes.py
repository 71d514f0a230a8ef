"""Tours with good alternatives: the most robust of the short ones, not the shortest.

    STEPPE_DATA=/path/to/data python examples/robust_routes.py

Takes TSPLIB's berlin52 where it is at hand, else 30 random cities. Writes out/examples/robust_routes.png.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.datasets import DataError, load
from steppe.report import style
from steppe.routes import rank_robust
from steppe.targets import tsp

OUT = Path("out/examples/robust_routes")


def instance():
    try:
        berlin = load("tsplib:berlin52", download=False)
        return berlin.name, berlin.coordinates, berlin.distances, berlin.optimum
    except DataError:
        places = np.random.default_rng(0).random((30, 2))
        return "30 random cities", places, np.linalg.norm(places[:, None] - places, axis=-1), None


def main():
    name, places, distances, optimum = instance()
    scale = float(np.median(np.sort(distances, axis=1)[:, 1]))  # a typical road
    target = tsp(distances, inverse_temperature=1 / scale)
    cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 10.0))
    cooled = steppe.anneal(
        target, steppe.informed_permutation(), cooling, key=jax.random.key(0), num_steps=3000, num_chains=8
    )
    warm = tsp(distances, inverse_temperature=8 / scale)  # cold enough to stay among short tours
    recipe = steppe.informed_permutation(moves=("two_opt", "insert"))
    request = {"key": jax.random.key(1), "num_chains": 8, "num_warmup": 200, "num_draws": 1500}
    run = steppe.sample(warm, recipe, initial=cooled.best_position, **request)
    tours = run.levels
    costs = np.asarray(warm.cost(warm.domain.from_levels(tours)))
    ranked = rank_robust(tours, costs, top=50, radius=4, target=warm, tolerance=0.01)
    shortest = int(np.argmin(ranked.costs))
    for label, rank in (("most robust", 0), ("shortest", shortest)):
        print(
            f"{label:12} length {ranked.costs[rank]:.4g}, {ranked.num_alternatives[rank]} alternatives, "
            f"{ranked.disrupted_cost[rank]:.4g} after a random 2-opt move"
        )
    print(f"shortest known: {optimum}")
    draw(name, places, ranked, shortest)


@style.apply()
def draw(name, places, ranked, shortest):
    figure, axes = style.make_row(2, 9.0, 4.4)
    for axis, label, rank in zip(axes, ("most robust", "shortest"), (0, shortest), strict=True):
        closed = np.append(ranked.tours[rank], ranked.tours[rank][0])
        axis.plot(
            *places[closed].T, "o-", ms=3, lw=1, color=style.FLAT_COLOR if rank == 0 else style.SHARP_COLOR
        )
        axis.set_title(f"{label}: {ranked.costs[rank]:.4g}, {ranked.num_alternatives[rank]} alternatives")
        axis.set_axis_off()
    figure.suptitle(f"{name}: of the 50 shortest tours met")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
