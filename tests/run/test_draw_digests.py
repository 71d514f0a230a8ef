"""A change of the code does not change a draw, unless the table is changed with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from run.draw_digests import FAST, FILE, environment

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "names", [pytest.param(FAST, id="few"), pytest.param((), id="all", marks=pytest.mark.slow)]
)
def test_draws_are_those_recorded(names):
    here, there = environment(), json.loads(FILE.read_text())["environment"]
    if here != there:
        pytest.skip(f"The digests were made with {there}; here is {here}, which may round differently.")
    # A user's process: none of the flags with which the fast tests compile.
    clean = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    environ = {**clean, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "run.draw_digests", *names]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
