"""Rows on their way to disk: collected in memory that is used again, and written as one file per commit.

The first axis of every array counts rows, as chains make them, in memory and in files. A figure that is the
same in every row is kept once: a frozen step size and a count of defects that is zero would fill half of the
file, and what a commit costs is proportional to the bytes it writes and digests.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steppe.errors import DamagedRunError
from steppe.run.files import read_arrays, write_arrays

ROWS_COMPARED = 4096


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


def write_rows(
    path: Path,
    rows: Mapping[str, np.ndarray],
    first_row: int,
    num_rows: int,
    scratch: io.BytesIO | None = None,
) -> dict[str, Any]:
    """Write arrays with axes (row, chain, …); return the record of the file."""
    shortened = {name: _once_if_constant(array) for name, array in rows.items()}
    return {**write_arrays(path, shortened, scratch), "first_row": first_row, "num_rows": num_rows}


def read_rows(path: Path, record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Read them back as they were."""
    arrays, num_rows = read_arrays(path, record), record["num_rows"]
    return {name: _every_row(path, array, num_rows) for name, array in arrays.items()}


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
