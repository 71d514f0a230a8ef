"""One Ctrl-C or one termination request is enough: everything is committed, and the process is gone soon."""

import signal
import subprocess
import sys
import time

import pytest

import steppe
from steppe.run.storage.directory import RunDirectory

SECONDS_TO_LEAVE = 3.0
ENDLESS = [
    "--target",
    "paper_bernoulli",
    "--recipe",
    "gibbs",
    "--num-draws",
    "4000000000",
    "--num-warmup",
    "0",
]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_commits_everything_and_ends_the_process_within_three_seconds(tmp_path, number, code):
    out = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-m", "steppe", "run", "--out", str(out), *ENDLESS],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (out / "acknowledged.json").exists():  # the first commit comes after ten seconds
        assert child.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    asked = time.monotonic()
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert time.monotonic() - asked < SECONDS_TO_LEAVE
    assert child.returncode == code
    assert "Traceback" not in said
    assert RunDirectory(out).problems() == []
    assert len(RunDirectory(out).open().journal.commits) >= 2
    assert steppe.open_run(out).trace.num_rows > 0
