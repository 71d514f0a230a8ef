"""Runs in the background: looked at, stopped, waited for, and failing where it is seen."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.errors import CallbackError, RunError, StartError
from steppe.run.stopping import Progress

TARGET = steppe.Target(lambda bits: jnp.sum(bits) / 2, steppe.Binary(8))
KEY = jax.random.key(0)
LONG = {"key": KEY, "num_chains": 2, "num_warmup": 10, "num_draws": 10**8}


def start(**arguments: object) -> steppe.Handle:
    return steppe.start(TARGET, steppe.dmala(), **{**LONG, **arguments})


def test_a_run_that_is_stopped_has_the_first_draws_of_the_run_it_would_have_been() -> None:
    handle = start(num_warmup=0)
    run = handle.stop()
    assert not handle.is_running
    assert run.stopped == "it was asked to"
    assert handle.run is run
    num_draws = run.levels.shape[1]
    whole = steppe.sample(TARGET, steppe.dmala(), **LONG | {"num_draws": num_draws, "num_warmup": 0})
    assert np.array_equal(run.levels, whole.levels)


def test_a_run_is_seen_while_it_goes_on() -> None:
    seen = []
    begun = threading.Event()

    def look(progress: Progress) -> None:
        seen.append(progress.read_run().trace.num_rows)
        begun.set()

    with start(on_chunk=look, num_warmup=0) as handle:
        begun.wait()
        so_far = handle.run
        assert so_far.summary().mixing.num_draws == so_far.levels.shape[1]
        with pytest.raises(RunError):
            so_far.extend(10)
        assert "rows" in repr(handle)
        with pytest.raises(RunError, match="goes on"):
            handle.wait(0)
    assert seen == sorted(seen)
    assert "ended" in repr(handle)


def test_a_run_on_disk_that_is_stopped_is_committed_and_can_be_resumed(tmp_path: Path) -> None:
    run = start(out=tmp_path / "run").stop()
    assert steppe.open_run(tmp_path / "run").levels.shape == run.levels.shape


def test_a_run_that_ends_by_itself_is_waited_for() -> None:
    run = start(num_draws=20).wait()
    assert (run.levels.shape[1], run.stopped) == (20, "")


def test_what_goes_wrong_in_the_background_is_raised_where_the_run_is_asked_for() -> None:
    handle = start(initial=np.full((2, 8), 3.0))
    with pytest.raises(StartError, match="not a level"):
        handle.wait()
    with pytest.raises(StartError, match="not a level"):
        _ = handle.run
    assert "failed" in repr(handle)
    with pytest.raises(CallbackError, match="on_chunk"):
        start(on_chunk=lambda progress: 1 / 0).wait()
    with pytest.raises(RunError, match="num_draw'"):
        start(num_draw=3)


def test_on_chunk_ends_a_run_by_returning_true() -> None:
    run = steppe.sample(TARGET, steppe.dmala(), **LONG, progress=False, on_chunk=lambda progress: True)
    assert run.stopped == "it was asked to"


@pytest.mark.slow
def test_a_program_that_ends_stops_its_run_and_commits_it(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    program = f"""
        import jax, jax.numpy as jnp, steppe
        target = steppe.Target(lambda bits: jnp.sum(bits) / 2, steppe.Binary(8))
        handle = steppe.start(target, key=jax.random.key(0), num_draws=10**8, out={out!r})
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)
    assert steppe.open_run(tmp_path / "run").trace.num_rows > 0
