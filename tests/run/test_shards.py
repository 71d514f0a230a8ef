"""Chains may be spread over jobs, devices and processes: the draws are those of one process."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_runs import digest, small_run

import steppe
from steppe.errors import PeerError, RunError, RunMismatchError, StorageError
from steppe.run import driver, engine
from steppe.run.adaptation import Adapt
from steppe.run.chain_blocks import Rows
from steppe.run.devices import Devices
from steppe.run.plan import check_enough_chains, make_plan
from steppe.run.storage import shards
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.shards import merge_shards

HERE = Path(__file__).parent
TEN = {"num_chains": 10}  # three blocks, the last with idle lanes
POOLED = Adapt(pooled=True)


@pytest.fixture(scope="module")
def whole() -> str:
    return digest(small_run(**TEN))


def test_parts_merged_are_the_whole_run(tmp_path, whole):
    for index in range(2):
        small_run(out=tmp_path / "parts", shard=(index, 2), **TEN)
    assert digest(steppe.open_run(tmp_path / "parts")) == whole
    merge_shards(tmp_path / "parts", tmp_path / "merged")
    assert digest(steppe.open_run(tmp_path / "merged")) == whole
    assert RunDirectory(tmp_path / "merged").problems() == []


@pytest.mark.parametrize("commit_bytes", [2**26, 500])
def test_a_merged_run_can_be_continued(tmp_path, monkeypatch, commit_bytes):
    monkeypatch.setattr(shards, "COMMIT_BYTES", commit_bytes)
    monkeypatch.setattr(engine, "MAX_CAPACITY", 20)
    for index in range(3):
        small_run(out=tmp_path / "parts", shard=(index, 3), commit_seconds=0.01 * index, **TEN)
    merge_shards(tmp_path / "parts", tmp_path / "merged")
    num_commits = RunDirectory(tmp_path / "merged").open().journal.num_commits
    assert num_commits == 1 if commit_bytes > 500 else num_commits > 5
    assert RunDirectory(tmp_path / "merged").problems() == []
    longer = small_run(out=tmp_path / "merged", resume=True, **{**TEN, "num_draws": 200})
    assert digest(longer) == digest(small_run(**{**TEN, "num_draws": 200}))


def test_a_part_can_be_resumed(tmp_path, whole):
    small_run(out=tmp_path / "parts", shard=(0, 2), **TEN)
    small_run(out=tmp_path / "parts", shard=(1, 2), **{**TEN, "num_draws": 20})
    with pytest.raises(RunError, match="equally far"):
        merge_shards(tmp_path / "parts", tmp_path / "merged")
    small_run(out=tmp_path / "parts", shard=(1, 2), resume=True, **TEN)
    assert digest(steppe.open_run(tmp_path / "parts")) == whole


@pytest.mark.parametrize(("count", "block"), [(2, 2), (3, 1), (4, 1)])
def test_the_default_run_in_shards_is_the_whole_run_at_the_block_that_divides_it(tmp_path, count, block):
    for index in range(count):
        small_run(out=tmp_path / "run", shard=(index, count))
    assert digest(steppe.open_run(tmp_path / "run")) == digest(small_run(chain_block=block))
    small_run(out=tmp_path / "run", shard=(0, count), resume=True, num_draws=180)


def test_shards_are_taken_over_by_one_process_and_the_whole_run_by_none(tmp_path, whole):
    out = tmp_path / "run"
    for index in range(2):
        small_run(out=out, shard=(index, 2), **{**TEN, "num_draws": 60})
    assert digest(small_run(out=out, resume=True, **TEN)) == whole
    names = sorted(path.name for path in out.iterdir())
    assert names == ["replaced-shard-0000-of-0002", "replaced-shard-0001-of-0002", "shard-0000-of-0001"]
    assert digest(steppe.open_run(out)) == whole
    assert digest(small_run(out=out, resume=True, **TEN)) == whole
    with pytest.raises(StorageError, match="already holds"):
        small_run(out=out, **TEN)


@pytest.mark.parametrize("step", ["copied", "renamed one"])
def test_a_take_over_that_was_killed_is_finished_by_the_next(tmp_path, whole, monkeypatch, step):
    out = tmp_path / "run"
    for index in range(2):
        small_run(out=out, shard=(index, 2), **{**TEN, "num_draws": 60})
    asked = []

    def agree(devices, answer):
        asked.append(answer)
        if len(asked) == 2:
            if step == "renamed one":
                (out / "shard-0000-of-0002").rename(out / "replaced-shard-0000-of-0002")
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Devices, "agree", agree)
        with pytest.raises(KeyboardInterrupt):
            small_run(out=out, resume=True, **TEN)
    assert len(asked) == 2
    assert steppe.open_run(out).trace.num_rows == 100
    assert digest(small_run(out=out, resume=True, **TEN)) == whole
    assert digest(steppe.open_run(out)) == whole


def test_parts_that_are_missing_or_of_another_run_are_refused(tmp_path):
    small_run(out=tmp_path / "a", shard=(0, 2), **TEN)
    with pytest.raises(RunError, match="needs each of them once"):
        merge_shards(tmp_path / "a", tmp_path / "merged")
    small_run(steppe.edmala(step_size=0.3), out=tmp_path / "b", shard=(1, 2), **TEN)
    with pytest.raises(RunMismatchError, match="differs"):
        merge_shards([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("shard", [(2, 2), (-1, 2), (0, 0), (0,), "0/2", 3, (True, 2), (0, 11)])
def test_a_part_that_cannot_be_is_refused(tmp_path, shard):
    with pytest.raises(RunError, match=r"shard|no chains"):
        small_run(out=tmp_path / "run", shard=shard, **TEN)
    assert not (tmp_path / "run").exists()


def test_parts_are_not_mixed_with_a_whole_run(tmp_path):
    small_run(out=tmp_path / "run", **TEN)
    with pytest.raises(StorageError, match="whole run"):
        small_run(out=tmp_path / "run", shard=(0, 2), **TEN)


@pytest.mark.parametrize("devices", [0, 99, "cpu", [], True, 1.5])
def test_devices_that_are_not_there_are_refused(devices):
    with pytest.raises(RunError, match="devices"):
        small_run(devices=devices)


def test_more_devices_than_chains_are_refused():
    plan = make_plan(4, 0, 8, 1, "draws", 2)
    check_enough_chains(plan, 4)
    with pytest.raises(RunError, match="5 devices for 4 chains"):
        check_enough_chains(plan, 5)


PROGRAM = """
import sys, time
import jax
if sys.argv[3] != "0":
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[3]}", num_processes=2, process_id=int(sys.argv[4]),
                               shutdown_timeout_seconds=5)
