"""How far `edula` is from π on the paper's four bits, beside `dula` at the effective step.

    python docs/figures/effective_step.py

`dula` is summed exactly; `edula` is sampled by 8192 chains begun in π, 600 steps each, the first 200
dropped.
"""

from pathlib import Path

import jax
import numpy as np
from matplotlib import rc_context
from parameters import BITS, DISTRIBUTION, starts_of_distribution, walked

import steppe
from steppe.diagnostics.exact import total_variation
from steppe.report import style
from steppe.theory import effective_step_size

STEPS, CENTER_STEP = (0.1, 0.15, 0.2, 0.25), 0.1


def sampled_distribution(recipe):
    _, _, positions = walked(recipe.build(BITS), starts_of_distribution(), jax.random.key(4), 600, 200)
    counts = np.bincount(np.asarray(BITS.domain.index(positions)).ravel(), minlength=16)
    return counts / counts.sum()


@style.apply()
def draw():
    figure, (axis,) = style.make_row(1, 6.0, 3.4)
    steps = np.geomspace(0.08, 3.0, 60)
    exact = [
        total_variation(steppe.dula(step_size=α).stationary(BITS).probabilities(), DISTRIBUTION)
        for α in steps
    ]
    axis.plot(steps, exact, color=style.SAMPLER_COLORS["dula"], label="dula at step α, exact")
    for marker, η in zip("os^", (0.1, 0.2, 0.5), strict=True):
        effective = [effective_step_size(α, η, CENTER_STEP).value for α in STEPS]
        distributions = [
            sampled_distribution(steppe.edula(step_size=α, center_step_size=CENTER_STEP, coupling_variance=η))
            for α in STEPS
        ]
        distances = [total_variation(distribution, DISTRIBUTION) for distribution in distributions]
        label = f"edula, η = {η}, at its α_eff"
        axis.plot(effective, distances, marker, color=style.SAMPLER_COLORS["edula"], mfc="none", label=label)
    axis.set_xscale("log")
    axis.set_xlabel("step size, effective for edula")
    axis.set_ylabel("distance to π (TV)")
    axis.legend(fontsize=8)
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    draw()
