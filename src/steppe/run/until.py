"""`until`: when a search may stop before its steps or its time are used up."""

import dataclasses
import math

from steppe.arguments import checked
from steppe.errors import RunError
from steppe.validation import count, positive


@dataclasses.dataclass(frozen=True)
class Until:
    """When to stop: as soon as any of what is given has happened. Made by `steppe.until`.

    Attributes
    ----------
    value
        Log-density `U` that was reached.
    patience
        Steps of every chain that brought nothing better.
    cpu_seconds
        Processor time that was used, of all threads together.
    """

    value: float | None = None
    patience: int | None = None
    cpu_seconds: float | None = None

    def is_reached(self, best: float, num_idle_steps: int) -> bool:
        """Whether to stop, after the best log-density so far and the steps since it was found."""
        # Sums of many float32 terms are not exact; a millionth of the value is no difference.
        slack = 0.0 if self.value is None else 1e-6 * max(1.0, abs(self.value))
        has_value = self.value is not None and best >= self.value - slack
        has_waited = self.patience is not None and num_idle_steps >= self.patience
        return has_value or has_waited


@checked(RunError)
def until(
    *, value: float | None = None, patience: int | None = None, cpu_seconds: float | None = None
) -> Until:
    """Say when a search may stop: at the first of what is given.

    Parameters
    ----------
    value
        Stop once a state with log-density `U` of at least this was met.
    patience
        Stop after so many steps of every chain without a better state.
    cpu_seconds
        Stop after so much processor time, which on a busy machine says more than `time_limit`.

    Examples
    --------
    >>> import steppe
    >>> steppe.until(value=11624, patience=5000)
    Until(value=11624.0, patience=5000, cpu_seconds=None)
    """
    if value is None and patience is None and cpu_seconds is None:
        raise RunError("`until(...)` needs a `value`, a `patience` or `cpu_seconds`; none was given.")
    remedy = "Leave it out to search without this end."
    return Until(
        None if value is None else float(value),
        None if patience is None else count("until(patience=...)", patience, error=RunError, remedy=remedy),
        None
        if cpu_seconds is None
        else positive("until(cpu_seconds=...)", cpu_seconds, error=RunError, remedy=remedy),
    )


def first_limit(*limits: float | None) -> float:
    """Return the smallest of several limits, infinity if none is given."""
    return min((limit for limit in limits if limit is not None), default=math.inf)
