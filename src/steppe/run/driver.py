"""Carry a run to its end: advance, collect or commit, report, and stop cleanly when asked to."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from steppe.errors import PeerError
from steppe.run.engine import Engine
from steppe.run.loop import Rows
from steppe.run.progress import Reporter
from steppe.run.store import RunDirectory
from steppe.trace import join

COMMIT_SECONDS = 10.0
# A fast run on a small target fills this sooner; what waits for a commit stays small.
COMMIT_BYTES = 64 * 2**20


def collect(engine: Engine, num_rows: int, report: Reporter) -> dict[str, np.ndarray]:
    """Run to a row and keep everything in memory."""
    parts = []
    for chunk in engine.chunks(num_rows):
        parts.append(row_arrays(chunk.rows, engine.plan.keep))
        report(chunk)
    return join(parts) if parts else {}


def stream(engine: Engine, num_rows: int, report: Reporter, directory: RunDirectory) -> None:
    """Run to a row, committing to disk every few seconds.

    The first interrupt (Ctrl-C or a termination request) commits what is done and ends the run.
    """
    pending: list[dict[str, np.ndarray]] = []
    num_bytes, seconds, last_commit = 0, 0.0, time.monotonic()
    with interrupt_flag() as interrupted:
        for chunk in engine.chunks(num_rows):
            pending.append(row_arrays(chunk.rows, engine.plan.keep))
            num_bytes += sum(array.nbytes for array in pending[-1].values())
            seconds += chunk.seconds
            report(chunk)
            is_due = time.monotonic() - last_commit > COMMIT_SECONDS or num_bytes > COMMIT_BYTES
            # Processes commit the same rows: one that is interrupted, or finds it time, speaks for all.
            stops, commits = np.any(engine.devices.gather([interrupted(), is_due]), axis=0)
            if commits or stops or engine.next_row >= num_rows:
                directory.commit(join(pending), engine.saved(), engine.next_row, seconds)
                pending, num_bytes, seconds, last_commit = [], 0, 0.0, time.monotonic()
            if stops and not interrupted():
                raise PeerError("Another process of the run was interrupted. Everything is committed.")
            if stops:
                break


def row_arrays(rows: Rows, keep: str) -> dict[str, np.ndarray]:
    """Return the arrays of rows by name, without those that are not kept."""
    kept = slice(0, 0) if keep == "none" else slice(None)
    return {name: array[:, kept] for name, array in rows._asdict().items() if array is not None}


@contextmanager
def interrupt_flag() -> Iterator[Any]:
    """Turn the first SIGINT or SIGTERM into a flag, and raise it again once the block is left."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may install handlers
        return
    received: list[int] = []
    handled = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.getsignal(number) for number in handled}
    for number in handled:
        signal.signal(number, lambda caught, frame: received.append(caught))
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if received:
        if received[0] == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + received[0])
