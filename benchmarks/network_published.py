"""Binary networks as the paper ran them, over several seeds, beside the published figures.

    STEPPE_DATA=... python benchmarks/network_published.py --seeds 5

Protocol: 50 chains, 1001 iterations, every 5th logged from the first, nothing discarded; a network of 100
hidden units and U = −100 · MSE. A run's figures are means over its log points: the training log-likelihood
(−MSE, mean over chains) and the test RMSE of the mean output of the 50 current networks. The ± printed here
is the spread over seeds; the published ± is the spread along one run, mostly burn-in.
"""

import argparse
import json
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import datasets, targets

ALPHA = 0.1
CENTERS = {  # (center_step_size, coupling_variance) of edula and edmala
    "compas": ((0.01, 4.0), (0.001, 4.0)),
    "news": ((0.01, 2.0), (0.0001, 0.8)),
    "adult": ((0.0001, 2.0), (0.0001, 4.0)),
    "blog": ((0.01, 1.0), (0.0001, 1.0)),
}
PUBLISHED = {  # training log-likelihood, test RMSE
    "compas": {
        "gibbs": (-0.3473, 0.4752),
        "gwg": (-0.3304, 0.4756),
        "dula": (-0.3385, 0.4789),
        "dmala": (-0.3149, 0.4773),
        "edula": (-0.3385, 0.4778),
        "edmala": (-0.3145, 0.4768),
    },
    "news": {
        "gibbs": (-0.2156, 0.1008),
        "gwg": (-0.2138, 0.0996),
        "dula": (-0.2101, 0.0923),
        "dmala": (-0.2097, 0.0916),
        "edula": (-0.2097, 0.0918),
        "edmala": (-0.2098, 0.0915),
    },
    "adult": {
        "gibbs": (-0.4310, 0.4784),
        "gwg": (-0.3869, 0.4432),
        "dula": (-0.3044, 0.3895),
        "dmala": (-0.2988, 0.3872),
        "edula": (-0.3032, 0.3889),
        "edmala": (-0.2987, 0.3861),
    },
    "blog": {
        "gibbs": (-0.4009, 0.4442),
        "gwg": (-0.3414, 0.3728),
        "dula": (-0.2732, 0.3236),
        "dmala": (-0.2705, 0.3213),
        "edula": (-0.2699, 0.3218),
        "edmala": (-0.2699, 0.3211),
    },
}


def recipes(dataset):
    edula, edmala = CENTERS[dataset]
    return {
        "gibbs": steppe.gibbs(),
        "gwg": steppe.gwg(),
        "dula": steppe.dula(ALPHA),
        "dmala": steppe.dmala(ALPHA),
        "edula": steppe.edula(ALPHA, *edula),
        "edmala": steppe.edmala(ALPHA, *edmala),
    }


@partial(jax.jit, static_argnames=("num_points", "stride"))
def run(sampler, states, key, x, y, num_points, stride):
    """Figures at every log point: the state after iterations 0, stride, 2 · stride, …"""
    target, num_chains = sampler.target, len(states.log_density)

    def step(states, key):
        states, info = jax.vmap(sampler.step)(jax.random.split(key, num_chains), states)
        return states, info.acceptance_rate.mean()

    def point(states, keys):
        outputs = jax.lax.map(lambda position: target.model.outputs(position, x), states.position)
        rmse = jnp.sqrt(jnp.mean((outputs.mean(0) - y) ** 2))
        likelihood = states.log_density.mean() / target.temperature
        states, acceptance = jax.lax.scan(step, states, keys)
        return states, (likelihood, rmse, acceptance.mean())

    first, key = jax.random.split(key)
    states, _ = step(states, first)  # iteration 0
    keys = jax.random.split(key, num_points * stride).reshape(num_points, stride)
    return jax.lax.scan(point, states, keys)[1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="compas", choices=tuple(CENTERS))
    parser.add_argument("--data", default=None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--chains", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=1001)
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--rows", type=int, default=None, help="use only the first training rows")
    parser.add_argument("--samplers", default="gibbs,gwg,dula,dmala,edula,edmala")
    options = parser.parse_args()

    data = datasets.load(options.dataset, data=options.data, as_published=True)
    train = datasets.Split(data.train.x[: options.rows], data.train.y[: options.rows])
    target = targets.binary_network(train.x, train.y, options.hidden, preset="published")
    test_x = jnp.c_[data.test.x, jnp.ones(len(data.test))]
    constant = np.sqrt(np.mean((data.test.y - train.y.mean()) ** 2))
    print(f"{options.dataset}: {train.x.shape[0]} rows × {train.x.shape[1]}, {options.seeds} seeds")
    print(f"{'':8s} train log-likelihood (paper)      test RMSE (paper)        acceptance  s/run")
    rows = {}
    for name in options.samplers.split(","):
        sampler = recipes(options.dataset)[name].build(target, audit=False)
        figures, start = [], time.perf_counter()
        for seed in range(options.seeds):
            key_start, key = jax.random.split(jax.random.key(seed))
            states = jax.vmap(sampler.init)(target.domain.draw(key_start, (options.chains,)))
            series = run(sampler, states, key, test_x, data.test.y, (options.iterations + 4) // 5, 5)
            figures.append([float(part.mean()) for part in series])
        seconds = (time.perf_counter() - start) / options.seeds
        mean, spread = np.mean(figures, 0), np.std(figures, 0, ddof=int(options.seeds > 1))
        paper = PUBLISHED[options.dataset][name]
        rows[name] = {"mean": mean.tolist(), "spread": spread.tolist(), "paper": paper, "seconds": seconds}
        print(
            f"{name:8s} {mean[0]:.4f} ± {spread[0]:.4f} ({paper[0]:.4f})   {mean[1]:.4f} ± {spread[1]:.4f} "
            f"({paper[1]:.4f})   {mean[2]:.3f}  {seconds:.0f}",
            flush=True,
        )
    variance = float(np.mean((train.y - train.y.mean()) ** 2))
    print(f"constant {-variance:.4f}{'':26s}{constant:.4f}")
    print(json.dumps({"dataset": options.dataset, "constant_rmse": float(constant), "samplers": rows}))


if __name__ == "__main__":
    main()