sys.path.insert(0, sys.argv[1])
from small_runs import RECIPE, small_run, steppe
from steppe.run import driver, engine
from steppe.run.storage import directory
from steppe.run.adaptation import Adapt
options = dict(option.split("=") for option in sys.argv[5:])
engine.FIRST_CHUNK_ROWS = engine.MAX_CAPACITY = int(options.get("chunk", 64))
driver.COMMIT_SECONDS = float(options.get("commit", 10))
if "slow" in options:  # time to be killed in
    commit = directory.RunDirectory.commit
    directory.RunDirectory.commit = lambda *arguments: (time.sleep(0.1), commit(*arguments))
small_run(
    steppe.parallel_tempering(num_rungs=3) if "tempered" in options else RECIPE,
    out=sys.argv[2], resume=True, num_chains=int(options.get("chains", 10)), chain_block=4,
    num_draws=int(options.get("draws", 160)),
    adapt=Adapt(pooled="pooled" in options),
    devices=int(options["devices"]) if "devices" in options else None,
)
"""


def launch(
    out: Path, *options: str, port: int = 0, process: int = 0, num_devices: int = 1
) -> subprocess.Popen:
    """A process of its own, alone or one of two."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={num_devices}"
    arguments = [sys.executable, "-c", PROGRAM, HERE, out, port, process, *options]
    return subprocess.Popen(
        [str(a) for a in arguments],
        env={**os.environ, "XLA_FLAGS": flags},
        stderr=subprocess.PIPE,
        text=True,
    )


def pair(out: Path, *options: str, num_devices: int = 1) -> list[subprocess.Popen]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [
        launch(out, *options, port=port, process=process, num_devices=num_devices) for process in range(2)
    ]


def wait(*processes: subprocess.Popen, timeout: float = 120) -> list[int]:
    try:
        for process in processes:
            process.communicate(timeout=timeout)
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes]


def count_commits(out: Path) -> int:
    """Commits of the process of two that has made fewer."""
    journals = [path.read_bytes() for path in out.glob("shard-*/journal.jsonl")]
    return min(journal.count(b"\n") - 1 for journal in journals) if len(journals) == 2 else 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["pooled="]])
def test_two_devices_give_the_draws_of_one(tmp_path, whole, options):
    assert wait(launch(tmp_path / "run", "devices=2", *options, num_devices=2)) == [0]
    expected = digest(small_run(adapt=POOLED, **TEN)) if options else whole
    assert digest(steppe.open_run(tmp_path / "run")) == expected


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["pooled="]])
def test_two_processes_give_the_draws_of_one(tmp_path, whole, options):
    assert wait(*pair(tmp_path / "run", *options)) == [0, 0]
    expected = digest(small_run(adapt=POOLED, **TEN)) if options else whole
    assert digest(steppe.open_run(tmp_path / "run")) == expected


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_when_one_process_is_killed_both_stop_and_resume_gives_the_uninterrupted_draws(
    tmp_path, whole, victim
):
    out = tmp_path / "run"
    processes = pair(out, "chunk=4", "commit=0", "slow=")
    deadline = time.monotonic() + 120
    while count_commits(out) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    processes[victim].send_signal(signal.SIGKILL)
    codes = wait(*processes)
    assert codes[victim] == -signal.SIGKILL
    assert codes[1 - victim] != 0
    before = steppe.open_run(out)
    assert before.trace.num_rows < 200
    assert wait(*pair(out)) == [0, 0]
    assert digest(steppe.open_run(out)) == whole
    assert [p for part in out.iterdir() for p in RunDirectory(part).problems()] == []


