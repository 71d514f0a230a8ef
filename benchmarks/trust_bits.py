"""Repeat a step with a fixed seed for a given time and compare its bits, as many times as there is time for.

    python benchmarks/trust_bits.py                  # 300 CPU seconds
    python benchmarks/trust_bits.py --seconds 30

The step is that of the gate that once gave a p-value nobody could repeat: `edmala` with linear coupling on
bits, many chains, quick compilation as in the fast tests. Programs are compiled anew every few repetitions,
with and without arrays that are made once, and garbage is collected in between. Start several at once on one
core to put it under load. Any second digest is printed, and the exit code is 1.
"""

import argparse
import gc
import json
import random
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
REPETITIONS = 12


def main() -> None:
    """Print how many repetitions there were of each kind, and how many results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.path[:0] = [str(TESTS), str(TESTS / "statistics")]
    import_module("suite")  # quick compilation, which must be said before jax starts
    steps, compiling = import_module("test_same_bits"), import_module("steppe.compiling")
    import jax

    rng, asks = random.Random(options.seed), compiling._is_compiled_for_cpu
    found: dict[str, Counter[str]] = {}
    programs = 0
    while time.process_time() < options.seconds:
        name, domain = rng.choice(steps.CASES[:1] * 3 + steps.CASES[1:])
        is_materialized = rng.random() < 0.7
        compiling._is_compiled_for_cpu = asks if is_materialized else lambda arguments: False
        jax.clear_caches()
        gc.collect()
        programs += 1
        kind = f"{name} on {domain}" + ("" if is_materialized else ", nothing made once")
        for _ in range(REPETITIONS):
            found.setdefault(kind, Counter())[steps.digest_of_steps(name, domain)] += 1
    for kind, digests in found.items():
        print(f"{kind}: {sum(digests.values())} repetitions, {len(digests)} results")
        if len(digests) > 1:
            print(*digests.items(), sep="\n")
    different = sum(len(digests) > 1 for digests in found.values())
    repetitions = sum(sum(digests.values()) for digests in found.values())
    print(json.dumps({"repetitions": repetitions, "programs": programs, "different": different}))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
