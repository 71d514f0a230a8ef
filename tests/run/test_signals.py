"""A signal ends a run at once while there is nothing to keep, and afterwards once everything is committed."""

import gc
import os
import signal
import sys
import time

import pytest
from small_runs import digest, small_run

import steppe
from steppe.run import engine as engine_module
from steppe.run.driver import interrupt_flag

ENDINGS = {signal.SIGINT: (KeyboardInterrupt, None), signal.SIGTERM: (SystemExit, 143)}


def send(number: signal.Signals) -> None:
    """Send this process a signal, and give Python the time to notice."""
    os.kill(os.getpid(), number)
    time.sleep(0.01)


@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize("num_chunks", [0, 1, 3])
def test_a_signal_in_the_first_chunk_ends_the_run_in_it_and_a_later_one_after_a_commit(
    tmp_path, monkeypatch, number, num_chunks
):
    """Programs are compiled in the first chunk, which takes seconds and leaves nothing to lose."""
    advance, done, is_cut_short = engine_module.advance, [], []

    def interrupted(*arguments, **options):
        if len(done) == num_chunks:
            is_cut_short.append(True)
            send(number)
            is_cut_short[-1] = False
        result = advance(*arguments, **options)
        done.append(arguments)
        return result

    kind, code = ENDINGS[number]
    with monkeypatch.context() as patch:
        patch.setattr(engine_module, "advance", interrupted)
        patch.setattr(engine_module, "MAX_CAPACITY", 8)
        patch.setattr(engine_module, "CHUNK_SECONDS", 1e6)  # chunks of 8 rows on a busy machine too
        before = {number: signal.getsignal(number) for number in ENDINGS}
        with pytest.raises(kind) as caught:
            small_run(out=tmp_path / "run")
    assert code is None or caught.value.code == code
    assert {number: signal.getsignal(number) for number in ENDINGS} == before
    assert is_cut_short == [num_chunks == 0]
    if num_chunks:
        assert steppe.open_run(tmp_path / "run").trace.num_rows == 8 * (num_chunks + 1)
    assert digest(small_run(out=tmp_path / "run", resume=True)) == digest(small_run())


def collect_and_wait() -> None:
    """Collect garbage with a callback that sends a signal, then wait for it."""

    def send_once(phase, info):
        if not sent:
            sent.append(phase)
            send(signal.SIGTERM)

    sent = []
    gc.callbacks.append(send_once)
    try:
        with interrupt_flag(lambda: False):
            gc.collect()
            time.sleep(5)
    finally:
        gc.callbacks.remove(send_once)


def test_a_signal_that_meets_the_garbage_collector_is_raised_after_it(capfd):
    """What is raised inside a callback of the collector is lost; JAX has such a callback."""
    hook = sys.unraisablehook
    with pytest.raises(SystemExit) as caught:
        collect_and_wait()
    assert caught.value.code == 143
    assert "ignored" not in capfd.readouterr().err
    assert sys.unraisablehook is hook
