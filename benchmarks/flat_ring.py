"""Accepted flips per step on a ring of 1024 spins: one joint decision, alternating decisions, no center.

    python benchmarks/flat_ring.py [--seeds 20]

Each sampler runs at the best of a grid of settings (step size; for `edmala` also that of the center), chosen
on other random numbers than those reported.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from spread import mean_and_error

import steppe
from steppe import targets

NUM_SITES, COUPLING, FIELD = 1024, 0.5, 0.7
STEP_SIZES = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
VARIANCES = (0.1, 0.5, 1.0, 4.0)
CENTER_SHARES = (0.02, 0.1, 0.5)  # center_step_size as a fraction of η


def ring():
    field = FIELD * np.random.default_rng(0).standard_normal(NUM_SITES)
    edges = [(site, (site + 1) % NUM_SITES) for site in range(NUM_SITES)]
    return targets.ising_graph(edges, COUPLING, field=field, spins=False)


def flips(target, recipe, seed, num_draws):
    run = steppe.sample(
        target,
        recipe,
        key=jax.random.key(seed),
        num_chains=4,
        num_warmup=200,
        num_draws=num_draws,
        keep="stats",
        adapt=False,
        progress=False,
    )
    return float(np.asarray(run.data["sample_stats"]["num_flips"]).mean())


def best(target, make, num_seeds, fractions=(None,)):
    """Try every setting on random numbers of its own, then measure the best one."""
    settings = [
        (step,) if fraction is None else (step, fraction) for step in STEP_SIZES for fraction in fractions
    ]
    tried = {setting: flips(target, make(*setting), 999, 200) for setting in settings}
    setting = max(tried, key=tried.__getitem__)
    values = [flips(target, make(*setting), seed, 300) for seed in range(num_seeds)]
    mean, error = mean_and_error(values)
    return {"setting": setting, "flips": mean, "standard_error": error}


def show(name, found):
    error = found["standard_error"]
    print(f"{name:32s} {found['flips']:7.2f} ± {error:.2f} flips per step at {found['setting']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("out/flat_ring.json"))
    arguments = parser.parse_args()
    target, rows = ring(), []
    plain = best(target, lambda step: steppe.dmala(step_size=step), arguments.seeds)
    rows.append({"sampler": "dmala", **plain})
    show("dmala", plain)
    for variance in VARIANCES:
        joint = best(
            target,
            lambda step, fraction, v=variance: steppe.edmala(
                step_size=step, center_step_size=fraction * v, coupling_variance=v
            ),
            arguments.seeds,
            CENTER_SHARES,
        )
        alternate = best(
            target,
            lambda step, v=variance: steppe.edmala_glu(step_size=step, coupling_variance=v),
            arguments.seeds,
        )
        for name, found in (("edmala, one decision", joint), ("edmala_glu", alternate)):
            rows.append({"sampler": name, "coupling_variance": variance, **found})
            show(f"{name}, η = {variance}", found)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
