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

import numpy as np

from steppe import datasets, targets
from steppe_edlp.bnn.chains import log_chains
from steppe_edlp.bnn.run import make_recipes
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.request import Request

EXPERIMENT = EXPERIMENTS["bnn"]
SIZE = EXPERIMENT.size(Request(scale="full"))
PAPER = {(row["data"], row["sampler"]): (row["likelihood"], row["rmse"]) for row in EXPERIMENT.published}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="compas", choices=tuple(SIZE.centers))
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
    constant = np.sqrt(np.mean((data.test.y - train.y.mean()) ** 2))
    print(f"{options.dataset}: {train.x.shape[0]} rows × {train.x.shape[1]}, {options.seeds} seeds")
    print(f"{'':8s} train log-likelihood (paper)      test RMSE (paper)        acceptance  s/run")
    rows = {}
    for name in options.samplers.split(","):
        figures, start = [], time.perf_counter()
        for seed in range(options.seeds):
            found = log_chains(
                target,
                make_recipes(SIZE, options.dataset, [name])[name],
                data.test.x,
                seed,
                num_chains=options.chains,
                num_points=(options.iterations + 4) // 5,
            )
            errors = np.sqrt(np.mean((found.outputs - data.test.y) ** 2, axis=1))
            figures.append([found.likelihood.mean(), errors.mean(), found.acceptance.mean()])
        seconds = (time.perf_counter() - start) / options.seeds
        mean, spread = np.mean(figures, 0), np.std(figures, 0, ddof=int(options.seeds > 1))
        paper = PAPER[options.dataset, name]
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
