"""Let one random system call of the whole `steppe run` process fail, again and again.

    python benchmarks/trust_faults.py              # 80 faults
    python benchmarks/trust_faults.py --faults 5   # a short version

Every victim is the command line itself, started under `strace`, which makes one call fail: a kind of call is
drawn, then one of the calls of that kind that an undisturbed process makes, from the first file that Python
opens to the last line it prints, then an error. A process that ends with exit code 0 must have made the whole
run. One that does not must have said something, and what it leaves must be a beginning of the run, sound, and
be continued to the whole run by `steppe resume`, or by `steppe run` where nothing was begun.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from runner_kills import arrays_of, digest, end_of, num_commits

from steppe.cli import main as command_line
from steppe.run.storage.directory import RunDirectory

REQUEST = ["--target", "paper_bernoulli", "--recipe", "edmala", "--num-warmup", "50", "--num-draws", "3000"]
OFTEN = ["--commit-seconds", "0.000001", "--json"]
ERRORS = {
    "openat": ("EACCES", "EIO", "EINTR", "EMFILE", "ENOSPC"),
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "write": ("ENOSPC", "EIO", "EINTR", "EDQUOT"),
    "pwrite64": ("ENOSPC", "EIO", "EINTR"),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "fdatasync": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO", "ENOSPC", "EINTR"),
    "rename": ("EIO", "ENOSPC", "EACCES"),
    "unlink": ("EIO", "EACCES"),
    "unlinkat": ("EIO", "EACCES"),
    "mkdir": ("ENOSPC", "EACCES"),
    "flock": ("EINTR", "ENOLCK"),
    "lseek": ("EIO",),
    "newfstatat": ("EACCES", "EIO"),
    "getdents64": ("EIO",),
    "chmod": ("EACCES",),
}
MAX_SECONDS = 1500  # on a machine that does much else, compiling takes minutes
BAD = ("silent", "without a word", "different", "falsely damaged", "not continued", "hangs")
CALL = re.compile(r"^\d+ +(\w+)\(")


class Campaign:
    """Processes that fail, and what was found after each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: Counter[str] = Counter(dict.fromkeys(BAD, 0))
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        reference = folder / "reference"
        assert self.launch(["run", *REQUEST, *OFTEN, "--out", str(reference)]).returncode == 0
        self.expected = arrays_of(reference)
        # The second process finds its programs compiled, as the victims do.
        counted = self.launch(["run", *REQUEST, *OFTEN, "--out", str(folder / "counted")], [])
        assert counted.returncode == 0
        assert digest(arrays_of(folder / "counted")) == digest(self.expected)
        self.num_calls = self.count_calls()

    def launch(
        self, words: Sequence[str], fault: Sequence[str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line to its end, under strace if a fault is given."""
        command = [sys.executable, "-m", "steppe", *words]
        if fault is not None:
            kinds = f"trace={','.join(ERRORS)}"
            log = str(self.folder / "calls.txt")
            command = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", kinds, *fault, "-o", log, *command]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
        )

    def count_calls(self) -> dict[str, int]:
        """Calls of each kind by the thread that made most of them, for strace counts threads apart."""
        by_thread: Counter[tuple[str, str]] = Counter()
        for line in (self.folder / "calls.txt").read_text(errors="replace").splitlines():
            match = CALL.match(line)
            if match:
                by_thread[line.split()[0], match[1]] += 1
        most: dict[str, int] = {}
        for (_, kind), number in by_thread.items():
            most[kind] = max(most.get(kind, 0), number)
        return most

    def fail_once(self, rng: random.Random) -> None:
        """Start a process in which one call fails, look at what it leaves, and continue it."""
        kinds = sorted(self.num_calls)
        # Neither the thousands of files that Python opens nor the one call of a kind have it all.
        (kind,) = rng.choices(kinds, [math.log2(1 + self.num_calls[kind]) for kind in kinds])
        number, error = rng.randint(1, self.num_calls[kind]), rng.choice(ERRORS[kind])
        out = self.folder / "victim"
        fault = ["-e", f"inject={kind}:error={error}:when={number}"]
        self.found["faults"] += 1
        try:
            ended = self.launch(["run", *REQUEST, *OFTEN, "--out", str(out)], fault)
        except subprocess.TimeoutExpired:
            self.note("hangs", f"{kind} {number} {error}")
            shutil.rmtree(out, ignore_errors=True)
            return
        log = (self.folder / "calls.txt").read_text(errors="replace")
        self.found["faults that were reached"] += "(INJECTED)" in log
        self.found[f"exit code {ended.returncode}"] += 1
        self.found["tracebacks"] += "Traceback" in ended.stderr
        self.judge(
            out, ended, f"{kind} {number} {error}, exit code {ended.returncode}: {ended.stderr[-600:]}"
        )
        shutil.rmtree(out, ignore_errors=True)
        print(f"{self.found['faults']}: {kind} {number} {error}, exit code {ended.returncode}", flush=True)

    def judge(self, out: Path, ended: subprocess.CompletedProcess[str], what: str) -> None:
        """Compare what a process left with the undisturbed run, then continue it."""
        if ended.returncode == 0:
            if not self.is_whole(out):
                self.note("silent", what)
            return
        if not ended.stderr.strip():
            self.note("without a word", what)
        is_begun = (out / "run.json").exists()
        if is_begun and num_commits(out):
            if RunDirectory(out).problems():
                self.note("falsely damaged", what)
            arrays = arrays_of(out)
            rows = arrays["log_density"].shape[1]
            if not all(np.array_equal(arrays[name], self.expected[name][:, :rows]) for name in self.expected):
                self.note("different", what)
        words = ["resume", str(out)] if is_begun else ["run", *REQUEST, "--out", str(out)]
        code, said = self.call_in_fork([*words, *OFTEN])
        if code:
            self.note("not continued", f"{what}\nthen: {said}")
        elif not self.is_whole(out):
            self.note("different", what)
        self.found["continued to the whole run"] += code == 0

    def call_in_fork(self, words: Sequence[str]) -> tuple[int, str]:
        """Call the command line in a fork, which spares the imports; its exit code and what it said."""
        said = self.folder / "said.txt"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            code = 70
            try:
                os.environ.update(self.environment)
                output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(output, 1)
                os.dup2(output, 2)
                command_line([*words])
                code = 0
            except SystemExit as ending:
                code = int(ending.code or 0)
            except BaseException:  # noqa: BLE001 the fork ends here, whatever it was
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        return end_of(child), said.read_text(errors="replace")[-600:]

    def is_whole(self, out: Path) -> bool:
        """Whether a directory holds the undisturbed run, byte by byte, and nothing damaged."""
        return digest(arrays_of(out)) == digest(self.expected) and not RunDirectory(out).problems()

    def note(self, kind: str, what: str) -> None:
        """Count something bad and show it."""
        self.found[kind] += 1
        print(f"{kind}: {what}", flush=True)


def main() -> None:
    """Print what was found, and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--faults", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("This needs strace, which Debian and Ubuntu have in the package of that name.")
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder))
        print("calls of an undisturbed process:", campaign.num_calls, flush=True)
        for _ in range(options.faults):
            campaign.fail_once(rng)
    print(*(f"{count} {what}" for what, count in campaign.found.items()), sep="\n")
    print(json.dumps(campaign.found))
    sys.exit(1 if any(campaign.found[kind] for kind in BAD) else 0)


if __name__ == "__main__":
    main()
