"""A run in shards: each process or job writes some of the chains, and together they are the one run.

runs/a/shard-0000-of-0002    a run directory with the first half of the chains
runs/a/shard-0001-of-0002    a run directory with the second half
"""

import itertools
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steppe.arguments import checked
from steppe.atomic import make_directory, sync_directory
from steppe.errors import DamagedRunError, RunError, RunMismatchError, StorageError
from steppe.run.plan import Shard
from steppe.run.storage.directory import RunDirectory
from steppe.run.storage.durable import TEMPORARY, Column, take_lock
from steppe.run.storage.record import RunRecord, ShardRecord, first_difference
from steppe.run.storage.run_files import FILES, Depth, Look

Rows = dict[str, np.ndarray]
# Rows that are copied together.
COMMIT_BYTES = 64 * 2**20
_SHARD = re.compile(r"shard-([0-9]{4,9})-of-([0-9]{4,9})")
_MAY_DIFFER = {"shard", "software", "metadata", "num_draws", "picture"}


def shard_path(path: Path, shard: Shard, *, may_move: bool = False) -> Path:
    """Where a shard of a run is written; a whole run is written to the path itself.

    Parameters
    ----------
    path
        The directory of the run.
    shard
        Which shard.
    may_move
        Whether a run that is there in another number of shards may be taken over.
    """
    if shard.count == 1 and not (may_move and find_shards(path)):
        return path
    if (path / "run.json").exists() and not may_move:
        raise StorageError(f"{path} already holds a whole run. Write shards to another directory.")
    return path / f"shard-{shard.index:04d}-of-{shard.count:04d}"


def find_shards(path: Path) -> list[RunDirectory]:
    """Return the shards below a directory in order; empty if it is not a run in shards.

    While a run is taken over by another number of processes, there are two sets of shards; then that which
    is complete, and of two such the one that has got farther.
    """
    try:
        found = sorted(p for p in path.glob("shard-*-of-*") if _SHARD.fullmatch(p.name))
    except (OSError, ValueError):  # a path that cannot be, or may not be looked at
        return []
    shards = [shard for shard in map(RunDirectory, found) if shard.exists]
    sets: dict[int, list[RunDirectory]] = {}
    for shard in shards:
        sets.setdefault(_count(shard.path), []).append(shard)
    complete = [members for count, members in sets.items() if len(members) == count]
    if len(sets) < 2 or not complete:
        return shards
    return complete[0] if len(complete) == 1 else max(complete, key=_count_rows)


def _count(path: Path) -> int:
    """Number of shards, from the name of one of them."""
    match = _SHARD.fullmatch(path.name)
    return int(match[2]) if match else 1


def _count_rows(shards: Sequence[RunDirectory]) -> int:
    looks = [shard.look() for shard in shards]
    return min(look.journal.commits[-1].next_row if look.journal.commits else 0 for look in looks)


def find_run(path: Path) -> list[RunDirectory]:
    """Return the run directory, or the shards of the run in it."""
    whole = RunDirectory(path)
    found = [whole] if whole.exists else find_shards(path)
    if not found:
        raise RunError(f"{path} is not a run directory: it has no run.json.")
    return found


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


