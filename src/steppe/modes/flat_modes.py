"""What was found: modes with their height, their flatness, and who found them."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steppe.presented import Presented

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steppe.results import Results


@dataclasses.dataclass(frozen=True)
class Mode:
    """A local maximum of the log-density and how flat it is.

    Attributes
    ----------
    position
        The state.
    levels
        The same as level indices.
    log_density
        `U`.
    roughness, max_drop, share_within
        Mean `|ΔU|` over all changes, largest loss of one change, fraction of changes within one nat. Exact.
    score
        What the ranking is by: `U − price × sum of |ΔU| per site`, or the local entropy.
    local_entropy, local_entropy_error
        `F(θ; η)` and its standard error: zero where summed exactly, NaN where the budget did not reach.
    basin_mass, basin_mass_error
        Fraction of the distribution that ascends to here: exact on small domains; else the fraction of plain
        chains that ended
        here, which is no equilibrium, with its standard error.
    num_visits
        Chains of any kind that ended in this mode or in one merged with it.
    found_by
        Kinds of chains that did.
    is_on_front
        Whether no other mode found is both higher and flatter.
    label
        `"flat"` or `"sharp"` where the modes found fall into two groups of roughness, else `"–"`.
    """

    position: np.ndarray
    levels: np.ndarray
    log_density: float
    roughness: float
    max_drop: float
    share_within: float
    score: float
    local_entropy: float
    local_entropy_error: float
    basin_mass: float
    basin_mass_error: float
    num_visits: int
    found_by: tuple[str, ...]
    is_on_front: bool
    label: str


@dataclasses.dataclass(frozen=True)
class FlatModes(Presented):
    """Modes, the best compromise of height and flatness first.

    Attributes
    ----------
    modes
        At most as many as were asked for.
    flatness
        What they are ranked by, `"gap"` or `"local_entropy"`.
    coupling_variance
        `η` of the local entropies.
    num_evaluations
        Evaluations made, at most the budget: starts, chains, local searches and measures.
    num_found
        Distinct modes before merging and cutting.
    """

    modes: tuple[Mode, ...]
    flatness: str
    coupling_variance: float
    num_evaluations: int
    num_found: int

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, rank: int) -> Mode:
        return self.modes[rank]

    @property
    def front(self) -> tuple[Mode, ...]:
        """Modes that no other is both higher and flatter than."""
        return tuple(mode for mode in self.modes if mode.is_on_front)

    def to_records(self) -> list[dict[str, object]]:
        """Return the table as plain values, ready for JSON or a data frame; NaN becomes `None`."""
        records = []
        for mode in self.modes:
            record = dataclasses.asdict(mode)
            del record["position"]
            record |= {"levels": mode.levels.tolist(), "found_by": list(mode.found_by)}
            records.append({name: None if value != value else value for name, value in record.items()})
        return records

    def present(self) -> "Results":
        """Return the ranking as results."""
        from steppe.report.present_modes import present_modes

        return present_modes(self)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw height against flatness, one dot per mode, and save it if a path is given."""
        from steppe.report.present_modes import draw_modes

        return draw_modes(self, path)
