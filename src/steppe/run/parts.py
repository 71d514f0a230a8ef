"""A run in parts: each process or job writes some of the chains, and together they are the one run.

runs/a/part-0000-of-0002    a run directory with the first half of the chains
runs/a/part-0001-of-0002    a run directory with the second half
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steppe.errors import RunError, RunMismatchError, StorageError
from steppe.run.plan import Shard
from steppe.run.store import RunDirectory
from steppe.trace import by_row, join

_PART = re.compile(r"part-(\d{4,})-of-(\d{4,})")
# A whole run is the only part of itself.
WHOLE = [0, 1]
_MAY_DIFFER = ("shard", "software", "metadata", "num_draws")


def part_path(path: Path, shard: Shard) -> Path:
    """Where a part of a run is written; a whole run is written to the path itself."""
    if shard.count == 1:
        return path
    if (path / "run.json").exists():
        raise StorageError(f"{path} already holds a whole run. Write parts to another directory.")
    return path / f"part-{shard.index:04d}-of-{shard.count:04d}"


def part_directories(path: Path) -> list[RunDirectory]:
    """The parts below a directory in order; empty if it is not a run in parts."""
    try:
        found = sorted(p for p in path.glob("part-*-of-*") if _PART.fullmatch(p.name))
    except (OSError, ValueError):  # a path that cannot be, or may not be looked at
        return []
    return [directory for directory in map(RunDirectory, found) if directory.exists]


def joined(parts: Sequence[RunDirectory]) -> tuple[dict[str, Any], dict[str, np.ndarray], float]:
    """Description, rows and seconds of the run that the parts make up, as far as all of them have got."""
    config = whole_config(parts)
    by_part = [_rows(part) for part in parts]
    num_rows = min(rows["log_density"].shape[1] for rows in by_part)
    arrays = {name: np.concatenate([rows[name][:, :num_rows] for rows in by_part]) for name in by_part[0]}
    return config, arrays, max((part.manifest() or {}).get("seconds", 0.0) for part in parts)


def whole_config(parts: Sequence[RunDirectory]) -> dict[str, Any]:
    """Description of the run that the parts make up; refuse parts that do not belong together."""
    configs = [part.config() for part in parts]
    first = configs[0]
    for part, config in zip(parts, configs, strict=True):
        different = [k for k in first if k not in _MAY_DIFFER and config.get(k) != first[k]]
        if different:
            raise RunMismatchError(
                f"{part.path} and {parts[0].path} are not parts of one run: {different[0]} differs."
            )
    found = sorted(tuple(config.get("shard", WHOLE)) for config in configs)
    count = first.get("shard", WHOLE)[1]
    if found != [(index, count) for index in range(count)]:
        shown = ", ".join(f"{index}/{of}" for index, of in found)
        raise RunError(f"A run in {count} parts needs each of them once; there are {shown}.")
    return {**first, "shard": WHOLE}


def merge(parts: Sequence[str | Path] | str | Path, out: str | Path) -> Path:
    """Make one run directory of the parts of a run; it can be opened, verified and continued.

    Parameters
    ----------
    parts
        The directory that was given to every part as `out`, or the directories of the parts themselves.
    out
        Directory to write to; must be empty or new.
    """
    directories = _found(parts)
    config = whole_config(directories)
    ends = {str(d.path): (d.manifest() or {"next_row": 0})["next_row"] for d in directories}
    if len(set(ends.values())) > 1 or 0 in ends.values():
        shown = ", ".join(f"{Path(name).name} has {rows}" for name, rows in ends.items())
        raise RunError(f"The parts have not got equally far (rows: {shown}). Resume those behind first.")
    config, arrays, seconds = joined(directories)
    states = [directory.chains() for directory in directories]
    chains = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
    merged = RunDirectory(out)
    merged.create({k: v for k, v in config.items() if k != "format"})
    try:
        merged.commit(by_row(arrays), chains, next(iter(ends.values())), seconds)
    finally:
        merged.release()
    return merged.path


def _found(parts: Sequence[str | Path] | str | Path) -> list[RunDirectory]:
    paths = [parts] if isinstance(parts, str | Path) else list(parts)
    directories = [d for path in map(Path, paths) for d in (part_directories(path) or [RunDirectory(path)])]
    missing = [d.path for d in directories if not d.exists]
    if missing or not directories:
        raise RunError(f"{missing[0] if missing else 'Nothing'} is not a run directory: it has no run.json.")
    return sorted(directories, key=lambda d: tuple(d.config().get("shard", WHOLE)))


def _rows(part: RunDirectory) -> dict[str, np.ndarray]:
    part.newest()  # says what is wrong when there is none
    return join(part.segments())
