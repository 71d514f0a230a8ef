"""Rows that wait for a commit, in memory that is used again."""

from collections.abc import Mapping

import numpy as np


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
