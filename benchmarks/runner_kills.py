"""Kill a run hundreds of times, at random moments and at every system call of its commits.

Every victim is a real process that runs `steppe.sample(out=...)` and dies of SIGKILL. After each death the
directory is read: what it holds must be the beginning of the uninterrupted run. The run is then resumed by
the next process, until one finishes; the SHA-256 of its whole trace must be that of the uninterrupted run.

    python benchmarks/runner_kills.py       # 200 random kills, 100 in a merge, one per system call
    python benchmarks/runner_kills.py --random 5 --merge 5 --calls 8  # a short version

Kills at system calls are injected by `strace`, attached once the process is about to write; a machine
without it skips that part and says so.

Victims are forked from this process, which has imported everything and started nothing: JAX has no threads
before its first computation, and this process never makes one.
"""

import argparse
import hashlib
import json
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
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

import steppe
from steppe.run import driver, engine
from steppe.run.storage import shards
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.journal import read_newest
from steppe.run.storage.shards import open_parts
from steppe.targets import paper_bernoulli

NUM_COMMITS_AT_CALLS = 4
ROWS_PER_COMMIT = 32
MOST_COMMITS_OF_A_LIFE = 6
CALLS = ("write", "ftruncate", "fsync", "rename", "unlink")
# What the run begins with, and what its commits write: two threads do that, and strace counts the calls of
# each thread apart, so that the first of one would hide the first of the other.
BEGINNING = ("", "run.json")
COMMITS = ("rows.bin", "chains-0.bin", "chains-1.bin", "journal.jsonl", "acknowledged.json")
BAD = ("falsely damaged", "different", "runs different", "runs damaged")


class Victim:
    """A process that samples into a directory; it waits for a word before it writes."""

    def __init__(self, path: Path, programs: Path, num_draws: int) -> None:
        ready, tell_ready = os.pipe()
        go, self._tell_go = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forking is warned of whether or not threads are running
            self.pid = os.fork()
        if self.pid == 0:
            _live(path, programs, num_draws, tell_ready, go)
        os.close(tell_ready)
        os.close(go)
        assert os.read(ready, 1) == b".", "the process failed before it wrote anything"
        os.close(ready)

    def go(self) -> None:
        """Let it write."""
        os.write(self._tell_go, b".")
        os.close(self._tell_go)

    def is_over(self) -> bool:
        """Whether it has ended by itself."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """Wait for its end; 0, the exit code, or minus the signal."""
        return end_of(self.pid)


def _live(path: Path, programs: Path, num_draws: int, tell_ready: int, go: int) -> None:
    """What a victim does; never returns."""
    try:
        jax.config.update("jax_compilation_cache_dir", str(programs))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        driver.COMMIT_SECONDS = 0.0  # a commit after every chunk: most of a life is spent committing
        engine.FIRST_CHUNK_ROWS = engine.MAX_CAPACITY = ROWS_PER_COMMIT
        engine.CHUNK_SECONDS = 1e6  # as many commits on a busy machine as on an idle one
        lock = RunDirectory.lock

        def announced(directory: RunDirectory) -> None:
            lock(directory)
            os.write(tell_ready, b".")
            os.read(go, 1)

        RunDirectory.lock = announced
        counts = {"num_chains": 4, "num_warmup": ROWS_PER_COMMIT, "num_draws": num_draws}
        key = jax.random.key(11)
        steppe.sample(paper_bernoulli(), steppe.edmala(), key=key, out=path, resume=True, **counts)
        os._exit(0)
    finally:
        os._exit(70)


class Campaign:
    """Victims of one run, and what was found after each."""

    def __init__(self, folder: Path, num_draws: int) -> None:
        self.folder, self.num_draws = folder, num_draws
        self.found: Counter[str] = Counter()
        reference = folder / f"uninterrupted-{num_draws}"
        assert self.finish(reference) == 0, "the uninterrupted run failed"
        self.expected = arrays_of(reference)
        self.digest = digest(self.expected)

    def victim(self, path: Path) -> Victim:
        """Start a process and wait until it is about to write."""
        return Victim(path, self.folder / "programs", self.num_draws)

    def finish(self, path: Path) -> int:
        """Run or resume to the end."""
        victim = self.victim(path)
        victim.go()
        return victim.end()

    def look(self, path: Path) -> None:
        """Read what a dead process left: a beginning of the uninterrupted run, or no commit yet."""
        self.found["kills"] += 1
        if not num_commits(path):
            self.found["before the first commit"] += 1
            return
        problems, _ = RunDirectory(path).examine()
        self.found["falsely damaged"] += bool(problems)
        arrays = arrays_of(path)
        rows = arrays["log_density"].shape[1]
        same = all(np.array_equal(arrays[name], self.expected[name][:, :rows]) for name in self.expected)
        self.found["a beginning of the run" if same else "different"] += 1

    def check_finished(self, path: Path, code: int) -> None:
        """Compare a finished run with the uninterrupted one, byte by byte."""
        same = code == 0 and digest(arrays_of(path)) == self.digest
        self.found["runs finished"] += 1
        self.found["runs different"] += not same
        self.found["runs damaged"] += RunDirectory(path).problems() != []
        shutil.rmtree(path)


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """All rows of a run directory."""
    return open_parts([RunDirectory(path)]).read()


def digest(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of every array, its name, type and shape."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        total.update(f"{name}{arrays[name].dtype}{arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


def num_commits(path: Path) -> int:
    """Number of the newest commit."""
    journal = path / "journal.jsonl"
    commits = read_newest(journal.read_bytes()) if journal.exists() else []
    return commits[-1].index if commits else 0


def random_kills(folder: Path, number: int, seed: int, num_draws: int = 1_500) -> Counter[str]:
    """Kill at random moments until enough have died, every run resumed until it is done.

    The moment is a random part of a commit after a random number of commits, so that lives are as long on
    a busy machine as on an idle one, measured in what they do.
    """
    campaign, rng = Campaign(folder, num_draws), random.Random(seed)
    while campaign.found["kills"] < number:
        path = folder / f"random-{seed}"
        while not kill_at_random(campaign, path, rng):
            campaign.look(path)
    return campaign.found


def kill_at_random(campaign: Campaign, path: Path, rng: random.Random) -> bool:
    """Kill the next process, unless it finishes; return whether it did."""
    victim = campaign.victim(path)
    last = num_commits(path) + rng.randrange(MOST_COMMITS_OF_A_LIFE + 1)
    victim.go()
    seen, moment, pace = num_commits(path), time.perf_counter(), 0.02
    while seen < last and not victim.is_over():
        time.sleep(0.001)
        if num_commits(path) > seen:
            seen, before, moment = num_commits(path), moment, time.perf_counter()
            pace = moment - before
    time.sleep(rng.uniform(0, pace))
    if not victim.is_over():
        os.kill(victim.pid, signal.SIGKILL)
    code = victim.end()
    if code == -signal.SIGKILL:
        return False
    campaign.check_finished(path, code)
    return True


def merge_kills(folder: Path, number: int, seed: int) -> Counter[str]:
    """Kill while shards are merged: what is merged is there with all rows, or not at all."""
    campaign, rng = Campaign(folder, 1_500), random.Random(seed)
    whole, found = folder / "uninterrupted-1500", Counter[str]()
    began = time.perf_counter()
    assert end_of(merge(whole, folder / "merged")) == 0
    pace, tries = time.perf_counter() - began, 0
    shutil.rmtree(folder / "merged")
    while found["kills"] < number:
        tries += 1
        path = folder / f"merged-{tries}"
        victim = merge(whole, path)
        time.sleep(rng.uniform(0, pace))
        os.kill(victim, signal.SIGKILL)
        found["kills"] += end_of(victim) == -signal.SIGKILL
        found["merged before the kill"] += path.exists()
        if not path.exists():
            found["runs damaged"] += end_of(merge(whole, path)) != 0
        found["runs different"] += digest(arrays_of(path)) != campaign.digest
        found["runs damaged"] += RunDirectory(path).problems() != []
        shutil.rmtree(path)
    return found


def merge(parts: Path, out: Path) -> int:
    """Start a process that copies a run in many commits; return its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            shards.COMMIT_BYTES = 2_000
            shards.merge_shards([parts], out)
            os._exit(0)
        finally:
            os._exit(70)
    return child


