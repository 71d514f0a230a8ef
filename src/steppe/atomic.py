"""Atomic writes: a file is whole or not there, and stays so when the power fails."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes | memoryview, aside: Path | None = None) -> None:
    """Write aside, flush, rename, flush the directory; an `OSError` leaves no trace.

    Parameters
    ----------
    path
        The file, new or to be replaced.
    content
        What is in it.
    aside
        Where it is written first, in the same directory; by default a hidden file that no other process
        uses.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}") if aside is None else aside
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            leave_the_cache(file.fileno())
        draft.replace(path)
        sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):  # the directory itself is gone or read-only
            draft.unlink(missing_ok=True)
        raise


def leave_the_cache(descriptor: int) -> None:
    """Let the system use the memory of what is on disk now: a long run must not fill it with old rows."""
    if hasattr(os, "posix_fadvise"):  # not on every system
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def make_directory(path: Path) -> None:
    """Make a directory and those above it, each of which stays when the power fails."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_directory(made.parent)


def sync_directory(path: Path) -> None:
    """Make what is in a directory by now, and what is not, permanent."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