@pytest.mark.slow
def test_an_interrupt_of_one_process_stops_both_with_everything_committed(tmp_path, whole):
    out = tmp_path / "run"
    processes = pair(out, "chunk=4", "commit=0", "slow=")
    while count_commits(out) < 3:
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGTERM)
    assert wait(*processes)[1] == 143
    rows = [RunDirectory(part).open().journal.commits[-1].next_row for part in sorted(out.iterdir())]
    assert rows[0] == rows[1]
    shutil.copytree(out, tmp_path / "copy")
    assert wait(*pair(out)) == [0, 0]
    assert digest(steppe.open_run(out)) == whole


@pytest.mark.slow
def test_a_run_may_be_continued_by_another_number_of_processes(tmp_path, whole):
    out = tmp_path / "run"
    assert wait(launch(out, "draws=30")) == [0]
    assert wait(*pair(out, "draws=60", "chunk=4", "commit=0")) == [0, 0]
    assert wait(launch(out, "draws=90")) == [0]
    assert wait(*pair(out)) == [0, 0]
    assert digest(steppe.open_run(out)) == whole
    assert steppe.open_run(out).problems == []


# ---- ladders: four blocks of four chains, with temperatures that are adapted before ------------------------

LADDERS = ["tempered=", "chains=16"]


@pytest.fixture(scope="module")
def tempered() -> str:
    return digest(small_run(steppe.parallel_tempering(num_rungs=3), num_chains=16, chain_block=4))


@pytest.mark.slow
@pytest.mark.parametrize("num_devices", [2, 4])
def test_tempered_chains_on_several_devices_have_the_draws_of_one(tmp_path, tempered, num_devices):
    out = tmp_path / "run"
    assert wait(launch(out, *LADDERS, f"devices={num_devices}", num_devices=num_devices)) == [0]
    assert digest(steppe.open_run(out)) == tempered


@pytest.mark.slow
def test_tempered_chains_in_two_processes_of_two_devices_have_the_draws_of_one(tmp_path, tempered):
    out = tmp_path / "run"
    assert wait(*pair(out, *LADDERS, num_devices=2)) == [0, 0]
    assert digest(steppe.open_run(out)) == tempered


@pytest.mark.slow
def test_after_a_kill_the_other_process_of_a_tempered_run_says_so_and_one_alone_may_resume(
    tmp_path, tempered
):
    out = tmp_path / "run"
    processes = pair(out, *LADDERS, "chunk=4", "commit=0", "slow=", num_devices=2)
    deadline = time.monotonic() + 200
    while count_commits(out) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGKILL)
    said = processes[0].communicate(timeout=120)[1]
    assert wait(*processes)[0] != 0
    assert "PeerError" in said
    assert steppe.open_run(out).trace.num_rows < 200
    assert wait(launch(out, *LADDERS)) == [0]
    assert digest(steppe.open_run(out)) == tempered


def test_shards_are_merged_into_an_empty_directory_and_into_no_other(tmp_path):
    (tmp_path / "empty").mkdir()
    assert shards._make_draft(tmp_path / "empty").path.name.startswith("empty")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for name in ("full", "full/file"):
        with pytest.raises(StorageError, match="is not empty"):
            shards._make_draft(tmp_path / name)


def test_a_commit_that_fails_while_another_process_is_interrupted_is_what_is_said():
    def commit(*_):
        time.sleep(0.3)  # it is still being made when the interrupt is seen
        raise StorageError("The disk is full.")

    class Peers:
        num_processes = 2

        def gather(self, flags):
            return [flags, [True, False, False]]

        def agree(self, is_wrong):
            return is_wrong

    rows = Rows(**{**dict.fromkeys(Rows._fields), "log_density": np.zeros((1, 4), np.float32)})
    chunks = [engine.Chunk(0, 1, rows, 0.1)]
    running = SimpleNamespace(
        next_row=0,
        devices=Peers(),
        plan=SimpleNamespace(keep="draws"),
        save_chains=dict,
        chunks=lambda _: chunks,
    )
    directory = SimpleNamespace(commit=commit, is_stop_requested=False)
    stopping = SimpleNamespace(look=lambda chunk: False, failure=None)
    with pytest.raises(StorageError, match="The disk is full"):
        driver.stream(running, 9, lambda chunk: None, directory, stopping)
    directory.commit = lambda *_: None
    with pytest.raises(PeerError, match="Everything is committed"):
        driver.stream(running, 9, lambda chunk: None, directory, stopping)
