"""When `sample` ends before its draws are made: a time, effective draws, agreement, a value, or patience.

The rule looks at the log-density after every chunk. It changes nothing of what the chains do: a run that
was stopped has the first draws of the run that would have gone on.
"""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from steppe.run.until import Until
from steppe.validation import call_back

if TYPE_CHECKING:
    from steppe.run.engine import Chunk
    from steppe.run.plan import Plan
    from steppe.run.result import Run

# Effective draws are counted again when there are so many times as many draws as when they last were.
GROWTH = 1.2
MIN_DRAWS = 20
ASKED = "it was asked to"


class Progress(NamedTuple):
    """What `sample(on_chunk=...)` is told after every chunk of rows.

    Attributes
    ----------
    num_rows, num_rows_planned
        Rows made of each chain and all that were asked for, warm-up included; a row is `thinning` steps.
    is_warmup
        Whether the newest row is one of warm-up.
    log_density, acceptance_rate
        Of the rows of this chunk, (row, chain); of an ensemble the mean of its replicas.
    steps_per_second
        Of all chains together, in this chunk.
    read_run
        Call it for the run so far: all rows in memory, or those that are committed on disk.
    """

    num_rows: int
    num_rows_planned: int
    is_warmup: bool
    log_density: np.ndarray
    acceptance_rate: np.ndarray
    steps_per_second: float
    read_run: Callable[[], "Run"]


OnChunk = Callable[[Progress], object]


class KeptDraws:
    """Log-densities of kept draws so far, (row, chain), of which effective draws and R-hat are taken.

    Attributes
    ----------
    newest
        Effective sample size and R-hat as they were last measured.
    """

    def __init__(
        self, num_warmup_rows: int, *, earlier: np.ndarray | None = None, max_rows: float = math.inf
    ) -> None:
        self.newest = 0.0, math.inf
        self._num_warmup_rows, self._max_rows, self._stride = num_warmup_rows, max_rows, 1
        self._parts = [] if earlier is None else [earlier]
        self._first, self._num_counted = 0, 0

    @property
    def num_rows(self) -> int:
        """Rows that are kept here."""
        return sum(map(len, self._parts))

    @property
    def has_grown(self) -> bool:
        """Whether it is time to measure again: more draws take longer to count."""
        return self.num_rows * self._stride >= max(MIN_DRAWS, GROWTH * self._num_counted)

    def add(self, first_row: int, values: np.ndarray) -> None:
        """Take rows, warm-up left out; beyond `max_rows` every second of all rows is dropped."""
        first = max(0, first_row - self._num_warmup_rows)
        first += -first % self._stride
        self._first = self._first if self._parts else first
        self._parts.append(values[first + self._num_warmup_rows - first_row :: self._stride].copy())
        while self.num_rows > self._max_rows:
            rows = np.concatenate(self._parts)
            skipped = self._first // self._stride % 2  # so that rows of later chunks follow evenly
            self._first += skipped * self._stride
            self._parts, self._stride = [rows[skipped::2]], 2 * self._stride

    def measure(self) -> tuple[float, float]:
        """Effective sample size and R-hat of the log-density over the kept draws so far."""
        from steppe.diagnostics.quantity import measure

        self._num_counted = self.num_rows * self._stride
        if self.num_rows >= MIN_DRAWS:
            found = measure("U", np.concatenate(self._parts).T)
            self.newest = found.ess, found.rhat
        return self.newest


