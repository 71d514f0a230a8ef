"""What a run leaves behind: arrays by chain and draw, and the ArviZ tree they become."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steppe.domain import Domain, Product, Variable
from steppe.domain.base import RESERVED

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

STATISTICS = (
    "log_density",
    "acceptance_rate",
    "is_accepted",
    "num_flips",
    "num_nonfinite",
    "step_size",
    "center_distance",
    "coupling_variance",
    "rung_log_density",
    "swap_rate",
    "replica_rung",
    "round_trips",
    "real_acceptance_rate",
    "real_step_size",
)
# Under which the metadata of a run keep why its recipe was chosen.
REASON = "reason"
# What the last axis of a statistic is, where it has one beside chain and draw.
LAST_AXES = {"rung_log_density": "rung", "swap_rate": "pair", "replica_rung": "tempered_replica"}


class Trace(NamedTuple):
    """Rows of a run with axes (chain, row, …), warm-up first.

    Attributes
    ----------
    arrays
        `levels` (packed bits on two-level domains), `center` and `reals` where kept, and the statistics, by
        name.
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

    def real_values(self, *, warmup: bool = False) -> list[tuple[Variable, np.ndarray]]:
        """Real parts of kept draws, (chain, draw, …) each; none without any."""
        if not self.has("reals") or not isinstance(self.domain, Product):
            return []
        values = self.domain.unflatten_reals(self._part("reals", warmup))
        return [(variable, values[variable.name]) for variable in self.domain.real_variables]

    def has(self, name: str) -> bool:
        """Whether an array was kept."""
        return name in self.arrays

    def _part(self, name: str, warmup: bool) -> np.ndarray:
        rows = self.arrays[name]
        return rows[:, : self.num_warmup_rows] if warmup else rows[:, self.num_warmup_rows :]

    def to_datatree(
        self, attributes: Mapping[str, Any], observables: Mapping[str, "Dataset"] | None = None
    ) -> "DataTree":
        """Return the run as an xarray `DataTree` in ArviZ schema, with a group for every observable."""
        from xarray import Dataset, DataTree

        groups: dict[str, Dataset] = {}
        for prefix, warmup in (("", False), ("warmup_", True)):
            if self.has("levels"):
                groups[f"{prefix}posterior"] = self._posterior(warmup)
            groups[f"{prefix}sample_stats"] = self._statistics(warmup)
        groups |= {f"observables/{name}": dataset for name, dataset in (observables or {}).items()}
        tree = DataTree.from_dict(groups)
        tree.attrs.update(attributes)
        return tree

    def _posterior(self, warmup: bool) -> "Dataset":
        from xarray import Dataset

        levels = self.levels(warmup=warmup)
        lead = ("chain", "draw", "replica")[: levels.ndim - 1]
        variables, coordinates = {}, self._coordinates(levels)
        for variable, values in zip(self.domain.variables, self.domain.values(levels).values(), strict=True):
            name = f"{variable.name}_" if variable.name in RESERVED else variable.name
            axes = name_axes(self.domain, variable)
            variables[name] = ((*lead, *axes), values, self._attributes(variable))
            for axis, (axis_name, size) in enumerate(zip(axes, variable.shape, strict=True)):
                is_labelled = variable.labels is not None and axis == len(variable.shape) - 1 == 0
                coordinates[axis_name] = np.asarray(variable.labels) if is_labelled else np.arange(size)
        for variable, values in self.real_values(warmup=warmup):
            axes = name_axes(self.domain, variable)
            variables[variable.name] = ((*lead, *axes), values)
            coordinates |= {axis: np.arange(n) for axis, n in zip(axes, variable.shape, strict=True)}
        if self.has("center"):
            center = self._part("center", warmup)
            variables["center"] = (("chain", "draw", "site", "level")[: center.ndim], center)
            coordinates.setdefault("site", np.asarray(self.domain.site_names))
        return Dataset(variables, coords=coordinates)

    def _attributes(self, variable: Variable) -> dict[str, list[float]]:
        """Values by level, from which levels come back; none where values are levels."""
        table = self.domain.value_table_of(variable)
        return {} if table is None else {"levels": table.tolist()}

    def _statistics(self, warmup: bool) -> "Dataset":
        from xarray import Dataset

        variables = {}
        for name in STATISTICS:
            if self.has(name):
                values = self._part(name, warmup)
                axes = ("chain", "draw", LAST_AXES.get(name, "replica"))
                variables[name] = (axes[: values.ndim], values)
        first = variables["log_density"][1]
        return Dataset(variables, coords=self._coordinates(first))

    @staticmethod
    def _coordinates(values: np.ndarray) -> dict[str, np.ndarray]:
        return {"chain": np.arange(values.shape[0]), "draw": np.arange(values.shape[1])}


def name_axes(domain: Domain, variable: Variable) -> list[str]:
    """Return the names of the axes of a variable: sites of a domain without names, else as ArviZ does."""
    if not domain.has_names and len(variable.shape) == 1:
        return ["site"]
    return [f"{variable.name}_dim_{axis}" for axis in range(len(variable.shape))]


def by_row(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays of a trace in the layout of chunks and segments, (row, chain, …)."""
    return {name: np.moveaxis(array, 1, 0) for name, array in arrays.items()}


def join(parts: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Concatenate chunks or segments, (row, chain, …), into arrays with axes (chain, row, …)."""
    parts = list(parts)
    return {
        name: np.concatenate([np.moveaxis(part[name], 0, 1) for part in parts], axis=1) for name in parts[0]
    }
