"""Memory of a long run to disk: 5·10⁸ chain-steps, resident memory against steps done.

    python benchmarks/runner_soak.py

A process of its own runs `steppe.sample(out=...)`; this one reads its resident memory from /proc and its
progress from the journal. The slope is fitted by least squares after the first tenth of the run,
when everything is compiled and the buffers are full, and before the last commit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from steppe.run.storage.journal import read_newest

LIMIT_MB = 1.0  # per 10⁷ chain-steps
NUM_CHAINS, BLOCK, THINNING, WARMUP = 1000, 250, 10, 1000

CHILD = """
import sys
import jax, steppe
from steppe.run import driver
from steppe.targets import paper_bernoulli

driver.COMMIT_SECONDS = 1.0  # ten times as many commits as usual
steppe.sample(
    paper_bernoulli(), steppe.dmala(), key=jax.random.key(0), num_chains={chains}, chain_block={block},
    num_warmup={warmup}, num_draws=int(sys.argv[2]), thinning={thinning}, out=sys.argv[1], progress=False,
)
"""


def resident_megabytes(process: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def rows_done(out: Path) -> int:
    """Rows of the newest commit."""
    journal = out / "journal.jsonl"
    commits = read_newest(journal.read_bytes()) if journal.exists() else []
    return commits[-1].next_row if commits else 0


def watch(out: Path, num_draws: int) -> np.ndarray:
    """Pairs of (chain-steps done, megabytes) until the last commit."""
    program = CHILD.format(chains=NUM_CHAINS, block=BLOCK, warmup=WARMUP, thinning=THINNING)
    child = subprocess.Popen([sys.executable, "-c", program, str(out), str(num_draws)])
    seen = []
    while child.poll() is None:
        rows = rows_done(out)
        if rows and (not seen or rows * THINNING * NUM_CHAINS > seen[-1][0]):
            seen.append((rows * THINNING * NUM_CHAINS, resident_megabytes(child.pid)))
        time.sleep(0.2)
    assert child.returncode == 0
    return np.array(seen)


def main() -> None:
    """Print the slope, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=float, default=5e8, help="chain-steps")
    num_draws = int(parser.parse_args().steps / (NUM_CHAINS * THINNING))
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        seen = watch(Path(folder) / "run", num_draws)
        seconds = time.perf_counter() - begun
    # After the last commit the process gives its memory back: it is not part of the run.
    steady = seen[(seen[:, 0] > seen[-1, 0] / 10) & (seen[:, 0] < seen[-1, 0])]
    slope = float(np.polyfit(steady[:, 0] / 1e7, steady[:, 1], 1)[0])
    print(f"{seen[-1, 0]:.3g} chain-steps in {seconds:.0f} s, {len(seen)} commits seen")
    tenths = [seen[np.searchsorted(seen[:, 0], seen[-1, 0] * part / 10), 1] for part in range(1, 11)]
    print("resident MB after each tenth:", *(f"{megabytes:.0f}" for megabytes in tenths))
    print(f"slope {slope:.3f} MB per 10⁷ chain-steps (limit {LIMIT_MB})")
    figures = {"steps": seen[-1, 0], "seconds": seconds, "mb_per_1e7_steps": slope, "mb": seen[-1, 1]}
    print(json.dumps(figures))
    sys.exit(0 if slope < LIMIT_MB else 1)


if __name__ == "__main__":
    main()