def end_of(process: int) -> int:
    """Wait for a process; 0, the exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def kills_at_calls(folder: Path, limit: int | None) -> Counter[str]:
    """Kill at each write, fsync, rename and unlink of the first commits, one process per call."""
    campaign = Campaign(folder, ROWS_PER_COMMIT * (NUM_COMMITS_AT_CALLS - 1))
    path = folder / "calls"
    for names in (BEGINNING, COMMITS):
        code, calls = traced(campaign, path, names, None)
        campaign.check_finished(path, code)
        places = [(call, n + 1) for call in CALLS for n in range(most_by_one_thread(calls, call))]
        for place in places[:: max(1, 2 * len(places) // limit) if limit else 1]:
            code, _ = traced(campaign, path, names, place)
            assert code == -signal.SIGKILL, f"{place} was not reached: {code}"
            campaign.found[f"at a {place[0]}"] += 1
            campaign.look(path)
            campaign.check_finished(path, campaign.finish(path))
    return campaign.found


def most_by_one_thread(calls: str, call: str) -> int:
    """How often the busiest thread made a call; lines begin with the number of the thread."""
    threads = Counter(line.split()[0] for line in calls.splitlines() if f" {call}(" in line)
    return max(threads.values(), default=0)


def traced(
    campaign: Campaign, path: Path, names: Sequence[str], place: tuple[str, int] | None
) -> tuple[int, str]:
    """Run a process under strace, to be killed at the n-th call of a kind; return its end and its calls."""
    log = campaign.folder / "strace.txt"
    victim = campaign.victim(path)
    options = [option for name in watched(path, names) for option in ("-P", name)]
    if place is not None:
        options += ["-e", f"inject={place[0]}:signal=KILL:when={place[1]}"]
    traced_calls = f"trace={','.join(CALLS)}"
    command = ["strace", "-f", "-e", traced_calls, *options, "-o", str(log), "-p", str(victim.pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    time.sleep(0.1)  # the other threads are attached one after another
    victim.go()
    code = victim.end()
    tracer.communicate()
    return code, log.read_text()


def watched(path: Path, names: Sequence[str]) -> list[str]:
    """Paths of files and folders, and of what is written before it is renamed to them."""
    return sorted(str(path / name) + end for name in names for end in ("", ".partial"))


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=200, help="kills at random moments")
    parser.add_argument("--merge", type=int, default=100, help="kills while shards are merged")
    parser.add_argument("--calls", type=int, help="about so many kills at system calls; all by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.random:
            found["random"] = random_kills(Path(folder), options.random, options.seed)
        if options.merge:
            found["merge"] = merge_kills(Path(folder), options.merge, options.seed)
        if shutil.which("strace") is None:
            print("strace is not installed: no kills at system calls")
        elif options.calls != 0:
            found["calls"] = kills_at_calls(Path(folder), options.calls)
    for kind, counts in found.items():
        print(kind, *(f"{count} {what}" for what, count in counts.items()), sep="\n  ")
    print(json.dumps(found))
    sys.exit(1 if any(counts[name] for counts in found.values() for name in BAD) else 0)


if __name__ == "__main__":
    main()
