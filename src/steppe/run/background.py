"""`start`: a run in the background, to look at while it goes on, to stop, and to wait for."""

import inspect
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.kernel.compose import Recipe
from steppe.run.result import Run
from steppe.run.sample import sample
from steppe.run.stopping import OnChunk, Progress
from steppe.target import Target
from steppe.validation import not_negative


class Handle:
    """A run in the background, made by `steppe.start`.

    Use it in a `with` block to end the run with the block.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: jnp.sum(bits) / 2, steppe.Binary(8))
    >>> with steppe.start(target, key=jax.random.key(0), num_draws=200) as handle:
    ...     run = handle.wait()
    >>> handle.is_running, run.levels.shape
    (False, (4, 200, 8))
    """

    def __init__(self, carry_out: Callable[[OnChunk], Run], on_chunk: OnChunk | None) -> None:
        self._carry_out, self._on_chunk = carry_out, on_chunk
        self._newest: Progress | None = None
        self._run: Run | None = None
        self._error: BaseException | None = None
        self._is_asked = threading.Event()
        self._over = threading.Event()
        self._has_precision = jnp.result_type(float) == jnp.float64  # a setting of threads
        # No daemon: a thread that is cut off in the middle of a commit would lose it.
        self._thread = threading.Thread(target=self._work, name="steppe-run")
        self._thread.start()

    def _work(self) -> None:
        try:
            with jax.enable_x64(self._has_precision):  # type: ignore[attr-defined]
                self._run = self._carry_out(self._look)
        except BaseException as error:  # noqa: BLE001 - raised where the run is waited for
            self._error = error
        finally:
            self._over.set()

    def _look(self, progress: Progress) -> bool:
        self._newest = progress
        wants_end = self._on_chunk is not None and self._on_chunk(progress) is True
        # A program that has ended waits for its threads: what is done is kept, and no more is begun.
        return wants_end or self._is_asked.is_set() or not threading.main_thread().is_alive()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet, for whatever reason."""
        return not self._over.is_set()

    @property
    def progress(self) -> Progress | None:
        """What the newest chunk of rows brought; `None` while programs are compiled."""
        return self._newest

    @property
    def run(self) -> Run:
        """The run so far: what is in memory, or committed on disk. Raises what ended it, if anything did.

        Raises
        ------
        RunError
            If there are no rows yet.
        """
        self._raise_what_failed()
        if self._run is not None:
            return self._run
        if self._newest is None:
            raise RunError(
                "The run has no rows yet: its programs are being compiled. Try again in a few seconds, or "
                "wait for it by `handle.wait()`."
            )
        return self._newest.read_run()

    def stop(self) -> Run:
        """End the run after the chunk it is at, about a second, with everything kept; return it."""
        self._is_asked.set()
        return self.wait()

    def wait(self, timeout: float | None = None) -> Run:
        """Wait for the end and return the run; raise what ended it, if it failed.

        Parameters
        ----------
        timeout
            Seconds to wait at most; the run goes on if they pass.
        """
        if timeout is not None:
            not_negative("wait(timeout=...)", timeout, error=RunError)
        if not self._over.wait(timeout):
            raise RunError(f"The run goes on after {timeout:g} s. Wait longer, or end it by `handle.stop()`.")
        self._raise_what_failed()
        assert self._run is not None
        return self._run

    def _raise_what_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *_: object) -> None:
        self._is_asked.set()
        self._over.wait()

    def __repr__(self) -> str:
        if self._error is not None:
            return f"<run, failed: {self._error}>"
        if self._run is not None:
            return f"<run, ended{': ' + self._run.stopped if self._run.stopped else ''}>"
        if self._newest is None:
            return "<run, compiling>"
        return f"<run, {self._newest.num_rows} of {self._newest.num_rows_planned} rows>"


@checked(RunError)
def start(
    target: Target,
    recipe: Recipe | None = None,
    *,
    key: Array,
    on_chunk: OnChunk | None = None,
    **arguments: Any,
) -> Handle:
    """Begin to sample in the background and return at once.

    Parameters
    ----------
    target, recipe, key, on_chunk
        As in `steppe.sample`.
    arguments
        Everything else that `steppe.sample` takes. There is no progress bar unless `progress=True`.

    Returns
    -------
    Handle
        `run` is the run so far, `stop()` ends it with everything kept, `wait()` returns it when it is done,
        and both raise what went wrong. A program that ends stops its runs; those on disk can be resumed.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, steppe
    >>> target = steppe.Target(lambda bits: jnp.sum(bits) / 2, steppe.Binary(8))
    >>> handle = steppe.start(target, key=jax.random.key(0), num_draws=10_000_000, num_warmup=100)
    >>> run = handle.stop()
    >>> run.stopped
    'it was asked to'
    """
    unknown = sorted(set(arguments) - set(inspect.signature(sample).parameters))
    if unknown:
        raise RunError(f"`start(...)` has no argument {unknown}; it takes those of `steppe.sample`.")

    def carry_out(look: OnChunk) -> Run:
        return sample(target, recipe, key=key, on_chunk=look, **{"progress": False, **arguments})

    return Handle(carry_out, on_chunk)
