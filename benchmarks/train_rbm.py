"""Restricted Boltzmann machines on MNIST: training time, test log-likelihood, a picture of samples.

    STEPPE_DATA=... python benchmarks/train_rbm.py --preset paper --picture out/rbm-paper.png

`paper` trains on MNIST cut at 1/2; `persistent` on the fixed binarisation, for which figures of other
machines are published (784 × 500, CD-25: −86.34 nats).
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np

import steppe
from steppe import datasets, targets, training

DATA = {"paper": "mnist", "persistent": "mnist-binarized"}


def save_picture(rows, path, columns=20):
    """Images side by side, white on black, as one PNG."""
    from matplotlib.image import imsave

    tiles = np.pad(np.asarray(rows).reshape(-1, 28, 28), ((0, 0), (1, 1), (1, 1)), constant_values=0.5)
    strips = [np.concatenate(tiles[i : i + columns], axis=1) for i in range(0, len(tiles), columns)]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    imsave(path, np.concatenate(strips), cmap="gray")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None)
    parser.add_argument("--preset", default="paper", choices=tuple(DATA))
    parser.add_argument("--updates", type=int, default=None)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--temperatures", type=int, default=5000, help="of the annealed normaliser")
    parser.add_argument("--picture", default=None)
    options = parser.parse_args()
    data = datasets.load(DATA[options.preset], data=options.data)
    wall, processor = time.perf_counter(), time.process_time()
    trained = training.train_rbm(
        data.train.x,
        options.hidden,
        key=jax.random.key(0),
        preset=options.preset,
        num_updates=options.updates,
    )
    jax.block_until_ready(trained.weights)
    seconds, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{options.preset}: trained in {seconds:.0f} s, {processor:.0f} s of processor time", flush=True)
    test = data.test.x > 0.5
    found = training.log_likelihood(
        trained.target, test, jax.random.key(1), num_temperatures=options.temperatures
    )
    print(f"test log-likelihood {found.value:.2f} ± {found.standard_error:.2f} nats", flush=True)
    if options.picture:
        # Layer-wise Gibbs from the data mean, long enough to forget it.
        start = (jax.random.uniform(jax.random.key(2), (100, 784)) < data.train.x.mean(0)).astype(float)
        run = steppe.sample(
            trained.target,
            targets.layerwise_gibbs(),
            key=jax.random.key(3),
            num_chains=100,
            num_warmup=2000,
            num_draws=1,
            initial=start,
        )
        save_picture(run.levels[:, -1], options.picture)
    print(
        json.dumps(
            {
                "preset": options.preset,
                "seconds": seconds,
                "processor_seconds": processor,
                "log_likelihood": found._asdict(),
                "protocol": trained.protocol._asdict(),
            }
        )
    )


if __name__ == "__main__":
    main()
