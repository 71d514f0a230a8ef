"""The paper's eight cities: distribution of corrected samplers beside enumeration, and what they cost.

    python benchmarks/tsp_paper_distribution.py [--steps 20000]

Chains start at the paper's tour A…H; the first third is discarded. Errors are standard errors over
independent chains. "moves" is the fraction of steps that change the tour.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import targets
from steppe.samplers.permutations import informed_permutation, uniform_permutation
from steppe_edlp.tsp.enumeration import enumerate_costs

NUM_CHAINS = 256
SAMPLERS = {
    "dmala, α 0.2 (paper)": ("bits", steppe.dmala(step_size=0.2), 1),
    "edmala, α 0.2, α_a 0.1, η 0.8 (paper)": (
        "bits",
        steppe.edmala(step_size=0.2, center_step_size=0.1, coupling_variance=0.8),
        1,
    ),
    "dmala, α 0.15": ("bits", steppe.dmala(step_size=0.15), 1),
    "edmala, α 0.15, α_a 0.5, η 5": (
        "bits",
        steppe.edmala(step_size=0.15, center_step_size=0.5, coupling_variance=5.0),
        1,
    ),
    "uniform 2-opt and or-opt": ("permutation", uniform_permutation(), 4),
    "informed 2-opt and insertion": ("permutation", informed_permutation(moves=("two_opt", "insert")), 20),
    "the same with a center, η 2": (
        "permutation",
        informed_permutation(moves=("two_opt", "insert"), coupling_variance=2.0),
        20,
    ),
}


@jax.jit
def run(sampler, key, states, num_steps, exact_mean, limit):
    def step(index, carry):
        states, sums = carry
        keys = jax.random.split(jax.random.fold_in(key, index), NUM_CHAINS)
        states, info = jax.vmap(sampler.step)(keys, states)
        costs = -states.log_density
        moved = info.is_accepted & (info.num_flips > 0)
        figures = [costs, (costs - exact_mean) ** 2, costs < limit, moved]
        return states, sums + jnp.stack([figure.astype(costs.dtype) for figure in figures])

    states, sums = jax.lax.fori_loop(0, num_steps, step, (states, jnp.zeros((4, NUM_CHAINS))))
    return states, sums / num_steps


def measured(name: str, num_steps: int, exact: dict) -> dict:
    encoding, recipe, speed = SAMPLERS[name]
    target = targets.tsp_paper(encoding)
    sampler, num_steps = recipe.build(target), num_steps // speed
    start = target.position(np.arange(8))
    states = jax.vmap(lambda key: sampler.init(start, key))(jax.random.split(jax.random.key(0), NUM_CHAINS))
    limits = exact["mean"], exact["optimum"] + 1e-3
    states, _ = run(sampler, jax.random.key(1), states, num_steps // 2, *limits)
    begun = time.process_time()
    means = np.asarray(run(sampler, jax.random.key(2), states, num_steps, *limits)[1], float)
    cpu = time.process_time() - begun
    errors = means.std(axis=1, ddof=1) / np.sqrt(NUM_CHAINS)
    mean, square, fraction, moves = means.mean(axis=1).tolist()
    errors = errors.tolist()
    return {
        "sampler": name,
        "steps": num_steps,
        "mean": [round(mean, 4), round(errors[0], 4)],
        "std": [round(square**0.5, 4), round(errors[1] / (2 * square**0.5), 4)],
        "optimal_share": [round(fraction, 5), round(errors[2], 5)],
        "moves": round(moves, 5),
        "microseconds_per_step_and_chain": round(1e6 * cpu / num_steps / NUM_CHAINS, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    arguments = parser.parse_args()
    names = ("optimum", "mean", "std", "optimal_share")
    exact = {name: float(getattr(enumerate_costs(), name)) for name in names}
    print("exact:", "  ".join(f"{name} {value:.6g}" for name, value in exact.items()))
    rows = []
    for name in SAMPLERS:
        rows.append(measured(name, arguments.steps, exact))
        print("  ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    print(json.dumps({"benchmark": "tsp_paper_distribution", "exact": exact, "rows": rows}))


if __name__ == "__main__":
    main()
