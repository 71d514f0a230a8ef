"""What a run leaves behind: arrays by chain and draw, and the ArviZ tree they become."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steppe.domain import Domain

if TYPE_CHECKING:
    from xarray import DataTree

STATISTICS = (
    "log_density",
    "acceptance_rate",
    "is_accepted",
    "num_flips",
    "num_nonfinite",
    "step_size",
    "center_distance",
    "coupling_variance",
)


class Trace(NamedTuple):
    """Rows of a run with axes (chain, row, …), warm-up first.

    Attributes
    ----------
    arrays
        `levels` (packed bits on two-level domains), `center` where kept, and the statistics, by name.
    num_warmup_rows
        How many of the rows are warm-up.
    domain
        Where positions live.
    """

    arrays: Mapping[str, np.ndarray]
    num_warmup_rows: int
    domain: Domain

    @property
    def num_rows(self) -> int:
        """Rows in hand, warm-up included."""
        return self.arrays["log_density"].shape[1]

    def levels(self, *, warmup: bool = False) -> np.ndarray:
        """Levels of kept draws as small integers, (chain, draw, [replica,] site)."""
        packed = self._part("levels", warmup)
        if not self.domain.is_two_level:
            return packed
        return np.unpackbits(packed, axis=-1, count=self.domain.num_sites)

    def statistic(self, name: str, *, warmup: bool = False) -> np.ndarray:
        """One statistic, (chain, draw)."""
        return self._part(name, warmup)

    def has(self, name: str) -> bool:
        """Whether an array was kept."""
        return name in self.arrays

    def _part(self, name: str, warmup: bool) -> np.ndarray:
        rows = self.arrays[name]
        return rows[:, : self.num_warmup_rows] if warmup else rows[:, self.num_warmup_rows :]

    def to_datatree(self, attributes: Mapping[str, Any]) -> "DataTree":
        """Return the run as an xarray `DataTree` in ArviZ schema."""
        from xarray import DataTree

        groups = {}
        for prefix, warmup in (("", False), ("warmup_", True)):
            if self.has("levels"):
                groups[f"{prefix}posterior"] = self._posterior(warmup)
            groups[f"{prefix}sample_stats"] = self._statistics(warmup)
        tree = DataTree.from_dict(groups)
        tree.attrs.update(attributes)
        return tree

    def _posterior(self, warmup: bool) -> Any:
        from xarray import Dataset

        levels = self.levels(warmup=warmup)
        replica = ("replica",) if levels.ndim == 4 else ()
        variables: dict[str, Any] = {"position": (("chain", "draw", *replica, "site"), levels)}
        if self.has("center"):
            center = self._part("center", warmup)
            variables["center"] = (("chain", "draw", "site", "level")[: center.ndim], center)
        return Dataset(variables, coords=self._coordinates(levels))

    def _statistics(self, warmup: bool) -> Any:
        from xarray import Dataset

        variables = {}
        for name in STATISTICS:
            if self.has(name):
                values = self._part(name, warmup)
                variables[name] = (("chain", "draw", "replica")[: values.ndim], values)
        first = variables["log_density"][1]
        return Dataset(variables, coords=self._coordinates(first))

    @staticmethod
    def _coordinates(values: np.ndarray) -> dict[str, np.ndarray]:
        return {"chain": np.arange(values.shape[0]), "draw": np.arange(values.shape[1])}


def by_row(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays of a trace in the layout of chunks and segments, (row, chain, …)."""
    return {name: np.moveaxis(array, 1, 0) for name, array in arrays.items()}


def join(parts: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Concatenate chunks or segments, (row, chain, …), into arrays with axes (chain, row, …)."""
    parts = list(parts)
    return {
        name: np.concatenate([np.moveaxis(part[name], 0, 1) for part in parts], axis=1) for name in parts[0]
    }
