"""Durable files of a run: JSON that carries its digest, arrays as plain bytes, the lock of the one writer.

Arrays are written one after another without headers; what they are stands in a document with a digest, as
columns. A reader knows how many bytes to expect before it reads any, and runs nothing that it reads.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field

from steppe.atomic import write_atomically
from steppe.errors import DamagedRunError, StorageError

TEMPORARY = ".partial"
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    """Nothing unknown, nothing converted, nothing infinite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, strict=True)


class Column(Strict):
    """Name, type and shape of an array; of one row of it where rows are stored."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,1000}$")]
    dtype: Annotated[str, Field(pattern=r"^[<>|][biuf][1248]$")]
    shape: list[Annotated[int, Field(ge=0, lt=2**40)]]

    @property
    def num_bytes(self) -> int:
        """Bytes it takes."""
        return math.prod(self.shape) * int(self.dtype[2])


def take_lock(directory: Path) -> contextlib.ExitStack:
    """Become the one writer of a directory, until what is returned is closed or the process ends.

    The system drops the lock when the process ends, however it ends. A lock that merely exists as a file
    would outlive a kill, so a file system without real ones is refused. Any thread may close it.
    """
    lock = FileLock(directory / "lock", blocking=False, thread_local=False, fallback_to_soft=False)
    held = contextlib.ExitStack()
    try:
        lock.acquire()
    except Timeout:
        raise StorageError(
            f"{directory} is being written by another process. Wait for it, or stop it."
        ) from None
    except OSError as error:
        raise StorageError(
            f"Could not lock {directory}: {error.strerror or error}. Choose a directory that can be written, "
            "on a file system with locks."
        ) from error
    held.callback(_release, lock)
    return held


def _release(lock: BaseFileLock) -> None:
    # Everything is written by now, and the end of the process drops what could not be dropped here.
    with contextlib.suppress(OSError):
        lock.release()


# ---- documents -------------------------------------------------------------------------------------


def write_bytes(path: Path, content: bytes) -> None:
    """Put a file in place atomically and durably."""
    with storing(path, len(content)):
        write_atomically(path, content, path.with_name(path.name + TEMPORARY))


@contextlib.contextmanager
def storing(path: Path, num_bytes: int) -> Any:
    """Say what could not be written, and that nothing is lost."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"Could not write {path.name} ({num_bytes} bytes needed): {error.strerror or error}. "
            "Everything committed before is intact; free space or permissions and resume."
        ) from error


def write_json(path: Path, content: Mapping[str, Any]) -> str:
    """Write a JSON document that carries the digest of itself, and return that."""
    seal = seal_json(content)
    write_bytes(path, _print({**content, "sha256": seal}))
    return seal


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document and check it against the digest it carries."""
    printed = read_bytes(path)
    try:
        content = json.loads(printed)
        is_as_written = _print(content) == printed
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedRunError(f"{path.name} cannot be read as JSON: {error}.") from error
    if not isinstance(content, dict) or "sha256" not in content:
        raise DamagedRunError(f"{path.name} is no document of a run: it carries no digest of itself.")
    seal = content.pop("sha256")
    # Not even a space may differ: who looks for damage wants to hear of every byte.
    if not is_as_written or seal_json(content) != seal:
        raise DamagedRunError(f"{path.name} does not match the digest it carries.")
    return content


def check_is_file(path: Path) -> None:
    """Refuse a pipe, at which a reader would wait for ever."""
    if path.is_fifo():
        raise DamagedRunError(f"{path.name} cannot be read: it is a pipe.")


def read_bytes(path: Path, first: int = 0, count: int = -1) -> bytes:
    """Read a file, or so many bytes of it from some byte on."""
    try:
        check_is_file(path)
        with path.open("rb") as file:
            file.seek(first)
            return file.read(count)
    except FileNotFoundError:
        raise DamagedRunError(f"{path.name} is missing.") from None
    except OSError as error:
        raise DamagedRunError(f"{path.name} cannot be read: {error.strerror or error}.") from error


def seal_json(content: Mapping[str, Any]) -> str:
    """Digest of a document."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _print(sealed: Mapping[str, Any]) -> bytes:
    return json.dumps(sealed, indent=1, sort_keys=True).encode() + b"\n"


# ---- arrays ----------------------------------------------------------------------------------------


def describe_columns(arrays: Mapping[str, np.ndarray], num_leading: int = 0) -> list[Column]:
    """Return what arrays are, without their leading axes."""
    return [
        Column(name=name, dtype=array.dtype.str, shape=list(array.shape[num_leading:]))
        for name, array in arrays.items()
    ]


def pack(arrays: Iterable[np.ndarray]) -> list[memoryview]:
    """Return the bytes of arrays, one after another; contiguous ones are not copied."""
    return [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays]


def digest(pieces: Iterable[bytes | memoryview]) -> str:
    """SHA-256 of pieces as if they were one."""
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total.hexdigest()


def unpack(
    content: bytes | memoryview, columns: Iterable[tuple[str, str, Sequence[int]]]
) -> dict[str, np.ndarray]:
    """Return the arrays that were packed, from name, type and shape; the number of bytes was checked."""
    arrays, first = {}, 0
    for name, dtype, shape in columns:
        size = math.prod(shape)
        flat = np.frombuffer(content, dtype, size, first) if size else np.empty(0, dtype)
        arrays[name] = flat.reshape(shape)
        first += flat.nbytes
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Write named arrays; return the record to read them back by."""
    pieces = pack(arrays.values())
    write_bytes(path, b"".join(pieces))
    columns = [column.model_dump() for column in describe_columns(arrays)]
    return {"file": path.name, "sha256": digest(pieces), "columns": columns}


def read_arrays(path: Path, record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Read arrays back after checking size and digest, so that nothing unexpected is allocated or run."""
    columns = [Column.model_validate(column) for column in record["columns"]]
    content = read_bytes(path)
    expected = sum(column.num_bytes for column in columns)
    if len(content) != expected:
        raise DamagedRunError(f"{path.name} has {len(content)} bytes instead of {expected}.")
    if digest([content]) != record["sha256"]:
        raise DamagedRunError(f"{path.name} does not match its recorded digest.")
    return unpack(content, [(column.name, column.dtype, column.shape) for column in columns])
