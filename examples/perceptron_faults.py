"""Which ±1 weights of a perceptron still classify when memory cells fail?

    python examples/perceptron_faults.py

A binary perceptron with 201 weights learns 60 random patterns. On worn hardware every weight changes its sign
with a small probability. Weights found by annealing the loss are compared with those found by annealing its
mean under faults of 5 %. Writes out/examples/perceptron_faults.png.

Result: both classify all 60 patterns; after faults of 5 % weights chosen for faults get 1.31 ± 0.09 patterns
wrong and the others 2.30 ± 0.06.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import perceptron, random_labels

OUT = Path("out/examples/perceptron_faults")
NUM_WEIGHTS, LOAD, FAULTS, NUM_CHAINS, NUM_TRIALS = 201, 0.3, 0.05, 8, 400
RATES = np.asarray([0.0, 0.01, 0.02, 0.05, 0.1, 0.15])
COLORS = {"plain": style.SHARP_COLOR, "for faults": style.FLAT_COLOR}


def main():
    problem = random_labels(0, NUM_WEIGHTS, LOAD)
    target = perceptron(problem.patterns, problem.labels)
    goals = {"plain": target, "for faults": steppe.robust(target, flip_rate=FAULTS, num_samples=32)}
    curves = {}
    for name, goal in goals.items():
        cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.1, 10.0))
        search = {"num_steps": 3000, "num_chains": NUM_CHAINS}
        found = steppe.anneal(goal, steppe.dmala(), cooling, key=jax.random.key(1), **search)
        curves[name] = [count_errors(target, found.best_position, rate) for rate in RATES]
        print(f"{name}: {curves[name][0].mean():.2f} errors without faults, ", end="")
        at = curves[name][list(RATES).index(FAULTS)]
        error = at.std(ddof=1) / NUM_CHAINS**0.5
        print(f"{at.mean():.2f} ± {error:.2f} of {len(problem.labels)} at {FAULTS:.0%}")
    draw(curves)


def count_errors(target, weights, rate):
    """Mean number of wrong patterns of each chain's weights after faults."""
    faults = np.random.default_rng(2).random((NUM_TRIALS, *weights.shape)) < rate
    return np.asarray(target.training_errors(jnp.abs(weights - faults))).mean(axis=0)


@style.apply()
def draw(curves):
    figure, (axis,) = style.make_row(1, 6.0, 3.6)
    for name, errors in curves.items():
        means, spread = np.mean(errors, axis=1), np.std(errors, axis=1, ddof=1) / NUM_CHAINS**0.5
        axis.errorbar(100 * RATES, means, spread, fmt="o-", ms=4, color=COLORS[name], label=name)
    axis.set(xlabel="weights that failed, %", ylabel="wrong patterns", title="mean over eight searches")
    axis.legend()
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
