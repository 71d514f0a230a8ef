"""Durable files of a run: JSON and arrays that carry digests, and the lock of the one writer."""

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout

from steppe.atomic import write_atomically
from steppe.errors import DamagedRunError, StorageError

TEMPORARY = ".partial"


def take_lock(directory: Path) -> contextlib.ExitStack:
    """Become the one writer of a directory, until what is returned is closed or the process ends.

    The system drops the lock when the process ends, however it ends. A lock that merely exists as a file
    would outlive a kill, so a file system without real ones is refused. Any thread may close it.
    """
    lock = FileLock(directory / "lock", blocking=False, thread_local=False, fallback_to_soft=False)
    held = contextlib.ExitStack()
    try:
        held.enter_context(lock)
    except Timeout:
        raise StorageError(
            f"{directory} is being written by another process. Wait for it, or stop it."
        ) from None
    except OSError as error:
        raise StorageError(
            f"Could not lock {directory}: {error.strerror or error}. Choose a directory that can be written, "
            "on a file system with locks."
        ) from error
    return held


def write_bytes(path: Path, content: bytes | memoryview) -> dict[str, Any]:
    """Put a file in place atomically and durably; return its size and digest."""
    try:
        write_atomically(path, content, path.with_name(path.name + TEMPORARY))
    except OSError as error:
        raise StorageError(
            f"Could not write {path.name} ({len(content)} bytes needed): {error.strerror or error}. "
            "Everything committed before is intact; free space or permissions and resume."
        ) from error
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_json(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Write a JSON document that carries the digest of itself."""
    sealed = {**content, "sha256": hashlib.sha256(_canonical(content)).hexdigest()}
    return write_bytes(path, _print(sealed))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document and check it against the digest it carries."""
    try:
        printed = path.read_bytes()
        content = json.loads(printed)
        is_as_written = _print(content) == printed
        seal = content.pop("sha256")
    except FileNotFoundError:
        raise DamagedRunError(f"{path.name} is missing.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedRunError(f"{path.name} cannot be read as JSON: {error}.") from error
    # Not even a space may differ: who looks for damage wants to hear of every byte.
    if not is_as_written or hashlib.sha256(_canonical(content)).hexdigest() != seal:
        raise DamagedRunError(f"{path.name} does not match the digest it carries.")
    return content


def write_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], scratch: io.BytesIO | None = None
) -> dict[str, Any]:
    """Write named arrays as an uncompressed npz file.

    Parameters
    ----------
    path
        Where.
    arrays
        What, by name.
    scratch
        Memory to put the file together in. Touching fresh memory costs as much as digesting it, so that
        whoever writes again and again keeps some.
    """
    buffer = io.BytesIO() if scratch is None else scratch
    buffer.seek(0)
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                _write_array(entry, np.asarray(array, order="C"))
    with buffer.getbuffer() as whole, whole[: buffer.tell()] as content:
        return write_bytes(path, content)


def _write_array(entry: IO[bytes], array: np.ndarray) -> None:
    # `np.save` would copy a large array twice on its way into a file that is not on disk.
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(entry, header)
    if array.size:
        entry.write(array.reshape(-1).view(np.uint8).data)


def read_arrays(path: Path, record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Read arrays back after checking size and digest, so that nothing unexpected is allocated or run."""
    content = check_bytes(path, record)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            stored = [entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist()]
            declared = sum(entry.file_size for entry in archive.infolist())
        if not all(stored) or declared > len(content):
            raise DamagedRunError(f"{path.name} declares more data than it holds.")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError) as error:
        raise DamagedRunError(f"{path.name} cannot be read as arrays: {error}.") from error


def check_bytes(path: Path, record: Mapping[str, Any]) -> bytes:
    """Return the content of a file that has the recorded size and digest."""
    try:
        size = path.stat().st_size
        if size != record["bytes"]:
            raise DamagedRunError(f"{path.name} has {size} bytes instead of {record['bytes']}.")
        content = path.read_bytes()
    except FileNotFoundError:
        raise DamagedRunError(f"{path.name} is missing.") from None
    except DamagedRunError:
        raise
    except OSError as error:
        raise DamagedRunError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise DamagedRunError(f"{path.name} does not match its recorded digest.")
    return content


def _print(sealed: Mapping[str, Any]) -> bytes:
    return json.dumps(sealed, indent=1, sort_keys=True).encode() + b"\n"


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
