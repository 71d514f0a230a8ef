"""Segments: the rows of one commit as one file.

The first axis of every array counts rows, as chains make them, in memory and in files. A figure that is the
same in every row is kept once: a frozen step size and a count of defects that is zero would fill half of the
file, and what a commit costs is proportional to the bytes it writes and digests.
"""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from steppe.errors import DamagedRunError
from steppe.run.storage.durable import read_arrays, write_arrays
from steppe.run.storage.record import SegmentRecord, dump

ROWS_COMPARED = 4096


def write_rows(
    path: Path,
    rows: Mapping[str, np.ndarray],
    first_row: int,
    num_rows: int,
    scratch: io.BytesIO | None = None,
) -> SegmentRecord:
    """Write arrays with axes (row, chain, …); return the record of the file."""
    shortened = {name: _once_if_constant(array) for name, array in rows.items()}
    written = write_arrays(path, shortened, scratch)
    return SegmentRecord(**written, first_row=first_row, num_rows=num_rows)


def read_rows(path: Path, record: SegmentRecord) -> dict[str, np.ndarray]:
    """Read them back as they were."""
    arrays = read_arrays(path, dump(record))
    return {name: _every_row(path, array, record.num_rows) for name, array in arrays.items()}


def _once_if_constant(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array)
    # Equal bits, not equal numbers: 0 and -0, and one NaN and another, are told apart. What is not constant
    # mostly shows it among its first rows.
    bits = array.view(f"u{array.itemsize}")
    pieces = (bits[first : first + ROWS_COMPARED] for first in range(0, len(bits), ROWS_COMPARED))
    return array[:1] if all((piece == bits[:1]).all() for piece in pieces) else array


def _every_row(path: Path, array: np.ndarray, num_rows: int) -> np.ndarray:
    if array.ndim < 2 or len(array) not in (0, 1, num_rows):
        raise DamagedRunError(f"{path.name} holds an array of shape {array.shape} for {num_rows} rows.")
    is_kept_once = len(array) == 1
    return np.broadcast_to(array, (num_rows, *array.shape[1:])) if is_kept_once else array
