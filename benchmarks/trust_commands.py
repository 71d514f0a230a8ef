"""Kill the `steppe` command itself: `run`, then `resume` until the run is done, then `merge`.

    python benchmarks/trust_commands.py            # 60 kills of run and resume, 20 of merge
    python benchmarks/trust_commands.py --kills 6 --merges 2

`runner_kills.py` kills hundreds of forks that commit without pause. Here every victim is a new process of the
command line that gets a SIGKILL at a random moment of its life: while Python imports, while programs are
compiled, while it samples, commits or writes its summary. After each death the directory must be sound and
hold a beginning of the uninterrupted run; the finished run must be the uninterrupted one, byte by byte.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from runner_kills import arrays_of, digest, num_commits

from steppe.run.storage.directory import RunDirectory

REQUEST = ["--target", "paper_bernoulli", "--recipe", "edmala", "--num-warmup", "100", "--num-chains", "4"]
SIZE = ["--num-draws", "20000"]
OFTEN = ["--commit-seconds", "0.000001", "--json"]
BAD = ("different", "falsely damaged", "failed")


class Campaign:
    """Commands that are killed, and what was found after each."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.found: Counter[str] = Counter(dict.fromkeys(("kills", *BAD), 0))
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        self.whole = folder / "whole"
        for path in (self.whole, folder / "timed"):  # the second one finds its programs compiled
            begun = time.monotonic()
            assert self.start(["run", *REQUEST, *SIZE, *OFTEN, "--out", str(path)]).wait() == 0
        self.seconds = time.monotonic() - begun
        self.expected = arrays_of(self.whole)

    def start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """A process of the command line."""
        command = [sys.executable, "-m", "steppe", *words]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self, words: Sequence[str], what: str, seconds: float) -> int:
        """Start a command and kill it within some seconds; 0 if it was done before."""
        process = self.start(words)
        try:
            process.wait(self.rng.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
        print(f"{what}: ended {code}", flush=True)
        self.found["kills"] += code == -signal.SIGKILL
        self.found[f"kills of {what}"] += code == -signal.SIGKILL
        self.found["failed"] += code not in (0, -signal.SIGKILL)
        return code

    def live(self, path: Path) -> None:
        """One life of a run: until a command finishes it."""
        code = -1
        while code:
            is_begun = (path / "run.json").exists()
            before = num_commits(path)
            words = ["resume", str(path)] if is_begun else ["run", *REQUEST, *SIZE, "--out", str(path)]
            code = self.kill([*words, *OFTEN], words[0], self.seconds)
            self.found["kills after a new commit"] += bool(code) and num_commits(path) > before
            self.look(path)
        self.found["runs finished"] += 1
        self.found["different"] += digest(arrays_of(path)) != digest(self.expected)

    def look(self, path: Path) -> None:
        """Read what a dead process left."""
        if not num_commits(path):
            return
        self.found["falsely damaged"] += bool(RunDirectory(path).examine()[0])
        arrays = arrays_of(path)
        rows = arrays["log_density"].shape[1]
        same = all(np.array_equal(arrays[name], self.expected[name][:, :rows]) for name in self.expected)
        self.found["different"] += not same

    def merge(self, out: Path) -> None:
        """Kill a merge, until one is done: what is merged is there with all rows, or not at all."""
        words = ["merge", str(self.whole), "--out", str(out), "--json"]
        code = self.kill(words, "merge", self.seconds)
        if code and not (out / "run.json").exists():
            self.found["failed"] += self.start(words).wait() != 0
        self.found["falsely damaged"] += bool(RunDirectory(out).problems())
        self.found["different"] += digest(arrays_of(out)) != digest(self.expected)


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--merges", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), options.seed)
        path = Path(folder) / "victim"
        while campaign.found["kills"] < options.kills:
            campaign.live(path)
            shutil.rmtree(path)
        while campaign.found["kills of merge"] < options.merges:
            campaign.merge(path)
            shutil.rmtree(path)
    print(*(f"{count} {what}" for what, count in campaign.found.items()), sep="\n")
    print(json.dumps(campaign.found))
    sys.exit(1 if any(campaign.found[kind] for kind in BAD) else 0)


if __name__ == "__main__":
    main()
