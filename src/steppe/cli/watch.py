"""`steppe watch`: a run that another process is making, seen from the terminal."""

import math
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from steppe.diagnostics.quantity import measure
from steppe.diagnostics.sites import MIN_DRAWS, RHAT_LIMIT, judge_sites
from steppe.errors import RunError, StorageError
from steppe.report.terminal import printable
from steppe.run.storage.glance import Glance, glance
from steppe.run.storage.shards import find_run
from steppe.trace import Trace

MAX_CHAINS_SHOWN = 12
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 40
SHORTEST_WAIT = 0.1
# Judging sites looks at every kept bit; of a longer window only the newest draws are judged.
MAX_LEVELS_JUDGED = 20_000_000
# Values of U that a look judges, the newest of all chains together: a look takes a fraction of a second.
MAX_VALUES_JUDGED = 200_000


Flag = Annotated[bool, Parameter(negative="")]


def watch(
    directory: Path, *, every: float = 2.0, once: Flag = False, page: Flag = False, port: int = 0
) -> None:
    """Show how a run goes on while another process makes it; ends with the run, or on Ctrl-C.

    Example: `steppe watch runs/a --page`

    Parameters
    ----------
    directory
        Run directory; it is read only, and the process that writes it does not notice.
    every
        Seconds between looks.
    once
        Look once and leave.
    page
        Serve the report of the run as it grows as well, with a button that stops the run and keeps
        everything; to this computer alone, at the address that is printed, until Ctrl-C.
    port
        Port of the page; one that is free by default.
    """
    if not (math.isfinite(every) and every >= SHORTEST_WAIT):
        raise RunError(f"`--every` must be at least {SHORTEST_WAIT:g} seconds; got {every:g}.")
    if not 0 <= port < 2**16:
        raise RunError(f"`--port` must be between 0 and 65535; got {port}.")
    seen = glance(directory)
    console = Console()
    for problem in (problem for part in find_run(directory) for problem in part.problems("quick")):
        console.print(Text(f"damaged: {printable(problem)}", style="red"), soft_wrap=True)
    if page and not once:
        _serve_page(directory, every, port, console)
        return
    if once or seen.is_complete:
        console.print(render_look(seen))
        return
    _show(directory, every, seen, console)


def _serve_page(directory: Path, every: float, port: int, console: Console) -> None:
    from steppe.cli.watch_page import PageServer, serve

    server = PageServer(directory, port=port, every=every)
    end = serve(server)
    try:
        console.print(Text(server.address), soft_wrap=True)
        _show(directory, every, glance(directory), console)
        console.print("The page is served until Ctrl-C.")
        while True:
            time.sleep(every)
    finally:
        end()


def _show(directory: Path, every: float, seen: Glance, console: Console) -> None:
    with Live(render_look(seen), console=console, auto_refresh=False) as live:
        while not seen.is_complete:
            time.sleep(every)
            seen = _look_again(directory, seen)
            live.update(render_look(seen), refresh=True)


def _look_again(directory: Path, before: Glance) -> Glance:
    """The next look; while files change under it, a look may fail and the one before stands."""
    try:
        return glance(directory)
    except (StorageError, OSError):
        if not directory.is_dir():
            raise
        return before


def render_look(seen: Glance) -> RenderableType:
    """What is shown of a look."""
    title = Text(printable(seen.record.title), style="bold")
    title.append(f"   {seen.record.num_chains} chains", style="not bold dim")
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column()
    facts.add_row("", ProgressBar(total=max(seen.num_rows_planned, 1), completed=seen.num_rows, width=50))
    for label, value in _list_facts(seen):
        facts.add_row(label, value)
    parts: list[RenderableType] = [title, facts]
    if seen.recent and _count_rows(seen):
        parts.append(_tabulate_chains(seen))
    return Group(*parts)


def _list_facts(seen: Glance) -> Iterator[tuple[str, str | Text]]:
    thinning = seen.record.thinning
    phase = "warm-up" if seen.num_rows < seen.num_warmup_rows else "draws"
    done, planned = seen.num_rows * thinning, seen.num_rows_planned * thinning
    first = "first asked for " if done > planned else ""
    yield "committed", f"{done:,} of {first}{planned:,} steps per chain ({phase})"
    if not seen.num_rows:
        yield "state", "nothing is committed yet"
        return
    if not seen.recent and seen.record.keep != "none":
        yield "rows", Text("the newest do not match their digest: see `steppe verify`", style="red")
    yield "speed", f"{seen.recent_speed * thinning * seen.record.num_chains:,.0f} steps/s, all chains"
    if seen.is_complete:
        yield "state", Text("complete", style="green")
    else:
        yield "time left", _write_time_left(seen)
        yield "last commit", f"{seen.seconds_since_commit:.0f} s ago"
    if _count_rows(seen):
        yield "acceptance", f"{_read_recent(seen, 'acceptance_rate').mean():.3f}"
        yield from _judge_log_density(seen)
        yield from _judge_sites(seen)