class Parts(NamedTuple):
    """The directories of a run, one or its shards in order, as they were looked at.

    Attributes
    ----------
    record
        What is run, all of it.
    directories, looks
        Where, and what is there.
    """

    record: RunRecord
    directories: Sequence[RunDirectory]
    looks: Sequence[Look]

    @property
    def ends(self) -> list[int]:
        """Rows of every shard."""
        return [look.journal.commits[-1].next_row for look in self.looks]

    @property
    def seconds(self) -> float:
        """Time the rows took."""
        return max(look.journal.commits[-1].seconds for look in self.looks)

    @property
    def is_short(self) -> bool:
        """Whether rows that were acknowledged are missing."""
        return any(look.is_short for look in self.looks)

    def cut(self, row: int) -> "Parts":
        """Return the run as it was at a row at which all shards have made a commit."""
        journals = [
            look.journal.cut(next((c.index for c in look.journal.commits if c.next_row == row), 0))
            for look in self.looks
        ]
        if not all(journal.commits for journal in journals):
            raise DamagedRunError(f"Not all shards have a commit of row {row}, where one of them ends.")
        pairs = zip(self.looks, journals, strict=True)
        return self._replace(looks=[look._replace(journal=journal) for look, journal in pairs])

    def problems(self, depth: Depth = "all") -> list[str]:
        """Name everything that is damaged, with its shard."""
        return [
            f"{directory.path.name}: {problem}" if len(self.directories) > 1 else problem
            for directory in self.directories
            for problem in directory.problems(depth)
        ]

    def read(self) -> Rows:
        """Return all rows as arrays with axes (chain, row, …), as far as all shards have them whole."""
        num_rows = 0 if self.record.keep == "none" else min(self.ends)
        columns, num_chains = _columns(self.looks[0]), sum(_columns(look)[0].shape[0] for look in self.looks)
        try:
            arrays = {c.name: np.empty((num_chains, num_rows, *c.shape[1:]), c.dtype) for c in columns}
        except (MemoryError, ValueError) as error:
            raise StorageError(
                f"The rows of {self.directories[0].path} do not fit the memory: {error}."
            ) from None
        last = 0
        for first, last, rows in self.pieces():
            for name, part in rows.items():
                arrays[name][:, first:last] = part.swapaxes(0, 1)
        if not last:
            raise DamagedRunError(
                f"{self.directories[0].path} has no commit that verifies: {' '.join(self.problems())} "
                "Restore the files from a copy."
            )
        read = {name: array[:, :last] for name, array in arrays.items()}
        self._check_levels(read.get("levels"))
        return read

    def _check_levels(self, levels: np.ndarray | None) -> None:
        """Refuse what no run writes, whatever its digest; bits are levels of two-level domains."""
        domain = self.record.make_domain()
        if levels is None or domain.is_two_level or not levels.size:
            return
        if int(levels.max()) >= domain.max_levels:
            raise DamagedRunError(f"{self.directories[0].path} holds levels that {domain!r} does not have.")

    def pieces(self) -> Iterator[tuple[int, int, Rows]]:
        """Yield rows from one to another, (row, chain, …), up to the first that a shard has not whole."""
        keep = self.record.keep
        streams = [
            d.segments(look.journal, keep) for d, look in zip(self.directories, self.looks, strict=True)
        ]
        newest = [next(stream, None) for stream in streams]
        row = 0
        while all(newest):
            current = [segment for segment in newest if segment is not None]
            last = min(commit.next_row for commit, _ in current)
            parts = [
                {name: part[row - commit.first_row : last - commit.first_row] for name, part in rows.items()}
                for commit, rows in current
            ]
            yield row, last, {name: _beside([part[name] for part in parts]) for name in parts[0]}
            row = last
            newest = [
                next(stream, None) if segment[0].next_row == row else segment
                for stream, segment in zip(streams, current, strict=True)
            ]


def open_parts(directories: Sequence[RunDirectory]) -> Parts:
    """Look at what `find_run` has found; refuse what does not belong together."""
    record = directories[0].record() if len(directories) == 1 else join_records(directories)
    looks = [directory.open() for directory in directories]
    described = [[(c.name, c.dtype, c.shape[1:]) for c in _columns(look)] for look in looks]
    if any(one != described[0] for one in described):
        raise RunMismatchError(f"The shards in {directories[0].path.parent} do not keep the same of a row.")
    return Parts(record, directories, looks)


def copy_chains(parts: Parts, shard: Shard, out: Path) -> None:
    """Write the chains of a shard as a run directory; nothing is there until all of it is.

    Parameters
    ----------
    parts
        All of the run.
    shard
        Which part of it to write, `Shard()` for all.
    out
        Where; empty or new.
    """
    end = parts.ends[0]
    record = parts.record.model_copy(update={"shard": ShardRecord(index=shard.index, count=shard.count)})
    chains, own = _join_chains(parts, record), record.plan.own_chains
    draft = _make_draft(out)
    draft.create(record)
    try:
        waiting: list[Rows] = []
        num_bytes = row = 0
        for _, last, rows in parts.pieces():
            if num_bytes > COMMIT_BYTES:
                draft.commit(_join(waiting), chains, row, 0.0, is_last=False)
                waiting, num_bytes = [], 0
            kept = {name: part[:, own.start : own.stop] for name, part in rows.items()}
            waiting.append(kept)
            num_bytes += sum(part.nbytes for part in kept.values())
            row = last
        if row < end:
            raise DamagedRunError(f"The run cannot be copied: {' '.join(parts.problems())}")
        draft.commit(_join(waiting), chains, row, parts.seconds)
        draft.path.rename(out)
        sync_directory(out.parent)
    finally:
        draft.release()


