"""From a Ctrl-C or a termination request to the end of the process, with everything committed.

    python benchmarks/trust_signals.py              # 50 signals
    python benchmarks/trust_signals.py --signals 6

Processes sample without end into a directory, with the default interval between commits; each gets one
signal at a random moment after its first rows, most of them before its first commit. It must end with the
exit code of the signal, commit the rows, and leave a directory in which nothing is damaged or unfinished.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import jax
import numpy as np
from runner_kills import end_of, num_commits

import steppe
from steppe.run.storage.directory import RunDirectory
from steppe.targets import paper_bernoulli

MAX_SECONDS = 3.0
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def start(path: Path, programs: Path) -> int:
    """Start a process that samples; return its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child:
        return child
    code = 70
    try:
        jax.config.update("jax_compilation_cache_dir", str(programs))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        counts = {"num_warmup": 0, "num_draws": 10**9, "num_chains": 4}
        steppe.sample(
            paper_bernoulli(),
            steppe.dmala(),
            key=jax.random.key(0),
            out=path,
            on_chunk=lambda _: has_rows(path).touch(),
            **counts,
        )
    except KeyboardInterrupt:
        code = 130
    except SystemExit as ending:
        code = int(ending.code or 0)
    finally:
        os._exit(code)


def has_rows(path: Path) -> Path:
    """File that is there once a run has rows."""
    return path.with_suffix(".rows")


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--signals", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, rng = options.signals, random.Random(options.seed)
    found: Counter[str] = Counter({"signals": 0, "other exit codes": 0, "damaged": 0})
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(number):
            path, sent = Path(folder) / str(index), rng.choice(list(CODES))
            child = start(path, Path(folder) / "programs")
            while not has_rows(path).exists():
                time.sleep(0.01)
            time.sleep(rng.uniform(0.5, 4.0))
            before = num_commits(path)
            begun = time.monotonic()
            os.kill(child, sent)
            code = end_of(child)
            seconds.append(time.monotonic() - begun)
            print(f"{index}: {seconds[-1]:.2f} s, exit code {code}", flush=True)
            found["signals"] += 1
            found["other exit codes"] += code != CODES[sent]
            found["damaged"] += any(RunDirectory(path).examine())
            found["without a new commit"] += num_commits(path) == before
    slow = float(np.quantile(seconds, 0.95))
    print(*(f"{count} {what}" for what, count in found.items()), sep="\n")
    print(f"seconds: median {np.median(seconds):.2f}, 95 % within {slow:.2f}, at most {max(seconds):.2f}")
    print(json.dumps({**found, "median": float(np.median(seconds)), "p95": slow}))
    sys.exit(1 if found["other exit codes"] or found["damaged"] or slow > MAX_SECONDS else 0)


if __name__ == "__main__":
    main()
