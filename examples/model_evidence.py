"""Which of two lattices made these pictures? Evidence by tempering, with its error.

    python examples/model_evidence.py

Two Ising models with different couplings; log Z of each along an adapted ladder and by annealed importance
sampling. The Bayes factor of twenty pictures is exact up to these errors. Writes
out/examples/model_evidence.png.

Result: log Z 113.755 ± 0.052 and 123.718 ± 0.092; the log Bayes factor of twenty pictures is 43.6 ± 2.1.
"""

from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.report import style
from steppe.targets import ising_lattice

OUT = Path("out/examples/model_evidence")
SIDE, WEAK, STRONG, NUM_PICTURES = 12, 0.30, 0.38, 20


def main():
    models = {coupling: ising_lattice((SIDE, SIDE), coupling) for coupling in (WEAK, STRONG)}
    evidence = {
        coupling: steppe.log_normalizer(model, key=jax.random.key(2)) for coupling, model in models.items()
    }
    for coupling, found in evidence.items():
        print(f"J = {coupling}: log Z {found.value:.3f} ± {found.standard_error:.3f}")
    run = steppe.sample(models[STRONG], key=jax.random.key(3), num_draws=NUM_PICTURES, thinning=20)
    pictures = run.positions[0]
    values = {
        coupling: np.asarray(jax.vmap(model.log_density)(pictures)) for coupling, model in models.items()
    }
    difference = evidence[STRONG].value - evidence[WEAK].value
    steps = values[STRONG] - values[WEAK] - difference
    error = np.hypot(evidence[STRONG].standard_error, evidence[WEAK].standard_error) * np.arange(
        1, NUM_PICTURES + 1
    )
    print(f"log Bayes factor of {NUM_PICTURES} pictures: {steps.sum():.2f} ± {error[-1]:.2f}")
    draw(pictures, np.cumsum(steps), error)


@style.apply()
def draw(pictures, total, error):
    figure, _ = style.make_row(1, 8.0, 3.0)
    figure.clear()
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    left.imshow(pictures[0].reshape(SIDE, SIDE), cmap="Greys")
    left.set_title("one of the pictures")
    left.set_axis_off()
    count = np.arange(1, len(total) + 1)
    right.fill_between(count, total - error, total + error, color=style.FLAT_COLOR, alpha=0.4, lw=0)
    right.plot(count, total, color=style.FLAT_COLOR)
    right.axhline(0, color="#888888", lw=0.8)
    right.set(xlabel="pictures seen", ylabel=f"log Bayes factor, J = {STRONG} over {WEAK}")
    print(*style.save(figure, OUT), sep="\n")


if __name__ == "__main__":
    main()
