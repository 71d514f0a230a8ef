"""Which hotspots may transmit at once, and which plan still works on a bad day?

    python examples/wireless.py

Hotspots that are close disturb each other, so a plan is an independent set of the graph of disturbances,
worth the people it serves. On a bad day pairs that are a little farther apart disturb each other as well, and
then neither of the two serves anybody. The best plan for a quiet day is found beside the best for the mean
over bad days, and both are judged on bad days that neither has seen. Writes out/examples/wireless.png.

Result: on 1000 bad days that neither has seen, the plan for bad days serves 3554 ± 13 people in the mean
and the other one 2800 ± 19.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import independent_set, qubo

OUT = Path("out/examples/wireless")
NUM_HOTSPOTS, NEAR, FAR, CHANCE = 80, 0.13, 0.19, 0.25
NUM_PLANNED, NUM_JUDGED = 40, 1000


def weigh_day(people, pairs):
    """People served on a day: two hotspots that disturb each other lose the people of both."""
    matrix = np.diag(-people)
    matrix[pairs[:, 0], pairs[:, 1]] = people[pairs].sum(axis=1)
    return qubo(matrix)


def count_served(plan, people, pairs):
    """People served: a hotspot that is disturbed serves nobody."""
    is_on = np.asarray(plan) > 0.5
    is_on[pairs[is_on[pairs].all(axis=1)].ravel()] = False
    return float(people[is_on].sum())


def main():
    rng = np.random.default_rng(4)
    places = rng.random((NUM_HOTSPOTS, 2))
    people = np.round(rng.gamma(4.0, 25.0, NUM_HOTSPOTS) + 20)
    pairs = np.argwhere(np.triu(np.ones((NUM_HOTSPOTS, NUM_HOTSPOTS)), 1))
    distances = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    sure, possible = pairs[distances < NEAR], pairs[(distances >= NEAR) & (distances < FAR)]

    def draw_day():
        return np.concatenate([sure, possible[rng.random(len(possible)) < CHANCE]])

    quiet = independent_set(sure, people, num_nodes=NUM_HOTSPOTS)
    days = [weigh_day(people, draw_day()) for _ in range(NUM_PLANNED)]
    goals = {"quiet": quiet, "bad": steppe.robust(days[0], scenarios=days)}
    plans = {n: steppe.anneal(goals[n], key=jax.random.key(0), num_steps=2000).best for n in goals}
    fresh, served = [draw_day() for _ in range(NUM_JUDGED)], {}
    for name, plan in plans.items():
        served[name] = [count_served(plan, people, day) for day in fresh]
        mean, error = np.mean(served[name]), np.std(served[name]) / NUM_JUDGED**0.5
        print(f"plan for {name} days: {count_served(plan, people, sure):.0f} people on a quiet day, ", end="")
        print(
            f"{mean:.0f} ± {error:.0f} on a bad day, {np.quantile(served[name], 0.05):.0f} on the worst of 20"
        )
    draw(places, people, sure, plans, served)


@style.apply()
def draw(places, people, sure, plans, served):
    figure, _ = style.make_row(1, 10.0, 3.4)
    figure.clear()
    axes = figure.subplots(1, 3)  # each with scales of its own
    bins = np.linspace(min(map(min, served.values())), max(map(max, served.values())), 30)
    for panel, name, color in zip(axes, plans, (style.SHARP_COLOR, style.FLAT_COLOR), strict=False):
        is_on = np.asarray(plans[name]) > 0.5
        panel.plot(*places[sure.T].transpose(2, 0, 1), color="0.8", lw=0.7, zorder=1)
        panel.scatter(*places[~is_on].T, s=people[~is_on] / 6, facecolor="white", edgecolor="0.6", zorder=2)
        panel.scatter(*places[is_on].T, s=people[is_on] / 6, color=color, zorder=3)
        panel.set(title=f"plan for {name} days: {is_on.sum()} hotspots", xticks=[], yticks=[], aspect="equal")
        panel.grid(visible=False)
        axes[2].hist(served[name], bins, color=color, alpha=0.65, label=f"for {name} days")
    axes[2].set(title="1000 bad days that neither has seen", xlabel="people served", ylabel="days")
    axes[2].legend()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
