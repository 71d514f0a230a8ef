"""Carry a run to its end: advance, collect or commit, report, and stop cleanly when asked to."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from steppe.errors import PeerError
from steppe.trace import join

if TYPE_CHECKING:
    from steppe.run.chain_blocks import Rows
    from steppe.run.engine import Engine
    from steppe.run.progress import Reporter
    from steppe.run.stopping import Stopping
    from steppe.run.storage.directory import RunDirectory

COMMIT_SECONDS = 10.0
RETRY_SECONDS = 0.02
# A fast run on a small target fills this sooner; what waits for a commit stays small.
COMMIT_BYTES = 64 * 2**20


def collect(
    engine: "Engine",
    num_rows: int,
    report: "Reporter",
    stopping: "Stopping",
    parts: list[dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Run to a row, or until the rule says so, and keep everything in memory; axes (chain, row, …).

    `parts` is filled chunk by chunk, for whoever wants to look at the run while it goes on.
    """
    for chunk in engine.chunks(num_rows):
        rows = row_arrays(chunk.rows, engine.plan.keep)
        # Copied, so that the buffer of the device is not kept for its first rows.
        parts.append({name: np.array(array, order="C") for name, array in rows.items()})
        report(chunk)
        if np.any(engine.devices.gather([stopping.look(chunk)])):
            break
    if stopping.failure is not None:
        raise stopping.failure
    return join(parts) if parts else {}


def stream(
    engine: "Engine",
    num_rows: int,
    report: "Reporter",
    directory: "RunDirectory",
    stopping: "Stopping",
    commit_seconds: float | None = None,
) -> None:
    """Run to a row, committing to disk every few seconds.

    The first interrupt (Ctrl-C or a termination request) commits what is done and ends the run. Before the
    first rows, while programs are compiled, nothing would be lost, and it ends the run at once; processes
    that run together still stop together. A request in the directory (`RunDirectory.request_stop`) or a rule
    ends the run too, without an interrupt.
    """
    interval = COMMIT_SECONDS if commit_seconds is None else commit_seconds
    seconds, last_commit, first_row = 0.0, time.monotonic(), engine.next_row

    def has_rows() -> bool:
        return engine.next_row > first_row or engine.devices.num_processes > 1

    with interrupt_flag(has_rows) as interrupted, Commits(directory) as commits:
        for chunk in engine.chunks(num_rows):
            commits.waiting.add(row_arrays(chunk.rows, engine.plan.keep))
            seconds += chunk.seconds
            report(chunk)
            is_due = commits.waiting.is_full or time.monotonic() - last_commit > interval
            # Processes commit the same rows: one that is interrupted, or finds it time, speaks for all.
            is_asked = stopping.look(chunk) or directory.is_stop_requested
            flags = engine.devices.gather([interrupted(), is_asked, is_due])
            stops, asked, is_time = np.any(flags, axis=0)
            if is_time or stops or asked or engine.next_row >= num_rows:
                # What is written over is of no use to any process: all of them have the commit after it.
                commits.finish()
                engine.devices.agree(False)
                commits.begin(engine.save_chains(), engine.next_row, seconds)
                seconds, last_commit = 0.0, time.monotonic()
            commits.raise_what_failed()
            if stops:
                commits.finish()
            if stops and not interrupted():
                raise PeerError("Another process of the run was interrupted. Everything is committed.")
            if stops or asked:
                break
    if stopping.failure is not None:
        raise stopping.failure


class Waiting:
    """Rows that wait for a commit, up to a number of bytes.

    Attributes
    ----------
    num_rows
        How many wait.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.num_rows = 0
        self._arrays: dict[str, np.ndarray] = {}

    def add(self, rows: Mapping[str, np.ndarray]) -> None:
        """Copy rows, (row, chain, …), behind those that wait."""
        first = self.num_rows
        self.num_rows += len(rows["log_density"])
        for name, array in rows.items():
            self._with_room(name, array)[first : first + len(array)] = array

    @property
    def is_full(self) -> bool:
        """Whether more wait than was meant to."""
        return sum(array[: self.num_rows].nbytes for array in self._arrays.values()) > self.most_bytes

    @property
    def rows(self) -> dict[str, np.ndarray]:
        """What waits, (row, chain, …)."""
        return {name: array[: self.num_rows] for name, array in self._arrays.items()}

    def clear(self) -> None:
        """Forget the rows and keep the memory."""
        self.num_rows = 0

    def _with_room(self, name: str, rows: np.ndarray) -> np.ndarray:
        array = self._arrays.get(name)
        if array is None or len(array) < self.num_rows:
            longer = np.empty((2 * self.num_rows, *rows.shape[1:]), rows.dtype)
            if array is not None:
                longer[: len(array)] = array
            array = self._arrays[name] = longer
        return array


class Commits:
    """Commits of a run, one at a time, beside the chains: they go on while rows are written.

    Attributes
    ----------
    waiting
        Rows for the next commit.
    """

    def __init__(self, directory: "RunDirectory") -> None:
        self.waiting, self._spare = Waiting(COMMIT_BYTES), Waiting(COMMIT_BYTES)
        self._directory = directory
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="steppe-commit")
        self._begun: Future[None] | None = None

    def begin(self, chains: dict[str, np.ndarray], next_row: int, seconds: float) -> None:
        """Begin to commit the rows that wait, once the commit before is done."""
        self.finish()
        rows = self.waiting.rows
        try:
            self._begun = self._writer.submit(self._directory.commit, rows, chains, next_row, seconds)
        except RuntimeError:  # the program ends, which waits for its threads and takes no new work for them
            self._directory.commit(rows, chains, next_row, seconds)
        self.waiting, self._spare = self._spare, self.waiting
        self.waiting.clear()

    def raise_what_failed(self) -> None:
        """Stop the run at once if a commit could not be made."""
        if self._begun is not None and self._begun.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the commit that was begun, and raise what went wrong in it."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.result()

    def __enter__(self) -> "Commits":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._writer.shutdown()
        if kind is None:
            self.finish()


def row_arrays(rows: "Rows", keep: str) -> dict[str, np.ndarray]:
    """Return the arrays of rows by name, without those that are not kept."""
    kept = slice(0, 0) if keep == "none" else slice(None)
    return {name: array[kept] for name, array in rows._asdict().items() if array is not None}


@contextmanager
def interrupt_flag(waits: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT or SIGTERM into a flag, and raise it again once the block is left.

    Parameters
    ----------
    waits
        Whether a signal that comes now waits for the end of the block; otherwise it is raised at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may install handlers
        return
    received: list[int] = []
    handled = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.getsignal(number) for number in handled}

    raised: list[BaseException] = []
    again: list[threading.Timer] = []

    def handle(caught: int, frame: object) -> None:
        received.append(caught)
        if not waits():
            raised.append(make_interrupt(caught))
            raise raised[-1]

    def retry(lost: "sys.UnraisableHookArgs") -> None:
        # What is raised while garbage is collected is lost, and JAX collects much: send it again.
        if not any(lost.exc_value is error for error in raised):
            report_lost(lost)
            return
        again.append(threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), received[-1])))
        again[-1].start()

    report_lost, sys.unraisablehook = sys.unraisablehook, retry
    for number in handled:
        signal.signal(number, handle)
    try:
        yield lambda: bool(received)
    finally:
        sys.unraisablehook = report_lost
        for timer in again:
            timer.cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)
    if received:
        raise make_interrupt(received[0])


def make_interrupt(number: int) -> BaseException:
    """What Python raises for Ctrl-C, or an exit with the code that shells give a signal."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
