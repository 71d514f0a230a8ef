"""A run in shards: each process or job writes some of the chains, and together they are the one run.

runs/a/shard-0000-of-0002    a run directory with the first half of the chains
runs/a/shard-0001-of-0002    a run directory with the second half
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steppe.errors import RunError, RunMismatchError, StorageError
from steppe.run.plan import Shard
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.record import RunRecord, ShardRecord, first_difference
from steppe.trace import by_row, join

_SHARD = re.compile(r"shard-[0-9]{4,}-of-[0-9]{4,}")
_MAY_DIFFER = {"shard", "software", "metadata", "num_draws"}


def shard_path(path: Path, shard: Shard) -> Path:
    """Where a shard of a run is written; a whole run is written to the path itself."""
    if shard.count == 1:
        return path
    if (path / "run.json").exists():
        raise StorageError(f"{path} already holds a whole run. Write shards to another directory.")
    return path / f"shard-{shard.index:04d}-of-{shard.count:04d}"


def find_shards(path: Path, *, keeps_rows: bool = False) -> list[RunDirectory]:
    """Return the shards below a directory in order; empty if it is not a run in shards."""
    try:
        found = sorted(p for p in path.glob("shard-*-of-*") if _SHARD.fullmatch(p.name))
    except (OSError, ValueError):  # a path that cannot be, or may not be looked at
        return []
    shards = [RunDirectory(shard, keeps_rows=keeps_rows) for shard in found]
    return [shard for shard in shards if shard.exists]


def find_run(path: Path, *, keeps_rows: bool = False) -> list[RunDirectory]:
    """Return the run directory, or the shards of the run in it."""
    whole = RunDirectory(path, keeps_rows=keeps_rows)
    found = [whole] if whole.exists else find_shards(path, keeps_rows=keeps_rows)
    if not found:
        raise RunError(f"{path} is not a run directory: it has no run.json.")
    return found


def join_shards(shards: Sequence[RunDirectory]) -> tuple[RunRecord, dict[str, np.ndarray], float]:
    """Record, rows and seconds of the run that the shards make up, as far as all of them have got."""
    record = join_records(shards)
    manifests = [shard.newest() for shard in shards]  # says what is wrong when there is none
    by_shard = [join(shard.segments()) for shard in shards]
    num_rows = min(rows["log_density"].shape[1] for rows in by_shard)
    arrays = {name: np.concatenate([rows[name][:, :num_rows] for rows in by_shard]) for name in by_shard[0]}
    return record, arrays, max(manifest.seconds for manifest in manifests)


def join_records(shards: Sequence[RunDirectory]) -> RunRecord:
    """Return the record of the run that the shards make up; refuse shards that do not belong together."""
    records = [shard.record() for shard in shards]
    first = records[0]
    for shard, record in zip(shards, records, strict=True):
        there, here = (one.model_dump(mode="json", exclude=_MAY_DIFFER) for one in (first, record))
        different = first_difference(there, here, "run")
        if different:
            raise RunMismatchError(
                f"{shard.path} and {shards[0].path} are not shards of one run: {different[0]} differs."
            )
    found = sorted((record.shard.index, record.shard.count) for record in records)
    count = first.shard.count
    if found != [(index, count) for index in range(count)]:
        shown = ", ".join(f"{index}/{of}" for index, of in found)
        raise RunError(f"A run in {count} shards needs each of them once; there are {shown}.")
    return first.model_copy(update={"shard": ShardRecord()})


def merge_shards(parts: Sequence[str | Path] | str | Path, out: str | Path) -> Path:
    """Make one run directory of the shards of a run; it can be opened, verified and continued.

    Parameters
    ----------
    parts
        The directory that was given to every shard as `out`, or the directories of the shards themselves.
    out
        Directory to write to; must be empty or new.
    """
    shards = _find(parts)
    record = join_records(shards)
    ends = {d.path.name: manifest.next_row if (manifest := d.manifest()) else 0 for d in shards}
    if len(set(ends.values())) > 1 or 0 in ends.values():
        shown = ", ".join(f"{name} has {rows}" for name, rows in ends.items())
        raise RunError(f"The shards have not got equally far (rows: {shown}). Resume those behind first.")
    record, arrays, seconds = join_shards(shards)
    states = [shard.chains() for shard in shards]
    chains = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
    merged = RunDirectory(out)
    merged.create(record)
    try:
        merged.commit(by_row(arrays), chains, next(iter(ends.values())), seconds)
    finally:
        merged.release()
    return merged.path


def _whole_or_shards(path: Path) -> list[RunDirectory]:
    return find_shards(path, keeps_rows=True) or [RunDirectory(path, keeps_rows=True)]


def _find(parts: Sequence[str | Path] | str | Path) -> list[RunDirectory]:
    paths = [parts] if isinstance(parts, str | Path) else list(parts)
    shards = [d for path in map(Path, paths) for d in _whole_or_shards(path)]
    missing = [d.path for d in shards if not d.exists]
    if missing or not shards:
        raise RunError(f"{missing[0] if missing else 'Nothing'} is not a run directory: it has no run.json.")
    return sorted(shards, key=lambda d: (d.record().shard.index, d.record().shard.count))
