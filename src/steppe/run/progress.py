"""Progress on standard error: a line that a terminal or a notebook renews, or one now and then in a log."""

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from steppe.compiling import is_switched_off
from steppe.run.stopping import KeptDraws, average_rows

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

    from steppe.run.engine import Chunk
    from steppe.run.plan import Plan

# Chunks of a small target end more often, and showing each would cost more than a percent.
LIVE_SECONDS, NOTEBOOK_SECONDS, LOG_SECONDS = 0.5, 2.0, 30.0
VARIABLE = "STEPPE_PROGRESS"
MAX_WIDTH = 80
# Rows of which effective draws are counted; of longer runs every second, fourth, … row is taken.
MAX_ROWS_COUNTED = 8192
CLEAR = "\r\x1b[2K"


class Reporter(Protocol):
    """Whoever wants to hear about chunks."""

    def __call__(self, chunk: "Chunk") -> None:
        """Take note of a finished chunk."""


class CountReporter(Protocol):
    """Whoever wants to hear how much of some work is done."""

    def __call__(self, done: float, note: str = "") -> None:
        """Take note of it, and of a few words about it."""


class Display(Protocol):
    """Where a line is shown; it is written anew after so many seconds, and closed at the end.

    Attributes
    ----------
    seconds
        Least time between two lines.
    patience
        Time before the first one.
    stays
        Whether what was shown last remains to be read, so that it must be the newest.
    """

    seconds: float
    patience: float
    stays: bool

    def show(self, line: str) -> None:
        """Show this line in place of the one before."""

    def close(self) -> None:
        """Leave things tidy."""


class TerminalLine:
    """The last line of a terminal, which is cleared at the end."""

    seconds, patience, stays = LIVE_SECONDS, 0.0, False

    def show(self, line: str) -> None:
        """Write over the line."""
        sys.stderr.write(CLEAR + line)
        sys.stderr.flush()

    def close(self) -> None:
        """Clear it."""
        self.show("")


class LogLines:
    """A line every half minute, where standard error is a file or a pipe."""

    seconds, patience, stays = LOG_SECONDS, LOG_SECONDS, False

    def show(self, line: str) -> None:
        """Write one more line."""
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave them there."""


class NotebookLine:
    """The output of a notebook's cell: text without widgets, so that the last line is saved with it."""

    seconds, patience, stays = LIVE_SECONDS, NOTEBOOK_SECONDS, True

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def show(self, line: str) -> None:
        """Renew the output, or make it."""
        from IPython.display import display

        if self._handle is None:
            self._handle = display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": line}, raw=True)

    def close(self) -> None:
        """Leave the last line there."""


@contextmanager
def progress_bar(
    plan: "Plan",
    shown: bool | None,
    read_means: Callable[[], Mapping[str, float]] = dict,
) -> Iterator[Reporter]:
    """Show how much is done, the time left, steps of all chains per second, acceptance and effective draws.

    Parameters
    ----------
    plan
        The run.
    shown
        `True`, `False`, or `None`: at once on a terminal, after 2 s in a notebook, after half a minute
        in a log, and never where `STEPPE_PROGRESS=off`.
    read_means
        Means of observables so far, by name.
    """
    clock = Clock(plan.num_rows)
    draws = KeptDraws(plan.num_warmup_rows, max_rows=MAX_ROWS_COUNTED)

    with _line(shown) as update:

        def report(chunk: "Chunk") -> None:
            draws.add(chunk.first_row, average_rows(chunk.rows.log_density))
            update(lambda: describe_chunk(plan, chunk, clock, draws, read_means()))

        yield report


@contextmanager
def count_bar(what: str, total: float, shown: bool | None) -> Iterator[CountReporter]:
    """Show how many of `total` pieces of work are done.

    Parameters
    ----------
    what
        What is being done.
    total
        How many there are.
    shown
        As for `progress_bar`.
    """
    clock = Clock(total)
    with _line(shown) as update:

        def report(done: float, note: str = "") -> None:
            update(lambda: join_parts([what, *clock.describe(done), note]))

        yield report


class Clock:
    """Time left of some work, from what was done since the first report: until then programs are compiled.

    Attributes
    ----------
    total
        How much work there is.
    """

    def __init__(self, total: float) -> None:
        self.total = total
        self._first: tuple[float, float] | None = None

    def describe(self, done: float) -> list[str]:
        """Percentage and, from the second report on, time left."""
        now, percentage = time.monotonic(), f"{100 * done / max(self.total, 1):.0f} %"
        if self._first is None:
            self._first = done, now
        first, begun = self._first
        if done <= first:
            return [percentage]
        return [percentage, f"{show_seconds((self.total - done) * (now - begun) / (done - first))} left"]


def describe_chunk(
    plan: "Plan", chunk: "Chunk", clock: Clock, draws: KeptDraws, means: Mapping[str, float]
) -> str:
    """Say in a line how far a run is."""
    done, num_warmup = chunk.first_row + chunk.num_rows, plan.num_warmup_rows
    is_warmup = done <= num_warmup
    phase = f"warm-up {done}/{num_warmup}" if is_warmup else f"draws {done - num_warmup}/{plan.num_draws}"
    speed = chunk.rows.log_density.shape[1] * chunk.num_rows * plan.thinning / max(chunk.seconds, 1e-9)
    effective = (draws.measure() if draws.has_grown else draws.newest)[0]
    return join_parts(
        [
            phase,
            *clock.describe(done),
            f"{show_number(speed)} steps/s",
            f"accept {chunk.rows.acceptance_rate.mean():.2f}",
            f"ESS {show_number(effective)}" if effective > 0 and math.isfinite(effective) else "",
            *(f"⟨{name}⟩ {mean:.4g}" for name, mean in means.items()),
        ]
    )


def join_parts(parts: Sequence[str]) -> str:
    """Join what fits a line of a terminal, the first parts first."""
    width = min(MAX_WIDTH, shutil.get_terminal_size().columns) - 1
    line = ""
    for part in filter(None, parts):
        longer = f"{line}  {part}" if line else part
        if len(longer) <= width:
            line = longer
    return line or next(filter(None, parts), "")[:width]


def show_number(value: float) -> str:
    """A number in three digits and a letter: 12.3k, 4.56M."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def show_seconds(seconds: float) -> str:
    """A time as 0:07, 12:30 or 1:02:03."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def _line(shown: bool | None) -> Iterator[Callable[[Callable[[], str]], None]]:
    """Give a function that shows a line, made only when it is time for one."""
    if shown is False or (shown is None and is_switched_off(VARIABLE)):
        yield lambda make: None
        return
    display = choose_display()
    # What stays to be read begins later: short runs leave no trace unless they are asked to.
    last = time.monotonic() - display.seconds + display.patience if shown is None else -math.inf
    newest: Callable[[], str] | None = None
    is_used = False

    def update(make: Callable[[], str]) -> None:
        nonlocal last, newest, is_used
        newest = make
        if time.monotonic() - last >= display.seconds:
            is_used, last, newest = True, time.monotonic(), None
            display.show(make())

    try:
        yield update
        if newest is not None and is_used and display.stays:
            display.show(newest())
    finally:
        if is_used:
            display.close()


def choose_display() -> Display:
    """Where progress is shown: in a notebook, on a terminal, or in a log."""
    if is_notebook():
        return NotebookLine()
    return TerminalLine() if sys.stderr.isatty() else LogLines()


def is_notebook() -> bool:
    """Whether this is the kernel of a notebook, which renews the output of its cells."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
