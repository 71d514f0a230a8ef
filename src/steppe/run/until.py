"""`until`: when sampling or a search may stop before its steps or its time are used up."""

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
    ess, rhat
        Effective sample size of the log-density reached, and its R-hat not above this: both, where both are
        given. For `sample` only.

    Examples
    --------
    >>> import steppe
    >>> rule = steppe.until(ess=400, rhat=1.01)
    >>> rule.ess, rule.rhat, rule.patience
    (400.0, 1.01, None)
    """

    value: float | None = None
    patience: int | None = None
    cpu_seconds: float | None = None
    ess: float | None = None
    rhat: float | None = None

    @property
    def needs_draws(self) -> bool:
        """Whether kept draws decide."""
        return self.ess is not None or self.rhat is not None

    def is_reached(self, best: float, num_idle_steps: int) -> bool:
        """Whether to stop, after the best log-density so far and the steps since it was found."""
        has_value = self.value is not None and not self.describe_shortfall(best)
        has_waited = self.patience is not None and num_idle_steps >= self.patience
        return has_value or has_waited

    def describe_shortfall(self, best: float) -> str:
        """Say which value a search did not reach; empty if it did, or if none was asked for."""
        # Sums of many float32 terms are not exact; a millionth of the value is no difference.
        if self.value is None or best >= self.value - 1e-6 * max(1.0, abs(self.value)):
            return ""
        return f"The best U is {best:.6g}; {self.value:.6g} was asked for. Allow more steps, or ask for less."


@checked(RunError)
def until(
    *,
    value: float | None = None,
    patience: int | None = None,
    cpu_seconds: float | None = None,
    ess: float | None = None,
    rhat: float | None = None,
) -> Until:
    """Say when `sample` or a search may stop: at the first of what is given.

    Parameters
    ----------
    value
        Stop once a state with log-density `U` of at least this was met.
    patience
        Stop after so many steps of every chain without a better state.
    cpu_seconds
        Stop after so much processor time, which on a busy machine says more than `time_limit`.
    ess, rhat
        Stop `sample` once the effective sample size of the log-density, over all chains, is at least `ess`
        and its R-hat at most `rhat`; of two that are given, both must hold.

    Examples
    --------
    >>> import steppe
    >>> steppe.until(value=11624, patience=5000)
    Until(value=11624.0, patience=5000, cpu_seconds=None, ess=None, rhat=None)
    """
    if all(given is None for given in (value, patience, cpu_seconds, ess, rhat)):
        raise RunError(
            "`until(...)` needs one of `value`, `patience`, `cpu_seconds`, `ess` and `rhat`; none was given."
        )
    if rhat is not None and not rhat > 1:
        raise RunError(f"`until(rhat=...)` must be above 1, as no R-hat is below; got {rhat:g}. Try 1.01.")
    remedy = "Leave it out to search without this end."
    return Until(
        None if value is None else float(value),
        None if patience is None else count("until(patience=...)", patience, error=RunError, remedy=remedy),
        None
        if cpu_seconds is None
        else positive("until(cpu_seconds=...)", cpu_seconds, error=RunError, remedy=remedy),
        None if ess is None else positive("until(ess=...)", ess, error=RunError, remedy=remedy),
        rhat,
    )


def first_limit(*limits: float | None) -> float:
    """Return the smallest of several limits, infinity if none is given."""
    return min((limit for limit in limits if limit is not None), default=math.inf)
