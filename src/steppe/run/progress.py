"""A progress bar on standard error, for people; silent when nobody watches."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from steppe.run.engine import Chunk
    from steppe.run.plan import Plan

# Per second. Chunks of a small target end more often, and drawing each would cost more than a percent.
REFRESHES = 2


class Reporter(Protocol):
    """Whoever wants to hear about chunks."""

    def __call__(self, chunk: "Chunk") -> None:
        """Take note of a finished chunk."""


class CountReporter(Protocol):
    """Whoever wants to hear how much of some work is done."""

    def __call__(self, done: float, note: str = "") -> None:
        """Take note of it, and of a few words about it."""


@contextmanager
def progress_bar(
    plan: "Plan",
    first_row: int,
    shown: bool | None,
    read_means: Callable[[], Mapping[str, float]] = dict,
) -> Iterator[Reporter]:
    """Show rows done, speed, time left, acceptance, flips and log-density of the newest rows.

    Parameters
    ----------
    plan
        The run.
    first_row
        Where it begins or continues.
    shown
        `True`, `False`, or `None` for "when standard error is a terminal".
    read_means
        Means of observables so far, by name.
    """
    if not _is_wanted(shown):
        yield lambda chunk: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, refresh_per_second=REFRESHES) as bar:
        task = bar.add_task("warm-up", total=plan.num_rows, completed=first_row, figures="")

        last_shown = -math.inf

        def report(chunk: "Chunk") -> None:
            nonlocal last_shown
            if time.monotonic() - last_shown < 1 / REFRESHES:
                return
            last_shown = time.monotonic()
            done = chunk.first_row + chunk.num_rows
            phase = "warm-up" if done <= plan.num_warmup_rows else "draws"
            bar.update(task, completed=done, description=phase, figures=_figures(plan, chunk, read_means()))

        yield report


def _figures(plan: "Plan", chunk: "Chunk", means: Mapping[str, float]) -> str:
    rows = chunk.rows
    speed = chunk.num_rows * plan.thinning / max(chunk.seconds, 1e-9)
    newest = rows.log_density[-1]
    values = newest.max(axis=-1) if newest.ndim == 2 else newest  # an ensemble shows its best copy
    shown = " ".join(f"{value:.1f}" for value in values[:4]) + (" …" if len(values) > 4 else "")
    followed = "".join(f" · ⟨{name}⟩ {mean:.4g}" for name, mean in means.items())
    return (
        f"{speed:.3g} steps/s · accept {rows.acceptance_rate.mean():.2f} · "
        f"flips {rows.num_flips.mean() / plan.thinning:.2f} · U {shown}{followed}"
    )


@contextmanager
def count_bar(what: str, total: float, shown: bool | None) -> Iterator["CountReporter"]:
    """Show how many of `total` pieces of work are done.

    Parameters
    ----------
    what
        What is being done.
    total
        How many there are.
    shown
        `True`, `False`, or `None` for "when standard error is a terminal".
    """
    if not _is_wanted(shown):
        yield lambda done, note="": None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, refresh_per_second=REFRESHES) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, note="": bar.update(task, completed=done, description=f"{what} {note}".strip())


def _is_wanted(shown: bool | None) -> bool:
    return sys.stderr.isatty() if shown is None else shown
