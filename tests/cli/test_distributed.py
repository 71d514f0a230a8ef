"""Two processes started from the command line are one run."""

import socket
import subprocess
import sys

import numpy as np
import pytest

import steppe

# Eight chains are two blocks, one for each process.
REQUEST = ["--target", "paper_bernoulli", "--num-chains", "8", "--num-draws", "30", "--num-warmup", "10"]


def launched(*arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "steppe", "run", *REQUEST, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.slow
def test_two_processes_on_one_machine_draw_what_one_does(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    several = [
        launched("--out", tmp_path / "several", "--distributed", "--process", f"{process}/2@{address}")
        for process in range(2)
    ]
    processes = [*several, launched("--out", tmp_path / "one")]
    try:
        said = [process.communicate(timeout=300)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert sorted(path.name for path in (tmp_path / "several").iterdir()) == [
        "shard-0000-of-0002",
        "shard-0001-of-0002",
    ]
    found, expected = (steppe.open_run(tmp_path / name).trace.arrays for name in ("several", "one"))
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