class Stopping:
    """Follows a run chunk by chunk and says when it may end.

    Attributes
    ----------
    reason
        Why the run may end; empty until it may.
    failure
        What `on_chunk` raised; the run ends with it, once everything is kept.
    """

    def __init__(
        self,
        plan: "Plan",
        *,
        time_limit: float | None = None,
        until: Until | None = None,
        on_chunk: OnChunk | None = None,
        earlier: np.ndarray | None = None,
        read_run: Callable[[], "Run"] | None = None,
    ) -> None:
        self.reason = ""
        self.failure: Exception | None = None
        self._plan, self._until, self._on_chunk = plan, until or Until(), on_chunk
        self._time_limit, self._begun = time_limit, time.monotonic()
        self._cpu_begun = time.process_time()
        self._draws = KeptDraws(plan.num_warmup_rows, earlier=earlier)
        self._read_run = read_run
        self._best, self._num_idle_rows = -math.inf, 0

    def look(self, chunk: "Chunk") -> bool:
        """Take note of a chunk; whether the run may end."""
        values = average_rows(chunk.rows.log_density)
        if self._until.needs_draws:
            self._draws.add(chunk.first_row, values)
        self._note_best(values)
        self._tell(chunk, values)
        self.reason = self.reason or self._find_reason()
        return bool(self.reason) or self.failure is not None

    def _tell(self, chunk: "Chunk", values: np.ndarray) -> None:
        if self._on_chunk is None:
            return
        done = chunk.first_row + chunk.num_rows
        steps = chunk.num_rows * self._plan.thinning * values.shape[1]
        progress = Progress(
            done,
            self._plan.num_rows,
            done <= self._plan.num_warmup_rows,
            values,
            average_rows(chunk.rows.acceptance_rate),
            steps / max(chunk.seconds, 1e-9),
            self._read,
        )
        try:
            if call_back("sample(on_chunk=...)", self._on_chunk, progress) is True:
                self.reason = self.reason or ASKED
        except Exception as error:  # noqa: BLE001 - raised again once everything is kept
            self.failure = error

    def _read(self) -> "Run":
        assert self._read_run is not None
        return self._read_run()

    def _note_best(self, values: np.ndarray) -> None:
        best = float(np.max(values, initial=-math.inf, where=~np.isnan(values)))
        if best > self._best:
            self._best, self._num_idle_rows = best, 0
        else:
            self._num_idle_rows += len(values)

    def _find_reason(self) -> str:
        until = self._until
        if self._time_limit is not None and time.monotonic() - self._begun >= self._time_limit:
            return f"the time limit of {self._time_limit:g} s"
        if until.cpu_seconds is not None and time.process_time() - self._cpu_begun >= until.cpu_seconds:
            return f"{until.cpu_seconds:g} s of processor time"
        if until.is_reached(self._best, self._num_idle_rows * self._plan.thinning):
            idle = self._num_idle_rows * self._plan.thinning
            return f"log-density {self._best:.6g}, and {idle} steps without a better one"
        return self._judge_draws() if until.needs_draws else ""

    def _judge_draws(self) -> str:
        """Count effective draws and compare chains, now and then: more draws take longer to count."""
        if not self._draws.has_grown:
            return ""
        ess, rhat = self._draws.measure()
        has_ess = self._until.ess is None or ess >= self._until.ess
        has_rhat = self._until.rhat is None or rhat <= self._until.rhat
        return f"ESS of U {ess:.0f}, R-hat {rhat:.3f}" if has_ess and has_rhat else ""

    def describe_shortfall(self) -> str:
        """Say what was asked for and not reached; empty if nothing was, or all of it is."""
        if self.reason:
            return ""
        if not self._until.needs_draws:
            return self._until.describe_shortfall(self._best)
        ess, rhat = self._draws.measure()
        wanted = [
            *([] if self._until.ess is None else [f"ESS of U {ess:.0f} of {self._until.ess:g}"]),
            *([] if self._until.rhat is None else [f"R-hat {rhat:.3f}, at most {self._until.rhat:g} wanted"]),
        ]
        return f"All draws are made and `until` is not met: {', '.join(wanted)}. Allow more draws."


def average_rows(values: ArrayLike) -> np.ndarray:
    """Return a statistic with two axes, of rows and chains; of an ensemble the mean of its replicas."""
    known = np.asarray(values)
    return known.reshape(*known.shape[:2], -1).mean(axis=2)
