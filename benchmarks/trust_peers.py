"""Kill one of two processes of a distributed run, again and again: what the other says, and what is left.

    python benchmarks/trust_peers.py          # 20 kills
    python benchmarks/trust_peers.py --quick  # 3

Both are started from the command line. After a kill the other must end by itself with exit code 3 and one
sentence, without a traceback; the rows of both must be a beginning of the uninterrupted run; and the run,
resumed by both, must be the uninterrupted one. Every second resume is made by one process alone, which
takes both shards over.
"""

import argparse
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import steppe

STORAGE_FAILED = 3
MAX_SECONDS = 60
REQUEST = ["--target", "paper_bernoulli", "--num-chains", "8", "--num-warmup", "50", "--num-draws", "4000"]


def launch(out: Path, place: list[str], *, is_new: bool) -> subprocess.Popen[str]:
    """A process of the command line."""
    verb = ["run", *REQUEST, "--out", str(out)] if is_new else ["resume", str(out)]
    program = "from steppe.run import engine; engine.MAX_CAPACITY = 4; from steppe.cli import main; main()"
    command = [sys.executable, "-c", program, *verb, "--commit-seconds", "0.05", "--json", *place]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def launch_pair(out: Path, *, is_new: bool) -> list[subprocess.Popen[str]]:
    """Two processes that run together."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = [["--distributed", "--process", f"{process}/2@127.0.0.1:{port}"] for process in range(2)]
    return [launch(out, place, is_new=is_new) for place in places]


def count_commits(out: Path) -> int:
    """Commits of both processes."""
    return sum(path.read_bytes().count(b"\n") for path in out.glob("shard-*-of-0002/journal.jsonl"))


def read(out: Path) -> dict[str, np.ndarray]:
    """All rows."""
    return dict(steppe.open_run(out).trace.arrays)


def kill_one(out: Path, rng: random.Random, found: Counter[str], times: list[float], *, is_new: bool) -> bool:
    """Start both and kill one after some commits; return whether the run was finished before."""
    pair, before = launch_pair(out, is_new=is_new), count_commits(out)
    enough = before + rng.randrange(1, 40)
    while count_commits(out) < enough and all(one.poll() is None for one in pair):
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.1))
    victim = rng.randrange(2)
    if pair[victim].poll() is None and pair[1 - victim].poll() is None:
        pair[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        try:
            _, said = pair[1 - victim].communicate(timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            pair[1 - victim].kill()
            said = "hangs"
        times.append(time.monotonic() - killed)
        pair[victim].communicate()
        code = pair[1 - victim].returncode
        is_right = code == STORAGE_FAILED and "Traceback" not in said and "steppe resume" in said
        found["kills"] += 1
        found[f"exit code {code}"] += 1
        if not is_right:
            found["other endings"] += 1
            print(f"victim {victim}, exit code {code}: {said[-2000:]}")
        return False
    return [one.communicate() and one.returncode for one in pair] == [0, 0]


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, rng = 3 if options.quick else options.kills, random.Random(options.seed)
    found: Counter[str] = Counter({"different": 0, "other endings": 0})
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "one"
        assert launch(reference, [], is_new=True).wait() == 0
        expected, out, runs = read(reference), Path(folder) / "0", 0
        while found["kills"] < number:
            is_done = kill_one(out, rng, found, times, is_new=not out.exists())
            if list(out.glob("shard-*/acknowledged.json")):
                arrays = read(out)
                rows = arrays["log_density"].shape[1]
                is_same = all(np.array_equal(arrays[name], expected[name][:, :rows]) for name in expected)
                found["different"] += not is_same
            if is_done or found["kills"] % 5 == 0:
                assert launch(out, [], is_new=False).wait() == 0
                arrays = read(out)
                found["different"] += any((arrays[name] != expected[name]).any() for name in expected)
                found["runs finished by one process"] += 1
                runs += 1
                out = Path(folder) / str(runs)
    print(*(f"{count} {what}" for what, count in found.items()), sep="\n")
    print(f"seconds from the kill to the end of the other: {np.median(times):.2f}, at most {max(times):.2f}")
    print(json.dumps({**found, "seconds": max(times)}))
    sys.exit(1 if found["different"] or found["other endings"] else 0)


if __name__ == "__main__":
    main()
