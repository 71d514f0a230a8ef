"""A look at a run directory while another process writes it: no lock, bounded reading, never in the way."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steppe.errors import DamagedRunError
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.durable import read_json
from steppe.run.storage.record import Manifest, RunRecord, SegmentRecord, read_manifest
from steppe.run.storage.segments import read_rows
from steppe.run.storage.shards import find_run, join_records
from steppe.trace import join

# The newest segments are read until they hold so many bytes; a longer run is judged by its recent past.
WINDOW_BYTES = 64 * 2**20


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
        Rows of the newest segments, by name, (chain, row, …); empty before the first commit.
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
    newest_first = sorted(
        directory.path.glob("manifest-*.json"), key=lambda path: (len(path.name), path.name), reverse=True
    )
    for path in newest_first:
        try:
            manifest = read_manifest(path.name, read_json(path))
            age = max(0.0, time.time() - path.stat().st_mtime)
            recent, first = _window(directory.path, manifest.segments)
        except (DamagedRunError, FileNotFoundError):
            continue  # the writer has just dropped it, or it is damaged: the one before will do
        speed = _speed(directory.path, manifest)
        return Glance(record, manifest.next_row, planned, manifest.seconds, speed, age, recent, first)
    return Glance(record, 0, planned, 0.0, 0.0, 0.0, {}, 0)


def _window(path: Path, segments: Sequence[SegmentRecord]) -> tuple[dict[str, np.ndarray], int]:
    """Rows of the newest segments that fit the window, oldest first, and the row they begin with."""
    chosen: list[SegmentRecord] = []
    for segment in reversed(segments):
        if chosen and sum(one.bytes for one in chosen) + segment.bytes > WINDOW_BYTES:
            break
        chosen.insert(0, segment)
    arrays = [read_rows(path / "segments" / segment.file, segment) for segment in chosen]
    return (join(arrays), chosen[0].first_row) if arrays else ({}, 0)


def _speed(path: Path, manifest: Manifest) -> float:
    rows, seconds = manifest.next_row, manifest.seconds
    try:
        name = f"manifest-{manifest.index - 1:06d}.json"
        before = read_manifest(name, read_json(path / name))
        rows, seconds = rows - before.next_row, seconds - before.seconds
    except DamagedRunError:
        pass  # the first commit, or the one before is gone: the mean over the whole run will do
    return rows / seconds if seconds > 0 else 0.0


def _length(rows: dict[str, np.ndarray]) -> int:
    return 0 if not rows else next(iter(rows.values())).shape[1]
