"""Risk measures: one number from the values of a state after many disturbances.

Values are log-densities, larger is better, so the bad tail is the lower one.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.errors import TargetError
from steppe.validation import refuse

# Cumulative weights are sums of floats; this fraction of a level is forgiven.
ROUNDING = 1e-5
RULE = "'mean', 'worst', or 'quantile:LEVEL' or 'cvar:LEVEL' with a level in (0, 1)"


class Risk(NamedTuple):
    """Which number: `"mean"`, `"quantile"`, `"cvar"` or `"worst"`, and the level of the middle two."""

    kind: str
    level: float = 1.0

    @property
    def words(self) -> str:
        """The risk measure as the beginning of a phrase."""
        return {
            "mean": "mean",
            "quantile": f"{100 * self.level:g} % quantile",
            "cvar": f"mean of the worst {100 * self.level:g} %",
            "worst": "worst",
        }[self.kind]

    def summarize(self, values: Array, weights: Array) -> Array:
        """Risk over the first axis; entries of weight 0 do not count, and without any it is `−inf`."""
        weights = jnp.broadcast_to(weights, values.shape)
        total = jnp.sum(weights, axis=0)
        share = weights / jnp.where(total > 0, total, 1)
        if self.kind == "mean":
            found = jnp.sum(jnp.where(share > 0, share * values, 0), axis=0)
        elif self.kind == "worst":
            found = jnp.min(jnp.where(share > 0, values, jnp.inf), axis=0)
        else:
            order = jnp.argsort(jnp.where(share > 0, values, jnp.inf), axis=0)
            values, share = (jnp.take_along_axis(array, order, axis=0) for array in (values, share))
            found = self._read_tail(values, share)
        return jnp.where(total > 0, found, -jnp.inf)

    def _read_tail(self, values: Array, share: Array) -> Array:
        """`quantile`: where the cumulative weight reaches the level; `cvar`: mean of what lies before."""
        reached = jnp.cumsum(share, axis=0)
        if self.kind == "quantile":
            place = jnp.argmax(reached >= self.level * (1 - ROUNDING), axis=0)
            return jnp.take_along_axis(values, place[None], axis=0)[0]
        taken = jnp.clip(self.level - (reached - share), 0, share)
        return jnp.sum(jnp.where(taken > 0, taken * values, 0), axis=0) / jnp.sum(taken, axis=0)

    def find_error(self, values: np.ndarray) -> float:
        """Standard error of the risk over independent values of equal weight; NaN where there is none."""
        size = len(values)
        if size < 2 or self.kind == "worst" or not np.isfinite(values).all():
            return float("nan")
        if self.kind == "mean":
            return float(values.std(ddof=1) / size**0.5)
        ordered = np.sort(values)
        if self.kind == "cvar":
            threshold = ordered[min(int(np.ceil(self.level * size)), size) - 1]
            shortfalls = np.minimum(values - threshold, 0) / self.level
            return float(shortfalls.std(ddof=1) / size**0.5)
        spread = (size * self.level * (1 - self.level)) ** 0.5
        low, high = (int(np.clip(self.level * size + s * spread, 0, size - 1)) for s in (-1, 1))
        return float((ordered[high] - ordered[low]) / 2)

    @classmethod
    def read(cls, given: str, text: object) -> "Risk":
        """Read `"mean"`, `"worst"`, `"quantile:0.05"` or `"cvar:0.1"`."""
        if text in ("mean", "worst"):
            return cls(str(text))
        kind, colon, level = str(text).partition(":")
        try:
            number = float(level)
        except ValueError:
            number = float("nan")
        if not isinstance(text, str) or kind not in ("quantile", "cvar") or not colon or not 0 < number < 1:
            raise refuse(given, RULE, text, TargetError)
        return cls(kind, number)