def _write_time_left(seen: Glance) -> str:
    if seen.recent_speed <= 0:
        return "unknown"
    seconds = (seen.num_rows_planned - seen.num_rows) / seen.recent_speed
    return str(timedelta(seconds=round(seconds))) if seconds < 1e9 else "more than 30 years"


def _judge_log_density(seen: Glance) -> Iterator[tuple[str, str | Text]]:
    """R-hat and effective draws of U so far, as far back as the window goes."""
    warmup = max(0, seen.num_warmup_rows - seen.first_recent_row)
    values = _read_recent(seen, "log_density")
    first = max(warmup, values.shape[1] - MAX_VALUES_JUDGED // len(values))
    draws = values[:, first:]
    if draws.shape[1] < MIN_DRAWS:
        return
    found = measure("U", draws)
    if math.isnan(found.ess):
        return
    text = Text(f"ESS {found.ess:,.0f}")
    if not math.isnan(found.rhat):
        text = Text(f"R-hat {found.rhat:.3f}", style="bold red" if found.rhat > RHAT_LIMIT else "green")
        text.append(f", ESS {found.ess:,.0f}", style="default not bold")
    if first > warmup or seen.first_recent_row > seen.num_warmup_rows:
        text.append(f", of the newest {draws.shape[1]:,} draws", style="default not bold")
    yield "U so far", text


def _judge_sites(seen: Glance) -> Iterator[tuple[str, str | Text]]:
    if "levels" not in seen.recent:
        return
    domain = seen.record.make_domain()
    num_warmup = max(0, seen.num_warmup_rows - seen.first_recent_row)
    per_row = seen.recent["levels"].shape[0] * domain.num_sites
    first = max(num_warmup, _count_rows(seen) - MAX_LEVELS_JUDGED // max(per_row, 1))
    levels = Trace(seen.recent, first, domain).levels()
    if levels.shape[1] < MIN_DRAWS:
        return
    verdicts = judge_sites(levels)
    unconverged, constant = verdicts.count("not converged"), verdicts.count("constant")
    text = Text(f"{unconverged} not converged", style="bold red" if unconverged else "green")
    yield "sites", text.append(f", {constant} constant, of {domain.num_sites}", style="default not bold")


def _tabulate_chains(seen: Glance) -> Table:
    table = Table("chain", "newest U", "mean U", "acceptance", "U over the newest rows", box=None)
    for column in table.columns[:4]:
        column.justify = "right"
    values, acceptance = _read_recent(seen, "log_density"), _read_recent(seen, "acceptance_rate")
    for chain in range(min(len(values), MAX_CHAINS_SHOWN)):
        line = values[chain]
        statistics = (f"{line[-1]:.4g}", f"{line.mean():.4g}", f"{acceptance[chain].mean():.3f}")
        table.add_row(str(chain), *statistics, _draw_sparks(line))
    if len(values) > MAX_CHAINS_SHOWN:
        table.add_row("…", "", "", "", f"{len(values) - MAX_CHAINS_SHOWN} more")
    return table


def _read_recent(seen: Glance, name: str) -> np.ndarray:
    """A statistic by (chain, row); of an ensemble the mean over its replicas."""
    values = np.asarray(seen.recent[name], float)
    return values.reshape(*values.shape[:2], -1).mean(axis=2)


def _count_rows(seen: Glance) -> int:
    return seen.recent["log_density"].shape[1] if "log_density" in seen.recent else 0


def _draw_sparks(line: np.ndarray) -> str:
    """Means of consecutive parts as bars of eight heights."""
    means = np.array([piece.mean() for piece in np.array_split(line, min(SPARK_WIDTH, len(line)))])
    finite = means[np.isfinite(means)]
    if not len(finite):
        return ""
    spread = max(float(np.ptp(finite)), 1e-12)
    heights = np.nan_to_num((means - finite.min()) / spread * (len(SPARKS) - 1), posinf=0, neginf=0)
    return "".join(SPARKS[round(height)] for height in np.clip(heights, 0, len(SPARKS) - 1))