def take_over(out: Path, shard: Shard, agree: Callable[[bool], bool]) -> None:
    """Bring a run to another number of processes: each copies its chains, and what was there is set aside.

    Parameters
    ----------
    out
        The directory of the run.
    shard
        The part of this process.
    agree
        Waits for all processes, and says whether any of them said yes.
    """
    own = RunDirectory(shard_path(out, shard, may_move=True))
    if not agree(not own.exists):
        return
    whole = RunDirectory(out)
    sources = [whole] if whole.exists else find_shards(out)
    if sources and not own.exists:
        parts = open_parts(sources)
        copy_chains(parts.cut(min(parts.ends)), shard, own.path)
    agree(False)
    if sources and shard.index == 0:
        _set_aside(out, shard.count)
    agree(False)


def _set_aside(out: Path, count: int) -> None:
    """Rename what was a run in another number of shards."""
    try:
        for path in out.glob("shard-*-of-*"):
            if _SHARD.fullmatch(path.name) and _count(path) != count:
                with take_lock(path):
                    path.rename(_name_replaced(out, path.name))
        if RunDirectory(out).exists:
            with take_lock(out):
                replaced = _name_replaced(out, "whole")
                replaced.mkdir()
                for name in ("run.json", *FILES):
                    (out / name).rename(replaced / name)
        sync_directory(out)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"Could not set the shards in {out} aside: {error.strerror or error}.") from error


def _name_replaced(out: Path, name: str) -> Path:
    paths = (out / f"replaced-{name}{f'-{again}' if again else ''}" for again in itertools.count())
    return next(path for path in paths if not path.exists())


@checked(RunError)
def merge_shards(parts: Sequence[str | Path] | str | Path, out: str | Path) -> Path:
    """Make one run directory of the shards of a run; it can be opened, verified and continued.

    Rows are read and written piece by piece, so that a run may be larger than memory.

    Parameters
    ----------
    parts
        The directory that was given to every shard as `out`, or the directories of the shards themselves.
    out
        Directory to write to; must be empty or new.

    Examples
    --------
    >>> import jax, steppe, tempfile
    >>> target, path = steppe.targets.paper_bernoulli(), tempfile.mkdtemp()
    >>> common = {"key": jax.random.key(0), "num_draws": 50, "out": path + "/a"}
    >>> for index in range(2):  # two jobs that never talk to each other
    ...     _ = steppe.sample(target, steppe.gibbs(), shard=(index, 2), **common)
    >>> merged = steppe.merge_shards(path + "/a", path + "/b")
    >>> steppe.open_run(merged).levels.shape
    (4, 50, 4)
    """
    shards, out = _find(parts), Path(out)
    join_records(shards)
    opened = open_parts(shards)
    if len(set(opened.ends)) > 1 or opened.is_short:
        pairs = zip(shards, opened.ends, strict=True)
        shown = ", ".join(f"{shard.path.name} has {rows}" for shard, rows in pairs)
        raise RunError(f"The shards have not got equally far (rows: {shown}). Resume those behind first.")
    copy_chains(opened, Shard(), out)
    return out


def _make_draft(out: Path) -> RunDirectory:
    """A directory beside another, to be renamed to it; one that was left behind is removed."""
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise StorageError(f"{out} is not empty. Choose an empty or new directory.")
        make_directory(out.parent)
        draft = out.with_name(out.name + TEMPORARY)
        if draft.exists():
            with take_lock(draft):
                shutil.rmtree(draft)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"Could not write to {out}: {error.strerror or error}.") from error
    return RunDirectory(draft)


def _join_chains(parts: Parts, record: RunRecord) -> Rows:
    """The chains of the blocks of a shard, from wherever they are."""
    pairs = zip(parts.directories, parts.looks, strict=True)
    states = [directory.read_newest_chains(look) for directory, look in pairs]
    blocks = record.plan.own_blocks
    return {name: np.concatenate([s[name] for s in states])[blocks.start : blocks.stop] for name in states[0]}


def _join(waiting: Sequence[Rows]) -> Rows:
    return {name: np.concatenate([rows[name] for rows in waiting]) for name in waiting[0]}


def _beside(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _columns(look: Look) -> Sequence[Column]:
    assert look.journal.opening is not None
    return look.journal.opening.columns


def _find(parts: Sequence[str | Path] | str | Path) -> list[RunDirectory]:
    paths = [parts] if isinstance(parts, str | Path) else list(parts)
    shards = [d for path in map(Path, paths) for d in find_shards(path) or [RunDirectory(path)]]
    missing = [d.path for d in shards if not d.exists]
    if not shards:
        raise RunError("`merge_shards(parts, out)` needs the directory of a run in shards; got none.")
    if missing:
        raise RunError(f"{missing[0]} is not a run directory: it has no run.json.")
    return sorted(shards, key=lambda d: (d.record().shard.index, d.record().shard.count))
