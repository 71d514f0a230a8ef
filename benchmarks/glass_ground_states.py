"""Lowest energies that long parallel tempering meets on the glasses of the suite `spin-glass`.

    python benchmarks/glass_ground_states.py --draws 20000

Every glass is tempered between T = 2 and T = 0.2 by `steppe.parallel_tempering(base=chromatic_gibbs())` at
eight chains, each a ladder of its own from a start of its own. A ground state is believed where all
chains meet the same lowest energy; how many did stands beside it. The energies go to the table that
`steppe bench spin-glass` puts beside its own.
"""

import argparse
import csv
import time
from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.targets import spin_glass

TABLE = Path(__file__).parents[1] / "bench/src/steppe_bench/glass_ground_states.csv"
SIZES, SEEDS = (6, 8, 10), range(3)
NUM_CHAINS, NUM_RUNGS, HOT, COLD = 8, 20, 2.0, 0.2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20_000, help="of 6³; larger glasses get more")
    options = parser.parse_args()
    rows = []
    for size in SIZES:
        for seed in SEEDS:
            rows.append(temper(size, seed, options.draws * size // 6))
            print(rows[-1], flush=True)
            with TABLE.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


def temper(size: int, seed: int, num_draws: int) -> dict[str, float]:
    """Lowest energy over all draws, and how many of the chains met it."""
    glass = spin_glass((size,) * 3, seed=seed, scale=1 / COLD)
    ladder = COLD / np.geomspace(HOT, COLD, NUM_RUNGS)
    recipe = steppe.parallel_tempering(
        base=steppe.chromatic_gibbs(), inverse_temperatures=[*ladder[:-1].tolist(), 1.0]
    )
    begun = time.process_time()
    run = steppe.sample(
        glass,
        recipe,
        key=jax.random.key(seed),
        num_chains=NUM_CHAINS,
        num_warmup=0,
        num_draws=num_draws,
        keep="stats",
        progress=False,
    )
    lowest = np.round(-np.asarray(run.trace.statistic("log_density")).max(axis=1) * COLD)
    return {
        "size": size,
        "seed": seed,
        "energy": int(lowest.min()),
        "chains_that_met_it": int((lowest == lowest.min()).sum()),
        "chains": NUM_CHAINS,
        "draws": num_draws,
        "cpu_seconds": round(time.process_time() - begun),
    }


if __name__ == "__main__":
    main()
