"""Does one flat solution generalise better? Teacher–student binary perceptrons at N = 1001, load 0.6.

    python benchmarks/flat_perceptron.py [--instances 20] [--losses softplus logistic]

Every method gets 30 000 gradients per instance: five chains of 6000 steps (DMALA, EDMALA), or one ensemble of
five or nine copies about a lattice center. Each runs along three cooling schedules, and each is judged at the
schedule that is best for it on average, by the test error of a single final state. Votes of all final states
are given beside, and training errors after random flips.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from spread import mean_and_error

from steppe import targets
from steppe.report import style
from steppe_edlp.flatness import perceptron

NUM_INPUTS, LOAD, NUM_TEST = 1001, 0.6, 4000
BUDGET = 30_000
FLIPS = (1, 2, 5, 10, 20, 50, 100)
# Inverse temperature at the beginning and at the end, by loss.
SCHEDULES = {
    "softplus": ((0.3, 30.0), (0.3, 100.0), (1.0, 200.0)),
    "logistic": ((0.1, 3.0), (0.3, 10.0), (0.5, 27.0)),
}


def methods():
    small, large = perceptron.make_methods(BUDGET, 5), perceptron.make_methods(BUDGET, 9)
    return {
        "dmala": small["dmala"],
        "edmala": small["edmala"],
        "ensemble of 5": small["robust_ensemble"],
        "ensemble of 9": large["robust_ensemble"],
    }


def best_schedules(rows, loss):
    """The schedule of each method with the least mean test error, and its rows."""
    best = {}
    for name in methods():
        by_span = {
            span: [
                row for row in rows if (row["loss"], row["method"], tuple(row["span"])) == (loss, name, span)
            ]
            for span in SCHEDULES[loss]
        }
        by_span = {span: found for span, found in by_span.items() if found}
        span = min(by_span, key=lambda span: np.mean([row["test_error"] for row in by_span[span]]))
        best[name] = (span, by_span[span])
    return best


def judged(rows, loss):
    """Print each method at its best schedule, and paired differences to the ensembles."""
    best = best_schedules(rows, loss)
    print(f"\n{loss} loss, each method at the best of {len(SCHEDULES[loss])} schedules")
    print("method       schedule      single test error   vote      train   errors after 20 flips   E[U]")
    for name, (span, found) in best.items():
        single, error = mean_and_error([row["test_error"] for row in found])
        vote = np.mean([row["vote_error"] for row in found])
        train = np.mean([row["train_errors"] for row in found])
        noisy = np.mean([row["errors_after_flips"][FLIPS.index(20)] for row in found])
        height = np.mean([row["log_density"] for row in found])
        print(
            f"{name:12s} {span!s:13s} {single:.4f} ± {error:.4f}     {vote:.4f}   {train:6.2f}   {noisy:6.2f}"
            f"                  {height:.3f}"
        )
    for ours in ("ensemble of 5", "ensemble of 9"):
        errors = {row["instance"]: row["test_error"] for row in best[ours][1]}
        for name in ("dmala", "edmala"):
            gain, error = mean_and_error(
                [
                    row["test_error"] - errors[row["instance"]]
                    for row in best[name][1]
                    if row["instance"] in errors
                ]
            )
            low, high = gain - 1.96 * error, gain + 1.96 * error
            print(f"gain of the {ours} over {name}: {gain:+.4f}, 95 % interval [{low:+.4f}, {high:+.4f}]")


@style.apply()
def draw(rows, path):
    """Training errors after random flips, each method at its best schedule."""
    figure, axes = style.make_row(len(SCHEDULES), 8.4, 3.4)
    for axis, loss in zip(axes, SCHEDULES, strict=True):
        for name, (_, found) in best_schedules(rows, loss).items():
            mean, error = mean_and_error([row["errors_after_flips"] for row in found])
            sampler = "robust_ensemble" if name.startswith("ensemble") else name
            dash = "--" if name.endswith("9") else "-"
            color = style.SAMPLER_COLORS[sampler]
            axis.errorbar(FLIPS, mean, error, color=color, linestyle=dash, label=name)
        axis.set_xscale("log")
        axis.set_xlabel("random flips of 1001 weights")
        axis.set_title(f"{loss} loss")
    axes[0].set_ylabel("training errors of 601 patterns")
    axes[0].legend()
    style.save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--losses", nargs="+", default=["softplus", "logistic"], choices=list(SCHEDULES))
    parser.add_argument("--out", type=Path, default=Path("out/flat_perceptron.jsonl"))
    parser.add_argument("--plot", type=Path, help="draw errors after flips to this path")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        [json.loads(line) for line in arguments.out.read_text().splitlines()]
        if arguments.out.exists()
        else []
    )
    done = {(row["loss"], row["instance"], row["method"], tuple(row["span"])) for row in rows}
    for instance in range(arguments.first, arguments.first + arguments.instances):
        problem = targets.teacher_student(instance, NUM_INPUTS, LOAD, NUM_TEST)
        for loss in arguments.losses:
            target = targets.perceptron(problem.patterns, problem.labels, loss)
            for name in methods():
                for span in SCHEDULES[loss]:
                    if (loss, instance, name, span) in done:
                        continue
                    begun = time.process_time()
                    row = {"loss": loss, "instance": instance, "method": name, "span": span}
                    row |= perceptron.solve(problem, target, methods()[name], span, 1000 + instance, FLIPS)
                    row["cpu_seconds"] = time.process_time() - begun
                    rows.append(row)
                    with arguments.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    for loss in arguments.losses:
        judged(rows, loss)
    if arguments.plot is not None:
        draw(rows, arguments.plot)


if __name__ == "__main__":
    main()
