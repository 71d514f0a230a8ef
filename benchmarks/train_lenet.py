"""Test accuracy of LeNet-5 on MNIST by the paper's protocol, with the time it takes.

STEPPE_DATA=... python benchmarks/train_lenet.py
"""

import argparse
import json
import time

import jax

from steppe import datasets
from steppe_edlp import networks

WANTED = 0.988


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    data = datasets.load("mnist", data=options.data)
    rows = []
    for seed in range(options.seeds):
        wall, processor = time.perf_counter(), time.process_time()
        key = jax.random.key(seed)
        network = networks.train_lenet(data.train.x, data.train.y, key=key, num_epochs=options.epochs)
        accuracy = networks.find_accuracy(network, data.test.x, data.test.y)
        row = {
            "seed": seed,
            "accuracy": accuracy,
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
        }
        rows.append(row)
        print(
            f"seed {seed}: test accuracy {100 * accuracy:.2f} % (wanted ≥ {100 * WANTED:.1f} %), "
            f"{row['seconds']:.0f} s, {row['processor_seconds']:.0f} s of processor time",
            flush=True,
        )
    print(json.dumps({"epochs": options.epochs, "runs": rows}))


if __name__ == "__main__":
    main()
