"""What was found: modes with what they are worth before and after the disturbance, and who found them."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steppe.intervals import NORMAL_95
from steppe.modes.strength_curves import StrengthCurves
from steppe.presented import Presented

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steppe.results import Results


@dataclasses.dataclass(frozen=True)
class Mode:
    """A state that no change improves, before or after the disturbance.

    Attributes
    ----------
    position
        The state.
    levels
        The same as level indices.
    log_density
        `U`, before the disturbance.
    score
        The same in the units of the target, where it has a `score`; else NaN.
    value, value_error
        What is left of `U` after the disturbance, on fresh disturbances, and its standard error: 0 where it
        is exact, NaN where there is none.
    gain, gain_error
        `value` less that of the highest mode, on the same disturbances, and its standard error.
    broken_fraction
        Fraction of disturbances that broke the constraint.
    roughness, max_drop
        Mean `|ΔU|` over all single changes, and the largest loss by one. Exact.
    num_visits, found_by
        Searches that ended here, and the kinds of chains they began from; `enumerated` where they began from
        the highest of all states.
    is_best, is_robust
        Whether it is the highest mode, and the one worth most after the disturbance.
    is_on_front
        Whether no other mode is both higher and worth more after the disturbance.
    label
        `"flat"` or `"sharp"` where the modes shown fall into two groups of roughness, else `"–"`.
    """

    position: np.ndarray
    levels: np.ndarray
    log_density: float
    score: float
    value: float
    value_error: float
    gain: float
    gain_error: float
    broken_fraction: float
    roughness: float
    max_drop: float
    num_visits: int
    found_by: tuple[str, ...]
    is_best: bool
    is_robust: bool
    is_on_front: bool
    label: str


@dataclasses.dataclass(frozen=True)
class FlatModes(Presented):
    """Modes, the one that is worth most after the disturbance first.

    Attributes
    ----------
    modes
        At most as many as were asked for, and at least the highest and the most robust.
    disturbance, risk
        After what, and which number was made of it, in words.
    max_loss
        How many nats below the highest a mode may lie; infinite without a limit.
    is_degenerate
        Whether, over all modes judged, the value after the disturbance rises with `U` along one line: then no
        mode can be both lower and more robust.
    curves
        Values of `curve_modes` at several strengths of the disturbance.
    curve_modes
        Ranks, from 0, of the modes that the curves show.
    num_evaluations
        Evaluations made, at most the budget: starts, chains, local searches, judgement and curves.
    num_found
        Distinct modes before any was left out.

    Examples
    --------
    >>> import jax, steppe
    >>> target = steppe.targets.planted_mixture().target
    >>> modes = steppe.find_flat_modes(target, key=jax.random.key(0), budget=20_000)
    >>> modes.best.log_density >= modes.robust.log_density, modes.robust.value >= modes.best.value
    (True, True)
    >>> modes.num_evaluations <= 20_000
    True
    """

    modes: tuple[Mode, ...]
    disturbance: str
    risk: str
    max_loss: float
    is_degenerate: bool
    curves: StrengthCurves
    curve_modes: tuple[int, ...]
    num_evaluations: int
    num_found: int

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, rank: int) -> Mode:
        return self.modes[rank]

    @property
    def best(self) -> Mode:
        """The highest mode."""
        return next(mode for mode in self.modes if mode.is_best)

    @property
    def robust(self) -> Mode:
        """The mode that is worth most after the disturbance, within the loss."""
        return next(mode for mode in self.modes if mode.is_robust)

    @property
    def front(self) -> tuple[Mode, ...]:
        """Modes that no other is both higher and more robust than."""
        return tuple(mode for mode in self.modes if mode.is_on_front)

    def explain(self) -> str:
        """Say in one paragraph what the most robust mode gives up, what it gains, and after what."""
        best, robust = self.best, self.robust
        begin = f"After {self.disturbance}, the {self.risk} of the log-density"
        if robust is best:
            sentence = (
                f"The best mode is also the most robust. {begin} is {_show(best.value, best.value_error)} "
                f"there, and {best.log_density:.4g} before."
            )
        else:
            gives = f"gives up {best.log_density - robust.log_density:.3g} nats"
            if np.isfinite(best.score) and np.isfinite(robust.score):
                gives += f" (a score of {robust.score:.5g} instead of {best.score:.5g})"
            gains = _show(robust.gain, robust.gain_error)
            sentence = (
                f"The most robust mode {gives} and gains {gains} nats. {begin} is "
                f"{_show(robust.value, robust.value_error)} there and {_show(best.value, best.value_error)} "
                f"at the best mode; before, {robust.log_density:.4g} and {best.log_density:.4g}."
            )
            if np.isfinite(robust.gain_error) and robust.gain < NORMAL_95 * robust.gain_error:
                sentence += " That gain is within its error: take the best mode, or raise `budget`."
        if self.is_degenerate:
            sentence += (
                " Over all modes found the value after this disturbance is a rising function of the "
                "log-density, so that no lower mode can be more robust; another disturbance may tell them "
                "apart."
            )
        if max(best.broken_fraction, robust.broken_fraction) > 0:
            sentence += (
                f" Of the disturbances, {100 * best.broken_fraction:.0f} % break the constraint at the best "
                "mode"
                + (
                    ""
                    if robust is best
                    else f" and {100 * robust.broken_fraction:.0f} % at the most robust one"
                )
                + "; they do not count."
            )
        return sentence

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
        """Draw values against the strength of the disturbance, and the front; save it if a path is given."""
        from steppe.report.present_modes import draw_modes

        return draw_modes(self, path)


def _show(value: float, error: float) -> str:
    if not np.isfinite(error) or error == 0:
        return f"{value:.4g}"
    return f"{value:.4g} (95 % interval {value - NORMAL_95 * error:.4g} to {value + NORMAL_95 * error:.4g})"
