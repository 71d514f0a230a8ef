"""Flatness and height of samples of an RBM on the 8 × 8 digits: DMALA, EDMALA, the ensemble, the tilt.

    python benchmarks/flat_digits.py [--seeds 20]

The machine has 20 hidden units, so its normaliser is known exactly. Every sampler gets the same number of
evaluations; chains start at the same training images. Figures are means over seeds with standard errors.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from spread import mean_and_error

import steppe
from steppe.datasets import load
from steppe.diagnostics.flatness import single_site_differences
from steppe.report import style
from steppe.training import train_rbm

NUM_CHAINS, NUM_STEPS = 16, 2000
RECIPES = {
    "dmala": (steppe.dmala(), 1),
    "edmala": (steppe.edmala(coupling_variance=4.0, center_step_size=0.4), 1),
    "edmala_glu": (steppe.edmala_glu(coupling_variance=4.0), 1),
    "robust_ensemble, y = 4": (
        steppe.robust_ensemble(replicas=4, coupling_variance=1.0, center="lattice"),
        4,
    ),
    "roughness_tilted, λ = 8": (steppe.roughness_tilted(strength=8.0, differences="exact"), 1),
    "roughness_tilted, λ = 32": (steppe.roughness_tilted(strength=32.0, differences="exact"), 1),
    "dmala, β = 0.8": (steppe.dmala().replace(inverse_temperature=0.8), 1),
}


def states_of(target, recipe, copies, images, seed):
    chosen = np.random.default_rng(seed).choice(len(images), NUM_CHAINS, replace=False)
    run = steppe.sample(
        target,
        recipe,
        key=jax.random.key(seed),
        num_chains=NUM_CHAINS,
        num_warmup=NUM_STEPS // copies,
        num_draws=NUM_STEPS // (20 * copies),
        thinning=20,
        initial=images[chosen],
        progress=False,
    )
    return run.levels.reshape(-1, 64).astype(np.float32)


def figures(target, states):
    gaps = single_site_differences(target, states, exact=False)
    return {
        "U": float(gaps.mean_log_density),
        "mean |ΔU|": float(np.mean(gaps.mean_absolute)),
        "max drop": float(np.mean(gaps.max_drop)),
    }


@style.apply()
def sheet(rows, path):
    figure, axes = style.make_row(len(rows), 2.0 * len(rows), 2.4)
    for axis, (name, states) in zip(axes, rows.items(), strict=True):
        chosen = states[np.linspace(0, len(states) - 1, 16).astype(int)].reshape(4, 4, 8, 8)
        framed = np.pad(chosen, ((0, 0), (0, 0), (1, 0), (1, 0)), constant_values=0.5)
        axis.imshow(framed.transpose(0, 2, 1, 3).reshape(36, 36), cmap="gray_r")
        axis.set_title(name.replace(", ", "\n"), fontsize=8)
        axis.axis("off")
    style.save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("out/flat_digits"))
    arguments = parser.parse_args()
    digits = load("digits")
    images = (digits.train.x > 0.5).astype(np.float32)
    trained = train_rbm(images, 20, key=jax.random.key(0), progress=False)
    target = trained.target
    rows, pictures = [], {}
    for name, (recipe, copies) in RECIPES.items():
        values = []
        for seed in range(arguments.seeds):
            states = states_of(target, recipe, copies, images, seed)
            values.append(figures(target, states))
        pictures[name] = states
        row = {"sampler": name}
        for key in values[0]:
            row[key] = mean_and_error([value[key] for value in values])
        rows.append(row)
        print(
            f"{name:26s} " + "   ".join(f"{key} {row[key][0]:8.3f} ± {row[key][1]:.3f}" for key in values[0])
        )
    sheet(pictures, arguments.out)
    arguments.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
