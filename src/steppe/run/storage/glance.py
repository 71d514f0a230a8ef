"""A look at a run directory while another process writes it: no lock, bounded reading, never in the way."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steppe.errors import DamagedRunError
from steppe.run.storage import journal as lines
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.durable import digest, read_bytes, read_json, seal_json
from steppe.run.storage.journal import RowLayout, read_newest, read_opening
from steppe.run.storage.record import Commit, RunRecord
from steppe.run.storage.run_files import RECORD, ROWS
from steppe.run.storage.shards import find_run, join_records
from steppe.trace import join

# The newest rows are read until they have so many bytes; a longer run is judged by its recent past.
WINDOW_BYTES = 64 * 2**20
TAIL_BYTES = 2**18
MAX_COMMIT_BYTES = 2**34


class Glance(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    record
        What is run.
    num_rows, num_rows_planned
        Committed rows and all rows, warm-up included; of the shard that is behind, in a run in shards.
    seconds
        Time spent stepping so far.
    recent_speed
        Rows per second between the last two commits, or over the run if there is one commit only.
    seconds_since_commit
        Age of the newest commit.
    recent
        Rows of the newest commits, by name, (chain, row, …); empty before the first commit.
    first_recent_row
        Row the window begins with.
    """

    record: RunRecord
    num_rows: int
    num_rows_planned: int
    seconds: float
    recent_speed: float
    seconds_since_commit: float
    recent: dict[str, np.ndarray]
    first_recent_row: int

    @property
    def is_complete(self) -> bool:
        """Whether all draws asked for are committed."""
        return self.num_rows >= self.num_rows_planned

    @property
    def num_warmup_rows(self) -> int:
        """Rows of warm-up."""
        return self.record.num_warmup_rows


def glance(path: Path) -> Glance:
    """Look at a run, or at the shards of one."""
    directories = find_run(path)
    looks = [_one(directory) for directory in directories]
    if len(looks) == 1:
        return looks[0]
    return _together(looks, join_records(directories))


def _together(looks: Sequence[Glance], record: RunRecord) -> Glance:
    """Shards as one run, as far as the shard that is behind."""
    behind = min(looks, key=lambda look: look.num_rows)
    first = max(look.first_recent_row for look in looks)
    last = min(look.first_recent_row + _length(look.recent) for look in looks)
    shared = [_rows_between(look, first, max(first, last)) for look in looks]
    names = set.intersection(*(set(rows) for rows in shared))
    recent = {name: np.concatenate([rows[name] for rows in shared]) for name in sorted(names)}
    newest = min(look.seconds_since_commit for look in looks)
    return behind._replace(record=record, recent=recent, first_recent_row=first, seconds_since_commit=newest)


def _rows_between(look: Glance, first: int, last: int) -> dict[str, np.ndarray]:
    begin, end = first - look.first_recent_row, last - look.first_recent_row
    return {name: rows[:, begin:end] for name, rows in look.recent.items()}


def _one(directory: RunDirectory) -> Glance:
    record = directory.record()
    planned = record.num_warmup_rows + record.num_draws
    path = directory.path / lines.NAME
    try:
        size, changed = path.stat().st_size, path.stat().st_mtime
        commits = read_newest(read_bytes(path, max(0, size - TAIL_BYTES)))
    except (DamagedRunError, FileNotFoundError):
        commits, changed = [], 0.0
    if not commits:
        return Glance(record, 0, planned, 0.0, 0.0, 0.0, {}, 0)
    recent, first = _window(directory, commits, record)
    newest, age = commits[-1], max(0.0, time.time() - changed)
    return Glance(record, newest.next_row, planned, newest.seconds, _speed(commits), age, recent, first)


def _window(
    directory: RunDirectory, commits: Sequence[Commit], record: RunRecord
) -> tuple[dict[str, np.ndarray], int]:
    """Rows of the newest commits that fit the window, oldest first, and the row they begin with."""
    path = directory.path
    with (path / lines.NAME).open("rb") as file:
        opening = read_opening(file.readline().rstrip(b"\n"), record, seal_json(read_json(path / RECORD)))
    layout = RowLayout(opening.columns, record.keep)
    chosen: list[dict[str, np.ndarray]] = []
    first, size = commits[-1].next_row, 0
    for commit in reversed(commits):
        size += commit.bytes
        content = read_bytes(path / ROWS, commit.offset, min(commit.bytes, MAX_COMMIT_BYTES))
        is_whole = layout.fits(commit) and commit.next_row == first and digest([content]) == commit.rows
        if not is_whole or (chosen and size > WINDOW_BYTES):
            break
        chosen.insert(0, layout.unpack(content, commit))
        first = commit.first_row
    return (join(chosen), first) if chosen else ({}, 0)


def _speed(commits: Sequence[Commit]) -> float:
    """Rows per second of the last commit, or of the whole run if there is no other."""
    rows, seconds = commits[-1].next_row, commits[-1].seconds
    if len(commits) > 1:
        rows, seconds = rows - commits[-2].next_row, seconds - commits[-2].seconds
    return rows / seconds if seconds > 0 else 0.0


def _length(rows: dict[str, np.ndarray]) -> int:
    return 0 if not rows else next(iter(rows.values())).shape[1]
