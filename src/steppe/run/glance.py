"""A look at a run directory while another process writes it: no lock, bounded reading, never in the way."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steppe.errors import DamagedRunError, RunError
from steppe.run.files import read_json
from steppe.run.parts import part_directories, whole_config
from steppe.run.segments import read_rows
from steppe.run.store import RunDirectory
from steppe.trace import join

# The newest segments are read until they hold so many bytes; a longer run is judged by its recent past.
WINDOW_BYTES = 64 * 2**20


class Glance(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    config
        What is run.
    num_rows, num_rows_planned
        Committed rows and all rows, warm-up included; of the part that is behind, in a run in parts.
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

    config: dict[str, Any]
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
        return -(-self.config["num_warmup"] // self.config["thinning"])


def glance(path: Path) -> Glance:
    """Look at a run, or at the parts of one."""
    whole = RunDirectory(path)
    parts = [whole] if whole.exists else part_directories(path)
    if not parts:
        raise RunError(f"{path} is not a run directory: it has no run.json.")
    looks = [_one(part) for part in parts]
    if len(looks) == 1:
        return looks[0]
    return _together(looks, whole_config(parts))


def _together(looks: Sequence[Glance], config: dict[str, Any]) -> Glance:
    """Parts as one run, as far as the part that is behind."""
    behind = min(looks, key=lambda look: look.num_rows)
    first = max(look.first_recent_row for look in looks)
    last = min(look.first_recent_row + _length(look.recent) for look in looks)
    shared = [_rows_between(look, first, max(first, last)) for look in looks]
    names = set.intersection(*(set(rows) for rows in shared))
    recent = {name: np.concatenate([rows[name] for rows in shared]) for name in sorted(names)}
    newest = min(look.seconds_since_commit for look in looks)
    return behind._replace(config=config, recent=recent, first_recent_row=first, seconds_since_commit=newest)


def _rows_between(look: Glance, first: int, last: int) -> dict[str, np.ndarray]:
    begin, end = first - look.first_recent_row, last - look.first_recent_row
    return {name: rows[:, begin:end] for name, rows in look.recent.items()}


def _one(directory: RunDirectory) -> Glance:
    config = directory.config()
    planned = -(-config["num_warmup"] // config["thinning"]) + config["num_draws"]
    newest_first = sorted(
        directory.path.glob("manifest-*.json"), key=lambda path: (len(path.name), path.name), reverse=True
    )
    for path in newest_first:
        try:
            manifest, age = read_json(path), max(0.0, time.time() - path.stat().st_mtime)
            recent, first = _window(directory.path, manifest["segments"])
        except (DamagedRunError, FileNotFoundError, KeyError, TypeError):
            continue  # the writer has just dropped it, or it is damaged: the one before will do
        speed = _speed(directory.path, manifest)
        return Glance(config, manifest["next_row"], planned, manifest["seconds"], speed, age, recent, first)
    return Glance(config, 0, planned, 0.0, 0.0, 0.0, {}, 0)


def _window(path: Path, segments: Sequence[dict[str, Any]]) -> tuple[dict[str, np.ndarray], int]:
    """Rows of the newest segments that fit the window, oldest first, and the row they begin with."""
    chosen: list[dict[str, Any]] = []
    for record in reversed(segments):
        if chosen and sum(one["bytes"] for one in chosen) + record["bytes"] > WINDOW_BYTES:
            break
        chosen.insert(0, record)
    # A name from a file: only its last part counts, so that it cannot lead out of the directory.
    arrays = [read_rows(path / "segments" / Path(record["file"]).name, record) for record in chosen]
    return (join(arrays), chosen[0]["first_row"]) if arrays else ({}, 0)


def _speed(path: Path, manifest: dict[str, Any]) -> float:
    rows, seconds = manifest["next_row"], manifest["seconds"]
    try:
        before = read_json(path / f"manifest-{manifest['index'] - 1:06d}.json")
        rows, seconds = rows - before["next_row"], seconds - before["seconds"]
    except (DamagedRunError, KeyError, TypeError):
        pass  # the first commit, or the one before is gone: the mean over the whole run will do
    return rows / seconds if seconds > 0 else 0.0


def _length(rows: dict[str, np.ndarray]) -> int:
    return 0 if not rows else next(iter(rows.values())).shape[1]
