"""What a commit costs after a week: time, memory, descriptors over 60 000 commits, and a resume after them.

    python benchmarks/trust_commits.py          # 60 000 commits, some minutes
    python benchmarks/trust_commits.py --quick  # 3000

One process makes all commits, of four rows each, by the code that runs use. The time of a commit is mostly
that of five flushes, so the disk is measured beside it: the same five flushes of files that do not grow.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import jax
import numpy as np

import steppe
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.shards import open_parts
from steppe.targets import paper_bernoulli

ROWS = 4
WINDOW = 500
MAX_SECONDS_MORE = 1.0
MAX_RATIO = 1.5


def make_run(path: Path) -> tuple[RunDirectory, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A run that was just started, rows to commit and the chains after them."""
    run = steppe.sample(
        paper_bernoulli(), steppe.edmala(), key=jax.random.key(0), num_warmup=0, num_draws=ROWS, out=path
    )
    look = RunDirectory(path).open()
    assert look.journal.opening is not None
    directory = RunDirectory(path)
    directory.lock()
    directory.rewind(directory.find_starts()[0])
    rows = {name: np.moveaxis(array, 1, 0) for name, array in run.trace.arrays.items()}
    return directory, rows, directory.chains()


def flush(path: Path) -> float:
    """Seconds of five flushes of a small file."""
    begun = time.perf_counter()
    for _ in range(5):
        with path.open("wb") as file:
            file.write(b"x" * 600)
            file.flush()
            os.fsync(file.fileno())
    return time.perf_counter() - begun


def time_resume(path: Path) -> float:
    """Seconds until a run is ready to go on."""
    begun = time.perf_counter()
    directory = RunDirectory(path)
    directory.lock()
    directory.rewind(directory.find_starts()[0])
    directory.chains()
    seconds = time.perf_counter() - begun
    directory.release()
    return seconds


def main() -> None:
    """Print the figures, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--commits", type=int, default=60_000)
    parser.add_argument(
        "--where", help="a folder on the disk to try; in memory (/dev/shm), software is alone"
    )
    options = parser.parse_args()
    number = 3000 if options.quick else options.commits
    found: dict[str, float] = {"commits": number}
    with tempfile.TemporaryDirectory(dir=options.where) as folder:
        path = Path(folder) / "run"
        directory, rows, chains = make_run(path)
        seconds, disk, memory, descriptors = [], [], [], []
        next_row = ROWS
        for index in range(number):
            next_row += ROWS
            begun = time.perf_counter()
            directory.commit(rows, chains, next_row, 0.1)
            seconds.append(time.perf_counter() - begun)
            if index % WINDOW == WINDOW - 1:
                disk.append(flush(Path(folder) / "disk"))
                memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
                descriptors.append(len(list(Path("/proc/self/fd").iterdir())))
            if index == 9:
                directory.release()
                found["resume after 10"] = time_resume(path)
                directory.lock()
        directory.release()
        found["resume after all"] = min(time_resume(path) for _ in range(3))
        found["ms per commit, first"] = 1e3 * median(seconds[:WINDOW])
        found["ms per commit, last"] = 1e3 * median(seconds[-WINDOW:])
        found["ms of five flushes"] = 1e3 * median(disk)
        found["MB, after a tenth"] = memory[len(memory) // 10]
        found["MB, at the end"] = memory[-1]
        found["descriptors, first"], found["descriptors, last"] = descriptors[0], descriptors[-1]
        begun = time.perf_counter()
        arrays = open_parts([RunDirectory(path)]).read()
        found["seconds to read all rows"] = time.perf_counter() - begun
        assert arrays["log_density"].shape[1] == next_row
        begun = time.perf_counter()
        assert RunDirectory(path).problems("quick") == []
        found["seconds of verify --quick"] = time.perf_counter() - begun
        found["bytes per commit, journal"] = (path / "journal.jsonl").stat().st_size / number
    for name, value in found.items():
        print(f"{name}: {value:.4g}")
    print(json.dumps(found))
    more = found["resume after all"] - found["resume after 10"]
    ratio = found["ms per commit, last"] / found["ms per commit, first"]
    is_flat = found["descriptors, first"] == found["descriptors, last"] and ratio < MAX_RATIO
    sys.exit(0 if more <= MAX_SECONDS_MORE and is_flat else 1)


if __name__ == "__main__":
    main()
