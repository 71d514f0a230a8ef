"""Rows of a commit as one file, in which a figure that is the same in every row is kept once.

A frozen step size and a count of defects that is zero fill half of the file otherwise, and what a commit
costs is proportional to the bytes it writes and digests.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steppe.errors import DamagedRunError
from steppe.run.files import read_arrays, write_arrays


def write_rows(path: Path, rows: Mapping[str, np.ndarray], first_row: int, num_rows: int) -> dict[str, Any]:
    """Write arrays with axes (chain, row, …); return the record of the file."""
    record = write_arrays(path, {name: _once_if_constant(array) for name, array in rows.items()})
    return {**record, "first_row": first_row, "num_rows": num_rows}


def read_rows(path: Path, record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Read them back as they were."""
    arrays, num_rows = read_arrays(path, record), record["num_rows"]
    return {name: _every_row(path, array, num_rows) for name, array in arrays.items()}


def _once_if_constant(array: np.ndarray) -> np.ndarray:
    # Equal bits, not equal numbers: 0 and -0, and one NaN and another, are told apart.
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    first, last = bits[:, :1], bits[:, -1:]
    is_constant = np.array_equal(first, last) and bool((bits == first).all())
    return array[:, :1] if is_constant else array


def _every_row(path: Path, array: np.ndarray, num_rows: int) -> np.ndarray:
    if array.ndim < 2 or array.shape[1] not in (0, 1, num_rows):
        raise DamagedRunError(f"{path.name} holds an array of shape {array.shape} for {num_rows} rows.")
    if array.shape[1] != 1:
        return array  # written in full, or not kept at all
    return np.broadcast_to(array, (array.shape[0], num_rows, *array.shape[2:]))
