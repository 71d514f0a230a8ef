"""Distributions that favour flat modes, on targets small enough to know the answer.

    python benchmarks/flat_small.py [--seeds 20]

1. Four bits of the paper: occupancy of flat and sharp modes under the roughness tilt, sampled against exact.
2. Ten bits, six sharp components and a flat one: mass of the flat component against E[U], for the tilt and
   for tempering, at equal flat mass.
3. Thirteen weights of a perceptron: test error of the center distribution against the tempered posterior
with the same
   training error, by enumeration.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np
from spread import mean_and_error

import steppe
from steppe import targets
from steppe.targets.bernoulli import PAPER_MODES

# ---- 1. four bits ----------------------------------------------------------------------------------------


def indices(modes):
    return [int("".join(map(str, mode)), 2) for mode in modes]


def four_bits(num_seeds):
    target = targets.paper_bernoulli()
    flat, sharp = indices(PAPER_MODES.flat), indices(PAPER_MODES.sharp)
    heights = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()), float)
    rows = []
    for strength in (0.0, 0.5, 1.0, 2.0, 4.0):
        recipe = steppe.roughness_tilted(strength=strength)
        distribution = recipe.stationary(target).probabilities()
        fractions = []
        for seed in range(num_seeds):
            run = steppe.sample(
                target, recipe, key=jax.random.key(seed), num_chains=4, num_draws=5000, progress=False
            )
            levels = run.levels
            index = (levels @ (8, 4, 2, 1)).ravel()
            fractions.append(np.bincount(index.astype(int), minlength=16) / index.size)
        fractions = np.asarray(fractions)
        row = {"strength": strength}
        for name, columns in (("flat", flat), ("sharp", sharp)):
            mean, error = mean_and_error(fractions[:, columns].sum(axis=1))
            row[name] = {
                "exact": float(distribution[columns].sum()),
                "sampled": mean,
                "standard_error": error,
            }
        mean, error = mean_and_error(fractions @ heights)
        row["E[U]"] = {"exact": float(distribution @ heights), "sampled": mean, "standard_error": error}
        rows.append(row)
        print(
            f"λ = {strength:3.1f}: "
            + ", ".join(
                f"{name} {row[name]['exact']:.4f} (sampled {row[name]['sampled']:.4f} ± "
                f"{row[name]['standard_error']:.4f})"
                for name in ("flat", "sharp", "E[U]")
            )
        )
    return rows


# ---- 2. ten bits -----------------------------------------------------------------------------------------


def ten_bits():
    planted = targets.planted_mixture()
    target = planted.target
    states = target.domain.enumerate()
    heights = np.asarray(jax.vmap(target.log_density)(states), float)
    fraction = targets.mixture_responsibilities(planted.weights, planted.site_probabilities, states)[
        :, planted.flat
    ]
    distributions = {"π": steppe.dmala()}
    distributions |= {
        f"tilt λ = {s}": steppe.roughness_tilted(strength=s, differences="exact") for s in (0.25, 0.5, 1.0)
    }
    distributions |= {
        f"tempered β = {b}": steppe.dmala().replace(inverse_temperature=b) for b in (0.9, 0.8, 0.7, 0.5)
    }
    rows = []
    for name, recipe in distributions.items():
        distribution = recipe.stationary(target).probabilities()
        rows.append(
            {
                "distribution": name,
                "flat": float(distribution @ fraction),
                "E[U]": float(distribution @ heights),
            }
        )
        print(f"{name:16s} flat {rows[-1]['flat']:.3f}   E[U] {rows[-1]['E[U]']:.3f}")
    tempered = [
        (row["flat"], row["E[U]"]) for row in rows if row["distribution"].startswith(("π", "tempered"))
    ]
    masses, means = np.asarray(sorted(tempered)).T
    for row in rows:
        if row["distribution"].startswith("tilt") and row["flat"] <= masses.max():
            row["E[U] of tempering at equal flat mass"] = float(np.interp(row["flat"], masses, means))
            gain = row["E[U]"] - row["E[U] of tempering at equal flat mass"]
            print(f"{row['distribution']}: E[U] higher than tempering at equal flat mass by {gain:.2f}")
    return rows


# ---- 3. thirteen weights ---------------------------------------------------------------------------------


def tempered_at(errors, heights, wanted):
    """Distribution `exp(β U)` whose mean training error is the wanted one (bisection: it falls with β)."""
    low, high = 1e-3, 1e3

    def distribution(beta):
        weights = np.exp(beta * (heights - heights.max()))
        return weights / weights.sum()

    for _ in range(80):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if distribution(middle) @ errors > wanted else (low, middle)
    return distribution(np.sqrt(low * high))


def thirteen_weights(num_instances=30, num_inputs=13, load=1.5):
    settings = {
        "center, y = 4, f = 0.2": (4, 0.2),
        "center, y = 4, f = 0.1": (4, 0.1),
        "center, y = 8, f = 0.2": (8, 0.2),
    }
    gains = {name: [] for name in settings} | {"edmala": []}
    for instance in range(num_instances):
        problem = targets.teacher_student(instance, num_inputs, load, 0)
        target = targets.perceptron(problem.patterns, problem.labels, "errors")
        states = target.domain.enumerate()
        weights = 2 * np.asarray(states) - 1
        # Of random patterns, the angle between teacher and student decides how many they disagree on.
        test = np.arccos(np.clip(weights @ problem.teacher / num_inputs, -1, 1)) / np.pi
        train = np.asarray(target.training_errors(states), float) / len(problem.labels)
        heights = np.asarray(jax.vmap(target.log_density)(states), float)
        for name, (copies, fraction) in settings.items():
            variance = steppe.coupling_variance_from_flip_fraction(fraction)
            distribution = steppe.robust_ensemble(
                replicas=copies, coupling_variance=variance, center="lattice"
            ).stationary(target)
            center = np.exp(distribution_of_centers(distribution, states))
            center /= center.sum()
            tempered = tempered_at(train, heights, center @ train)
            gains[name].append(float(tempered @ test - center @ test))
        plain = np.exp(heights - heights.max())
        plain /= plain.sum()
        gains["edmala"].append(float((tempered_at(train, heights, plain @ train) - plain) @ test))
    rows = []
    for name, values in gains.items():
        mean, error = mean_and_error(values)
        rows.append({"distribution": name, "gain": mean, "standard_error": error})
        print(f"{name:24s} gain in test error at equal training error {mean:+.4f} ± {error:.4f}")
    return rows


def distribution_of_centers(distribution, states):
    values = distribution.center_log_prob(np.asarray(states))
    return values - values.max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("out/flat_small.json"))
    arguments = parser.parse_args()
    results = {
        "four_bits": four_bits(arguments.seeds),
        "ten_bits": ten_bits(),
        "thirteen_weights": thirteen_weights(),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
