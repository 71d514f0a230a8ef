"""Short versions of the scripts in `benchmarks/` that ill-treat runs: real processes, real SIGKILL."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def run_script(name: str, *arguments: str) -> dict[str, Any]:
    """What a script counted; in a process of its own, since forking is only safe before JAX has threads."""
    command = [sys.executable, SCRIPTS / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def campaign(**options: int) -> dict[str, dict[str, int]]:
    return run_script("runner_kills", *(f"--{name}={number}" for name, number in options.items()))


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_and_change_nothing():
    found = campaign(random=5, merge=5, calls=0, seed=1)
    assert found["random"]["kills"] >= 5
    assert found["merge"]["kills"] >= 5


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_kills_at_system_calls_of_a_commit_lose_nothing_and_change_nothing():
    assert campaign(random=0, merge=0, calls=6)["calls"]["kills"] >= 6


@pytest.mark.slow
def test_when_the_power_fails_nothing_acknowledged_is_lost_and_nothing_looks_damaged():
    assert run_script("trust_crashes", "--quick")["states"] >= 200


@pytest.mark.slow
def test_of_two_creators_of_a_directory_one_wins():
    assert run_script("trust_creators", "--quick")["pairs"] == 20


@pytest.mark.slow
def test_commits_cost_the_same_at_the_end_as_at_the_beginning():
    assert run_script("trust_commits", "--quick", "--where", "/dev/shm")["commits"] == 3000


@pytest.mark.slow
def test_after_the_death_of_a_process_the_other_says_how_to_resume():
    found = run_script("trust_peers", "--quick")
    assert found["kills"] == found["exit code 3"] == 3
