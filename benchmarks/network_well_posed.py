"""Binary networks in the well-posed form: posterior-mean test RMSE beside linear regression and a constant.

    STEPPE_DATA=... python benchmarks/network_well_posed.py compas adult blog news

Chains are annealed on a random part of the training rows, which costs little, and then continued by DMALA
on all of them; draws of the second half of that are averaged. The rows and the targets are the paper's.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import datasets, targets
from steppe_edlp.bnn.tabular import find_rmse, fit_baselines

LIMITS = {"compas": 0.461, "adult": 0.335, "blog": 0.175, "news": 0.066}
PAPER_BEST = {"compas": 0.4752, "adult": 0.3861, "blog": 0.3211, "news": 0.0915}


def posterior_mean_rmse(data, seed, options):
    key_rows, key_anneal, key_sample = jax.random.split(jax.random.key(seed), 3)
    rows = np.asarray(jax.random.permutation(key_rows, len(data.train))[: options.part])
    whole = targets.binary_network(
        data.train.x, data.train.y, options.hidden, temperature=options.temperature
    )
    scale = float(whole.output_scale) * options.spread
    whole = targets.binary_network(
        data.train.x, data.train.y, options.hidden, temperature=options.temperature, output_scale=scale
    )
    part = targets.binary_network(
        data.train.x[rows],
        data.train.y[rows],
        options.hidden,
        temperature=float(whole.temperature),
        output_scale=scale,
        output_offset=float(whole.output_offset),
    )
    annealed = steppe.anneal(
        part,
        steppe.dmala(),
        steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(options.hottest, 1.0)),
        key=key_anneal,
        num_chains=options.chains,
        num_steps=options.anneal,
    )
    last_step = float(np.median(annealed.history["step_size"][:, -1]))
    start = find_rmse(whole.posterior_mean(annealed.position, data.test.x), data.test.y)
    run = steppe.sample(
        whole,
        steppe.dmala(step_size=last_step),
        key=key_sample,
        num_chains=options.chains,
        num_warmup=options.steps // 2,
        num_draws=options.steps // 2 // 5,
        thinning=5,
        initial=annealed.position,
    )
    positions = jnp.asarray(run.positions)
    return {
        "rmse": find_rmse(whole.posterior_mean(positions, data.test.x), data.test.y),
        "rmse_after_annealing": start,
        "train_mse": float(-whole.log_likelihood(positions[:, -1], data.train.x, data.train.y).mean()),
        "step_size": last_step,
        "flips": float(annealed.history["num_flips"][:, -20:].mean()),
        "temperature": float(whole.temperature),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["compas"], help="tables")
    parser.add_argument("--data", default=None)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=None)
    parser.add_argument("--spread", type=float, default=1.0, help="factor of the default output scale")
    parser.add_argument("--hottest", type=float, default=0.02, help="inverse temperature at the start")
    parser.add_argument("--part", type=int, default=5000, help="rows annealed on")
    parser.add_argument("--anneal", type=int, default=800, help="steps of annealing")
    parser.add_argument("--steps", type=int, default=200, help="steps on all rows")
    options = parser.parse_args()
    for name in options.names:
        data = datasets.load(name, data=options.data, as_published=True)
        constant, linear = (error for _, error in fit_baselines(data.train, data.test).values())
        start = time.perf_counter()
        runs = [posterior_mean_rmse(data, seed, options) for seed in range(options.seeds)]
        seconds = (time.perf_counter() - start) / options.seeds
        values = [run["rmse"] for run in runs]
        print(
            f"{name:7s} posterior mean {np.mean(values):.4f} (worst of {len(values)}: {max(values):.4f}, "
            f"wanted ≤ {LIMITS[name]})  linear {linear:.4f}  constant {constant:.4f}  "
            f"paper's best {PAPER_BEST[name]}  {seconds:.0f} s a run",
            flush=True,
        )
        print(json.dumps({"name": name, "linear": linear, "constant": constant, "runs": runs}), flush=True)


if __name__ == "__main__":
    main()
