"""A short version of `benchmarks/runner_kills.py`: real processes, real SIGKILL."""

import importlib.util
import shutil
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "runner_kills.py"


@pytest.fixture(scope="module")
def kills():
    specification = importlib.util.spec_from_file_location("runner_kills", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_and_change_nothing(kills, tmp_path):
    found = kills.random_kills(tmp_path, number=5, seed=1)
    assert found["kills"] >= 5
    assert sum(found[name] for name in kills.BAD) == 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_kills_at_system_calls_of_a_commit_lose_nothing_and_change_nothing(kills, tmp_path):
    found = kills.kills_at_calls(tmp_path, limit=6)
    assert found["kills"] >= 6
    assert sum(found[name] for name in kills.BAD) == 0
