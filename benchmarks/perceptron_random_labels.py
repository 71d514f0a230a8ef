"""Binary perceptrons with random labels, solved by annealed DMALA.

    python benchmarks/perceptron_random_labels.py [--runs 8]

U = −β Σ softplus(−4 y ξ·w/√N) with β = 0.5·exp(4·progress), 6000 steps of 7 chains. A run draws a new problem
and counts as solved if one of its chains meets weights without a training error. The log-density is not the
number of errors, so the errors of the best state in log-density are counted, and those of the last.
"""

import argparse
import json
import math
import time

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import targets

NUM_CHAINS = 7
NUM_STEPS = 6000
SIZES = ((501, 0.5), (1001, 0.6))
COOLING = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 0.5 * math.exp(4)))


def measured(num_inputs: int, load: float, seed: int) -> dict:
    begun, begun_cpu = time.perf_counter(), time.process_time()
    problem = targets.random_labels(seed, num_inputs, load)
    target = targets.perceptron(problem.patterns, problem.labels, "logistic", sharpness=4.0)
    annealed = steppe.anneal(
        target,
        steppe.dmala(),
        COOLING,
        key=jax.random.key(seed),
        num_chains=NUM_CHAINS,
        num_steps=NUM_STEPS,
        progress=False,
    )
    ends = jnp.concatenate([annealed.best_position, annealed.position])
    errors = np.asarray(target.training_errors(ends)).reshape(2, NUM_CHAINS).min(axis=0)
    return {
        "num_inputs": num_inputs,
        "load": load,
        "seed": seed,
        "fewest_errors": int(errors.min()),
        "chains_without_error": int((errors == 0).sum()),
        "seconds": round(time.perf_counter() - begun, 1),
        "cpu": round(time.process_time() - begun_cpu, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    arguments = parser.parse_args()
    rows = []
    for num_inputs, load in SIZES:
        for seed in range(arguments.runs):
            rows.append(measured(num_inputs, load, seed))
            print("  ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
        solved = sum(row["fewest_errors"] == 0 for row in rows if row["num_inputs"] == num_inputs)
        print(f"N = {num_inputs} at load {load}: {solved} of {arguments.runs} runs without error", flush=True)
    print(json.dumps({"benchmark": "perceptron_random_labels", "rows": rows}))


if __name__ == "__main__":
    main()
