"""Pieces of work that survive a kill: each is a pure function, and its answer is kept in a file."""

import io
import queue
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steppe.atomic import write_atomically
from steppe.errors import DamagedRunError, StorageError
from steppe.results import Array
from steppe.run.progress import count_bar
from steppe.run.storage.durable import read_json, write_json

# Most of the time of a small piece goes into compiling, which one program does on one core.
AT_ONCE = 2
_ARRAY_KEYS = {"shape", "dtype", "data"}

Content = dict[str, Any]
Piece = Callable[[], Content]


class Work:
    """Runs pieces of work, and keeps their answers below a directory.

    Parameters
    ----------
    directory
        Where answers are kept, as `KEY.json`.
    digest
        What they depend on; an answer to anything else is not taken.
    title
        What a progress bar says is being done.
    progress
        Show progress; by default when standard error is a terminal.
    describe
        What else is kept with the answer of a piece: where it comes from.
    unfinished
        Where intermediate answers and checkpoints are kept; by default beside the answers.
    finished_only
        Whether to leave out what has no answer yet, and to run nothing.
    """

    def __init__(
        self,
        directory: Path,
        digest: str,
        title: str,
        progress: bool | None,
        *,
        describe: Callable[[Piece], Content] | None = None,
        unfinished: Path | None = None,
        finished_only: bool = False,
    ) -> None:
        self._directory, self._digest = directory, digest
        self._title, self._progress = title, progress
        self._describe, self._unfinished = describe, unfinished
        self._finished_only = finished_only
        self.seconds = 0.0

    def all(self, pieces: Mapping[str, Piece], *, at_once: int = AT_ONCE) -> dict[str, Content]:
        """Return the answer of every piece, by key: from its file where there is one, else computed now.

        Parameters
        ----------
        pieces
            Independent pure functions by key, begun in this order: put long ones first, and pieces that
            share a program apart, since two that begin together compile it twice. A key is the name of a
            file: letters, digits, `-`, `_`, `.`.
            An answer is a dictionary of what JSON can hold, and of NumPy arrays of type uint8, int64,
            float32 or float64.
        at_once
            How many run at the same time. 1 for pieces that measure time.
        """
        answers = {key: self._kept(key) for key in pieces}
        missing = [key for key, answer in answers.items() if answer is None]
        if self._finished_only:
            return {key: self._counted(answer) for key, answer in answers.items() if answer is not None}
        at_once = at_once if self._describe is None else 1  # of a record, a kill costs one piece at most
        with count_bar(self._title, len(missing), self._progress) as report:
            for done, key in enumerate(self._run({key: pieces[key] for key in missing}, at_once), start=1):
                answers[key] = self._kept(key)  # read back, so that a resumed run sees the same numbers
                report(done)
        return {key: self._counted(answer) for key, answer in answers.items()}

    def one(self, key: str, piece: Piece) -> Content:
        """Return the answer of one piece."""
        return self.all({key: piece})[key]

    def intermediate(self, key: str, piece: Piece) -> Content:
        """Return the answer of a piece that others need, which is too large to be part of a record."""
        place = self
        if self._unfinished is not None:
            place = Work(self._unfinished, self._digest, key, self._progress)
        kept = place._kept(key)
        return place.one(key, piece) if kept is None else decoded(kept["answer"])

    def prepare(self, pieces: Mapping[str, Piece]) -> None:
        """Find intermediate answers that other pieces need; of a record, only when one of those is run."""
        if self._unfinished is None:
            self.all(pieces)

    def checkpoint(self, key: str) -> "Checkpoint | None":
        """Where a long piece may leave how far it came; `None` where pieces are short."""
        if self._unfinished is None:
            return None
        return Checkpoint(self._unfinished / f"{key}.npz", self._digest)

    def _run(self, pieces: Mapping[str, Piece], at_once: int) -> Any:
        """Yield keys as their answers are kept."""
        waiting: queue.SimpleQueue[tuple[str, Piece]] = queue.SimpleQueue()
        finished: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
        for item in pieces.items():
            waiting.put(item)

        def worker() -> None:
            while True:
                try:
                    key, piece = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._keep(key, piece)
                except BaseException as error:  # noqa: BLE001 - raised again below, in the main thread
                    finished.put((key, error))
                    return
                finished.put((key, None))

        # Threads of a pool would be waited for after Ctrl-C, for as long as their pieces take.
        for _ in range(min(at_once, len(pieces))):
            threading.Thread(target=worker, daemon=True).start()
        for _ in pieces:
            key, error = finished.get()
            if error is not None:
                while not waiting.empty():  # nothing further is begun
                    waiting.get_nowait()
                raise error
            yield key

    def _keep(self, key: str, piece: Piece) -> None:
        more = {} if self._describe is None else self._describe(piece)
        begun = time.perf_counter()
        answer = encoded(piece())
        seconds = time.perf_counter() - begun
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"Could not write to {self._directory}: {error.strerror or error}.") from error
        write_json(self._path(key), {**more, "digest": self._digest, "seconds": seconds, "answer": answer})
        if (checkpoint := self.checkpoint(key)) is not None:
            checkpoint.clear()

    def _kept(self, key: str) -> dict[str, Any] | None:
        """What is kept of a piece; what is damaged or answers another request is done again."""
        try:
            content = read_json(self._path(key))
        except DamagedRunError:
            return None
        return content if content.get("digest") == self._digest else None

    def _counted(self, content: dict[str, Any] | None) -> Content:
        assert content is not None
        self.seconds += content["seconds"]
        return decoded(content["answer"])

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"


class Checkpoint:
    """How far a long piece came: arrays in one file, replaced as a whole.

    Parameters
    ----------
    path
        The file.
    digest
        What the arrays depend on; those of anything else are not taken.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self._path, self._digest = path, np.frombuffer(digest.encode(), np.uint8)

    def load(self) -> dict[str, np.ndarray] | None:
        """Return the arrays saved last, or `None`."""
        try:
            with np.load(self._path, allow_pickle=False) as file:
                found = dict(file)
        except (OSError, ValueError, zipfile.BadZipFile):
            return None
        return found if np.array_equal(found.pop("digest", np.empty(0)), self._digest) else None

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace what was saved."""
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, digest=self._digest, **arrays)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path, content.getvalue())

    def clear(self) -> None:
        """Forget it: the piece is finished."""
        self._path.unlink(missing_ok=True)


def encoded(value: Any) -> Any:
    """The same with every array packed, as JSON can hold it."""
    if isinstance(value, np.ndarray):
        return Array.of(value).model_dump()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): encoded(part) for key, part in value.items()}
    return [encoded(part) for part in value] if isinstance(value, list | tuple) else value


def decoded(value: Any) -> Any:
    """The inverse of `encoded`."""
    if isinstance(value, dict):
        if value.keys() == _ARRAY_KEYS:
            return Array.model_validate(value).numpy()
        return {key: decoded(part) for key, part in value.items()}
    return [decoded(part) for part in value] if isinstance(value, list) else value
