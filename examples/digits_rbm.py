"""Train an RBM on handwritten digits with persistent chains, then sample it.

    python examples/digits_rbm.py

Needs scikit-learn and optax: `pip install "steppe[data,networks,plots]"`. Writes
out/examples/digits_rbm.png.

Result: −18.22 ± 0.01 nats per image, the error being that of the normaliser.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.datasets import load
from steppe.report import style
from steppe.training import log_likelihood, train_rbm

OUT = Path("out/examples/digits_rbm")
NUM_HIDDEN, NUM_UPDATES = 64, 4000


def main():
    bits = (load("digits").train.x > 0.5).astype(float)
    trained = train_rbm(bits, NUM_HIDDEN, key=jax.random.key(0), num_updates=NUM_UPDATES)
    fit = log_likelihood(trained.target, bits, jax.random.key(1))
    print(f"log-likelihood {fit.value:.2f} nats per image, ± {fit.standard_error:.2f} from the normaliser")
    run = steppe.sample(
        trained.target, steppe.dmala(), key=jax.random.key(2), num_chains=16, num_warmup=1000, num_draws=1000
    )
    print(run.summary())
    draw(bits[:16], run.levels[:, -1], trained.history)


@style.apply()
def draw(data, samples, history):
    figure, _ = style.make_row(1, 9.0, 3.2)
    figure.clear()
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.3))
    for axis, images, title in ((axes[0], data, "data"), (axes[1], samples, "samples of 16 chains")):
        rows = np.pad(
            np.reshape(images, (4, 4, 8, 8)).astype(float),
            ((0, 0), (0, 0), (1, 1), (1, 1)),
            constant_values=0.4,
        )
        axis.imshow(rows.transpose(0, 2, 1, 3).reshape(40, 40), cmap="Greys")
        axis.set_title(title)
        axis.set_axis_off()
    axes[2].plot(history["update"], history["gap"])
    axes[2].set(title="U of data − U of samples", xlabel="update")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
