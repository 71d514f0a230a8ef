"""Kill the `steppe` command itself: `run`, then `resume` until the run is done, then `merge`.

    python benchmarks/trust_commands.py            # 300 kills, 80 of them of merge and 60 of new processes
    python benchmarks/trust_commands.py --kills 6 --merges 2 --new 2
    python benchmarks/trust_commands.py --folder out/kills  # goes on where it was stopped

`runner_kills.py` kills forks that call `steppe.sample` and commit without pause. Here every victim is the
command line, with its own words, that gets a SIGKILL at a random moment of its life, or soon after a random
number of its commits: while programs are compiled, while it samples, commits or writes its summary. Some
victims are new processes of Python, which may die while it imports; the others are forks of this one, which
has imported everything and started nothing. After each death the directory must be sound and hold at least
the rows it held before, a beginning of the uninterrupted run; the finished run must be the uninterrupted one,
byte by byte.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from runner_kills import arrays_of, digest, num_commits

from steppe.cli import main as command_line
from steppe.run import engine
from steppe.run.storage.directory import RunDirectory

REQUEST = ["--target", "paper_bernoulli", "--recipe", "edmala", "--num-warmup", "100", "--num-chains", "4"]
SIZE = ["--num-draws", "4000"]
# Few rows for each call of the device: a life has some twenty commits.
CAPACITY = 256
PROGRAM = (
    f"from steppe.run import engine; engine.MAX_CAPACITY = {CAPACITY}; from steppe.cli import main; main()"
)
OFTEN = ["--commit-seconds", "0.000001", "--json"]
BAD = ("lost", "different", "falsely damaged", "failed")
# Fraction of the moments that are chosen by time; the others are about a third of a life apart by what is
# written.
UNIFORM, LIVES = 0.4, 3
WAIT = 0.001
FORKS = multiprocessing.get_context("fork")


class Victim(Protocol):
    """A process, as `subprocess` has them."""

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def kill(self) -> None: ...


class Fork:
    """The command line in a fork of this process; what it says goes to a file."""

    def __init__(self, words: Sequence[str], said: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forking is warned of whether or not threads are running
            self._process = FORKS.Process(target=be_command, args=(words, said))
            self._process.start()
        self.kill = self._process.kill

    def poll(self) -> int | None:
        """Its exit code, or `None` while it lives."""
        return self._process.exitcode

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def be_command(words: Sequence[str], said: Path) -> None:
    """What a fork does."""
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    engine.MAX_CAPACITY = CAPACITY
    command_line([*words])


def measure(path: Path) -> int:
    """Bytes of a file that may not be there."""
    return path.stat().st_size if path.exists() else 0


class Campaign:
    """Commands that are killed, and what was found after each."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.is_new = folder, True
        self.kept = folder / "found.json"
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        self.whole, self.said = folder / "whole", folder / "said.txt"
        self.found: Counter[str] = Counter(dict.fromkeys(("kills", *BAD), 0))
        if self.kept.exists():
            self.found.update(json.loads(self.kept.read_text()))
        elif self.whole.exists():
            shutil.rmtree(self.whole)
        self.rng = random.Random(f"{seed}, {self.found['kills']}")
        run = ["run", *REQUEST, *SIZE, *OFTEN, "--out"]
        if not self.whole.exists():
            assert self.finish([*run, str(self.whole)]) == 0
        self.seconds = {}
        for self.is_new in (False, True):  # which find their programs compiled
            timed, merged = folder / "timed", folder / "merged"
            begun = time.monotonic()
            assert self.finish([*run, str(timed)]) == 0
            self.seconds["run", self.is_new] = self.seconds["resume", self.is_new] = time.monotonic() - begun
            begun = time.monotonic()
            assert self.finish(["merge", str(self.whole), "--out", str(merged), "--json"]) == 0
            self.seconds["merge", self.is_new] = time.monotonic() - begun
            shutil.rmtree(timed)
            shutil.rmtree(merged)
        self.expected = arrays_of(self.whole)
        self.largest = measure(self.whole / "journal.jsonl")

    def keep(self) -> None:
        """Write down and print what was found so far."""
        self.kept.write_text(json.dumps(self.found))
        print(json.dumps(self.found), flush=True)

    def finish(self, words: Sequence[str]) -> int:
        """Run a command to its end; its exit code."""
        code = self.start(words).wait()
        if code:
            print(f"{words} failed: {self.said.read_text(errors='replace')[-2000:]}", flush=True)
        return code

    def start(self, words: Sequence[str]) -> Victim:
        """Start a command."""
        if self.is_new:
            with self.said.open("wb") as output:
                command = [sys.executable, "-c", PROGRAM, *words]
                return subprocess.Popen(command, stdout=output, stderr=output)
        return Fork(words, self.said)

    def choose_moment(self, words: Sequence[str], path: Path) -> Callable[[], bool]:
        """A random moment: of the time that the command takes, or of what it writes."""
        end = time.monotonic() + self.rng.uniform(0, self.seconds[words[0], self.is_new])
        if words[0] == "merge" or self.rng.random() < UNIFORM:
            return lambda: time.monotonic() > end
        journal = path / "journal.jsonl"
        size = measure(journal) + self.rng.uniform(0, self.largest / LIVES)
        return lambda: measure(journal) > size

    def kill_at_random(self, words: Sequence[str], path: Path) -> int:
        """Start a command, kill it at a random moment unless it is done before, and count that."""
        process, is_time = self.start(words), self.choose_moment(words, path)
        while process.poll() is None:
            if is_time():
                process.kill()
                break
            time.sleep(WAIT)
        code = process.wait()
        is_killed = code == -signal.SIGKILL
        print(f"{words[0]}, {'new process' if self.is_new else 'fork'}: ended {code}", flush=True)
        if code not in (0, -signal.SIGKILL):
            print(self.said.read_text(errors="replace")[-2000:], flush=True)
        self.found["kills"] += is_killed
        self.found[f"kills of {words[0]}"] += is_killed
        self.found["kills of new processes"] += is_killed and self.is_new
        self.found["failed"] += code not in (0, -signal.SIGKILL)
        return code

    def live(self, path: Path) -> None:
        """One life of a run: until a command finishes it."""
        code = -1
        while code:
            is_begun = (path / "run.json").exists()
            before = num_commits(path)
            words = ["resume", str(path)] if is_begun else ["run", *REQUEST, *SIZE, "--out", str(path)]
            code = self.kill_at_random([*words, *OFTEN], path)
            self.found["kills after a new commit"] += bool(code) and num_commits(path) > before
            self.found["lost"] += num_commits(path) < before
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
        code = self.kill_at_random(words, out)
        if code and not (out / "run.json").exists() and self.finish(words):
            self.found["failed"] += 1
            return
        self.found["falsely damaged"] += bool(RunDirectory(out).problems())
        self.found["different"] += digest(arrays_of(out)) != digest(self.expected)


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=220, help="of run and resume")
    parser.add_argument("--merges", type=int, default=80, help="of merge")
    parser.add_argument("--new", type=int, default=60, help="of these kills so many are of new processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="work here, and go on with what was found here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(folder, options.seed)
        path = folder / "victim"
        shutil.rmtree(path, ignore_errors=True)  # of a trial that was stopped: its kills are not counted
        while campaign.found["kills of run"] + campaign.found["kills of resume"] < options.kills:
            campaign.is_new = campaign.found["kills of new processes"] < options.new
            campaign.live(path)
            shutil.rmtree(path)
            campaign.keep()
        campaign.is_new = False
        while campaign.found["kills of merge"] < options.merges:
            campaign.merge(path)
            shutil.rmtree(path, ignore_errors=True)
            campaign.keep()
    print(*(f"{count} {what}" for what, count in campaign.found.items()), sep="\n")
    print(json.dumps(campaign.found))
    sys.exit(1 if any(campaign.found[kind] for kind in BAD) else 0)


if __name__ == "__main__":
    main()
