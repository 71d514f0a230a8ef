"""A short version of `benchmarks/runner_kills.py`: real processes, real SIGKILL."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "runner_kills.py"


def campaign(**options: int) -> dict[str, dict[str, int]]:
    """What the script counted; in a process of its own, since forking is only safe before JAX has threads."""
    arguments = [f"--{name}={number}" for name, number in options.items()]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_and_change_nothing():
    assert campaign(random=5, calls=0, seed=1)["random"]["kills"] >= 5


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_kills_at_system_calls_of_a_commit_lose_nothing_and_change_nothing():
    assert campaign(random=0, calls=6)["calls"]["kills"] >= 6
