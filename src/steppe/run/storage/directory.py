"""A run directory: rows and a journal that only grow, the chains after the newest rows, and two documents.

    run.json           what is run; written once
    rows.bin           rows of all commits, one after another
    chains-0.bin       every chain after the newest commit of an even number, exactly
    chains-1.bin       the same for an odd number
    journal.jsonl      a sealed line per commit: where its rows are, their digest, the digest of the chains
    acknowledged.json  the newest commit; replacing it is what acknowledges one
    lock               held by the one process that writes
    stop               a request to commit and end, taken away when the run is continued
    quarantine/        what was set aside when a run was resumed

A commit writes rows, chains, its line and `acknowledged.json`, in this order, and waits for the disk after
each. A kill between any two system calls leaves bytes that no acknowledged commit names, and nothing else.
"""

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from steppe.atomic import leave_the_cache, make_directory, sync_directory
from steppe.errors import DamagedRunError, DamagedRunWarning, RunError, StorageError
from steppe.run.storage import journal as lines
from steppe.run.storage.durable import (
    TEMPORARY,
    describe_columns,
    digest,
    pack,
    read_bytes,
    read_json,
    seal_json,
    storing,
    take_lock,
    unpack,
    write_bytes,
    write_json,
)
from steppe.run.storage.identity import describe_software
from steppe.run.storage.journal import (
    Journal,
    RowLayout,
    pack_rows,
    read_journal,
    write_line,
)
from steppe.run.storage.record import (
    FORMAT,
    Acknowledged,
    Commit,
    Opening,
    RunRecord,
    dump,
    read_record,
    validate,
)

RECORD, ROWS, ACKNOWLEDGED, QUARANTINE = "run.json", "rows.bin", "acknowledged.json", "quarantine"
STOP = "stop"
SLOTS = ("chains-0.bin", "chains-1.bin")
FILES = (ROWS, lines.NAME, ACKNOWLEDGED, *SLOTS)
# Of a long run only the newest rows and lines are read again before it is continued.
NEWEST_BYTES, NEWEST_COMMITS = 64 * 2**20, 1000
READ_BYTES = 2**20
MAX_LOOKS = 3
REMEDY = "Restore the files from a copy, or sample again in a new directory: a key makes the same draws."

# How much is read: documents and sizes; the newest rows and the chains too; every byte.
Depth = Literal["quick", "newest", "all"]


class Look(NamedTuple):
    """What there is in a run directory.

    Attributes
    ----------
    journal
        Commits whose rows are as they were written.
    conflict
        What does not belong together; empty if all does. Such a run is neither read nor continued.
    damage
        What is not as it was acknowledged, a sentence each.
    unfinished
        What a commit has left that was cut short, or is being written; nothing of it was acknowledged.
    is_short
        Whether rows that were acknowledged are not among the commits.
    """

    journal: Journal
    conflict: str
    damage: list[str]
    unfinished: list[str]
    is_short: bool


class _Tip(NamedTuple):
    """The end of a run, where the next commit begins."""

    opening: Opening | None = None
    commit: Commit | None = None
    journal_end: int = 0
    software: Mapping[str, str] | None = None


class RunDirectory:
    """One run on disk."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock: contextlib.ExitStack | None = None
        self._found: Look | None = None
        self._tip: _Tip | None = None
        # What is wrong with the rows of each commit that was read, or an empty sentence.
        self._checked: dict[str, str] = {}

    # ---- life cycle ----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether a run was ever started here."""
        try:
            return (self.path / RECORD).exists()
        except OSError:  # a path that cannot be, or may not be looked at
            return False

    def create(self, record: RunRecord) -> None:
        """Start a run in an empty or new directory, and become its writer."""
        try:
            self._check_is_free()  # before anything is written there
            make_directory(self.path)
            self.lock()
            self._check_is_free()  # what another process may have done since
            for name in (ROWS, lines.NAME, *SLOTS):
                (self.path / name).touch()
            sync_directory(self.path)
            write_json(self.path / RECORD, dump(record))
        except OSError as error:
            self.release()
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"Could not start a run in {self.path}: {error.strerror or error}. Choose a directory that "
                "can be written."
            ) from error
        self._tip = _Tip()

    def lock(self) -> None:
        """Become the one writer. The system drops the lock when the process ends, however it ends."""
        self._lock = take_lock(self.path)
        with storing(self.path / STOP, 0):
            (self.path / STOP).unlink(missing_ok=True)

    def release(self) -> None:
        """Stop being the writer."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def request_stop(self) -> None:
        """Ask the writer, whoever it is, to commit what is done and end."""
        with storing(self.path / STOP, 0):
            (self.path / STOP).touch()

    @property
    def is_stop_requested(self) -> bool:
        """Whether somebody asked the writer to end."""
        return (self.path / STOP).exists()

    # ---- reading -------------------------------------------------------------------------------

    def record(self) -> RunRecord:
        """Return what is run."""
        return read_record(str(self.path), read_json(self.path / RECORD))

    def look(self, depth: Depth = "quick") -> Look:
        """Find out what is there, and what is wrong with it."""
        content = read_json(self.path / RECORD)
        record, config = read_record(str(self.path), content), seal_json(content)
        damage: list[str] = []
        acknowledged, conflict = self._read_acknowledged(damage)  # before the journal, which is never behind
        journal = self._read_journal(record, config, NEWEST_COMMITS if depth == "newest" else None)
        count, num_acknowledged = journal.num_commits, acknowledged.index if acknowledged else 0
        is_kept = count >= num_acknowledged if acknowledged else not damage
        unfinished = [f"{path.name} is an unfinished write." for path in self.path.glob(f"*{TEMPORARY}")]
        if journal.damage:
            (unfinished if is_kept else damage).append(journal.damage)
        if acknowledged is None and count > 1 and not damage:
            damage.append(f"{ACKNOWLEDGED} is missing.")
        if acknowledged is not None and count > num_acknowledged + 1:
            damage.append(f"{ACKNOWLEDGED} is older than {lines.NAME}: an older copy is in its place.")
        whole, num_left = self._check_size(journal, damage)
        if num_left:
            unfinished.append(f"{ROWS} ends in {num_left} bytes of a commit that was cut short.")
        conflict = conflict or journal.conflict or _name_conflict(acknowledged, journal, config)
        look = Look(journal.cut(whole), conflict, damage, unfinished, whole < max(count, num_acknowledged))
        if depth == "quick" or conflict:
            return look
        return self._look_closer(look, journal, record, depth, num_left)

    def _look_closer(
        self, look: Look, journal: Journal, record: RunRecord, depth: Depth, num_left: int
    ) -> Look:
        """Read rows and chains too; the journal names commits whose rows may be missing."""
        whole = self._check_rows(look.journal, look.damage, None if depth == "all" else NEWEST_BYTES)
        conflict = self._check_chains(journal, record, look, num_left)
        is_short = look.is_short or whole < look.journal.num_commits
        return look._replace(journal=look.journal.cut(whole), conflict=conflict, is_short=is_short)

    def examine(self, depth: Depth = "all") -> tuple[list[str], list[str]]:
        """Name everything that is damaged or does not belong together, and what is unfinished.

        Rows that this object has read before are not read again.
        """
        look = None
        for _ in range(MAX_LOOKS):
            before = self._read_stamp()
            try:
                look = self.look(depth)
            except StorageError as error:
                return [str(error)], []
            if not look.damage or before == self._read_stamp():
                break  # else a commit has been made, and chains have changed under the reader
        assert look is not None
        return [sentence for sentence in (look.conflict, *look.damage) if sentence], look.unfinished

    def problems(self, depth: Depth = "all") -> list[str]:
        """Name everything that is damaged or does not belong together."""
        return self.examine(depth)[0]

    @property
    def quarantined(self) -> list[str]:
        """Files that were set aside when the run was resumed."""
        return sorted(str(path.relative_to(self.path)) for path in self.path.glob(f"{QUARANTINE}/*"))

    def open(self) -> Look:
        """Look at a run to read its rows: refuse what does not belong together, or has no rows."""
        look = self.look()
        if look.conflict:
            raise DamagedRunError(
                f"{self.path} is not one run. {look.conflict} Restore the files from a copy."
            )
        if look.journal.commits:
            return look
        if look.is_short:
            raise DamagedRunError(
                f"{self.path} has no commit that verifies: {' '.join(look.damage)} `steppe verify` names "
                "everything that is damaged; restore the files from a copy."
            )
        raise RunError(f"{self.path} holds no committed draws yet. Resume the run, or wait for it.")

    def segments(self, journal: Journal, keep: str) -> Iterator[tuple[Commit, dict[str, np.ndarray]]]:
        """Yield the rows of every commit, (row, chain, …), up to the first that is damaged."""
        assert journal.opening is not None
        layout = RowLayout(journal.opening.columns, keep)
        for commit, content in self._read_rows(journal.commits):
            if content is None:
                return
            yield commit, layout.unpack(content, commit)

    def chains(self) -> dict[str, np.ndarray]:
        """Return the chains after the commit that the run is continued from."""
        assert self._tip is not None
        assert self._tip.commit is not None
        assert self._tip.opening is not None
        return self.read_chains(self._tip.opening, self._tip.commit)

    def read_newest_chains(self, look: Look) -> dict[str, np.ndarray]:
        """Return the chains after the newest commit; refuse those of another run."""
        journal = look.journal
        assert journal.opening is not None
        conflict = self._check_chains(journal, self.record(), look, 0)
        if conflict:
            raise DamagedRunError(f"{self.path} is not one run. {conflict} {REMEDY}")
        return self.read_chains(journal.opening, journal.commits[-1])

    def read_chains(self, opening: Opening, commit: Commit) -> dict[str, np.ndarray]:
        """Return the chains after a commit."""
        name = SLOTS[commit.index % 2]
        content = read_bytes(self.path / name)
        wanted = sum(column.num_bytes for column in opening.chains)
        if len(content) != wanted or digest([content]) != commit.chains:
            raise DamagedRunError(f"{name} does not hold the chains of commit {commit.index}.")
        return unpack(content, [(column.name, column.dtype, column.shape) for column in opening.chains])

    # ---- continuing ----------------------------------------------------------------------------

    def find_starts(self) -> list[int]:
        """Rows from which the run can be continued, newest first; refuse a run that cannot be.

        The run begins with row 0 where nothing was acknowledged yet.
        """
        look = self._found = self.look("newest")
        if look.conflict:
            raise DamagedRunError(f"{self.path} is not one run. {look.conflict} {REMEDY}")
        newest = reversed(look.journal.commits[-2:])
        rows = [commit.next_row for commit in newest if self._has_chains(look.journal.opening, commit)]
        if not look.is_short and look.journal.num_commits < 2:
            rows.append(0)
        if not rows:
            raise DamagedRunError(f"{self.path} cannot be continued. {' '.join(look.damage)} {REMEDY}")
        return rows

    def rewind(self, row: int) -> None:
        """Continue from a row that `find_starts` has named; move aside, never delete, what is after it."""
        look, self._found = self._found or self.look("newest"), None
        journal = look.journal.cut(next((c.index for c in look.journal.commits if c.next_row == row), 0))
        commit = journal.commits[-1] if row else None
        if look.damage:
            warnings.warn(
                f"{self.path}: {' '.join(look.damage)} The run goes on from row {row}; what was there is in "
                f"{QUARANTINE}.",
                DamagedRunWarning,
                stacklevel=2,
            )
        self._tip = _Tip()
        if commit is not None:
            first = None if journal.num_before else self.record().software
            software = next((c.software for c in reversed(journal.commits) if c.software), first)
            self._tip = _Tip(journal.opening, commit, journal.ends[-1], software)
        self._set_aside(self._tip, is_clean=not (look.damage or look.unfinished))

    def commit(
        self,
        rows: Mapping[str, np.ndarray],
        chains: Mapping[str, np.ndarray],
        next_row: int,
        seconds: float,
        *,
        is_last: bool = True,
    ) -> None:
        """Make rows, and the chains they lead to, permanent.

        Parameters
        ----------
        rows
            What is added, (row, chain, …).
        chains
            Every chain after them.
        next_row
            Row that follows them.
        seconds
            Time they took.
        is_last
            Whether the chains are those after these rows; a copy in several commits ends with them.
        """
        assert self._tip is not None
        tip, beginning = self._tip, b""
        if tip.opening is None:
            tip, beginning = self._open_journal(tip, rows, chains)
        assert tip.opening is not None
        index, first_row, offset, spent, previous = 1, 0, 0, 0.0, tip.opening.sha256
        if (before := tip.commit) is not None:
            index, first_row, offset = before.index + 1, before.next_row, before.end
            spent, previous = before.seconds, before.sha256
        constant, pieces = pack_rows(rows, index)
        packed, software = pack(chains.values()), describe_software()
        content = {
            "previous": previous,
            "index": index,
            "first_row": first_row,
            "num_rows": next_row - first_row,
            "seconds": seconds + spent,
            "offset": offset,
            "bytes": sum(map(len, pieces)),
            "constant": constant,
            "rows": digest(pieces),
            "chains": digest(packed) if is_last else None,
            "software": None if software == tip.software else software,
        }
        line, seal = write_line(content)
        self._write_at(ROWS, offset, pieces)
        if is_last:
            self._write_at(SLOTS[index % 2], 0, packed)
        self._write_at(lines.NAME, tip.journal_end, [beginning, line])
        done = Commit.model_validate({"sha256": seal, **content})
        self._acknowledge(done, tip.opening)
        end = tip.journal_end + len(beginning) + len(line)
        self._tip = _Tip(tip.opening, done, end, software)

    def _open_journal(
        self, tip: _Tip, rows: Mapping[str, np.ndarray], chains: Mapping[str, np.ndarray]
    ) -> tuple[_Tip, bytes]:
        """Say what rows and chains are, in the first line."""
        record = read_json(self.path / RECORD)
        columns, of_chains = describe_columns(rows, 1), describe_columns(chains)
        content = {
            "previous": seal_json(record),
            "format": FORMAT,
            "columns": [dump(column) for column in columns],
            "chains": [dump(column) for column in of_chains],
        }
        line, seal = write_line(content)
        opening = Opening(sha256=seal, previous=seal_json(record), columns=columns, chains=of_chains)
        return tip._replace(opening=opening, software=record["software"]), line

    # ---- inside --------------------------------------------------------------------------------

    def _check_is_free(self) -> None:
        occupied = sorted(p.name for p in self.path.glob("*") if not self._is_beginning(p))
        if occupied:
            raise StorageError(
                f"{self.path} already holds {occupied[0]!r}. Choose an empty directory, or pass "
                "`resume=True` to continue the run that is there."
            )

    def _is_beginning(self, path: Path) -> bool:
        """Whether a path is what a start leaves that was cut short before it described the run."""
        is_empty_file = path.name in (ROWS, lines.NAME, *SLOTS) and path.stat().st_size == 0
        return is_empty_file or path.name in ("lock", f"{RECORD}{TEMPORARY}")

    def _read_stamp(self) -> bytes:
        with contextlib.suppress(DamagedRunError):
            return read_bytes(self.path / ACKNOWLEDGED)
        return b""

    def _read_acknowledged(self, damage: list[str]) -> tuple[Acknowledged | None, str]:
        """What was acknowledged, if that can be read, and what is wrong with it if it is as written."""
        path = self.path / ACKNOWLEDGED
        if not path.exists():
            return None, ""
        try:
            content = read_json(path)
        except DamagedRunError as error:
            damage.append(str(error))
            return None, ""
        try:
            return validate(Acknowledged, ACKNOWLEDGED, content), ""
        except DamagedRunError as error:
            return None, str(error)

    def _read_journal(self, record: RunRecord, config: str, most: int | None) -> Journal:
        try:
            return read_journal(read_bytes(self.path / lines.NAME), record, config, most)
        except DamagedRunError as error:
            return Journal(damage=str(error))

    def _check_size(self, journal: Journal, damage: list[str]) -> tuple[int, int]:
        """How many commits have their bytes, and how many bytes are left over."""
        try:
            size = (self.path / ROWS).stat().st_size
        except OSError:
            damage.append(f"{ROWS} is missing.")
            return 0, 0
        end = journal.commits[-1].end if journal.commits else 0
        if size >= end:
            return journal.num_commits, size - end
        damage.append(f"{ROWS} has {size} bytes instead of {end}.")
        return journal.num_before + sum(commit.end <= size for commit in journal.commits), 0

    def _check_rows(self, journal: Journal, damage: list[str], budget: int | None) -> int:
        """How many commits come before the first whose rows are damaged; of the newest, up to some bytes."""
        commits, first, before = journal.commits, 0, journal.num_before
        if budget is not None and commits:
            begin = commits[-1].end - budget
            first = next(i for i, commit in enumerate(commits) if commit.end > begin)
        unread = [commit for commit in commits[first:] if commit.rows not in self._checked]
        for _, content in self._read_rows(unread):
            if content is None:
                break
        for count, commit in enumerate(commits[first:], start=first):
            if self._checked.get(commit.rows):
                damage.append(self._checked[commit.rows])
                return before + count
        return journal.num_commits

    def _read_rows(self, commits: Iterable[Commit]) -> Iterator[tuple[Commit, bytes | None]]:
        """Yield the rows of commits, or nothing where they are damaged."""
        for commit, content in read_commits(self.path / ROWS, commits):
            is_right = len(content) == commit.bytes and digest([content]) == commit.rows
            rows = f"rows {commit.first_row} to {commit.next_row - 1}"
            self._checked[commit.rows] = "" if is_right else f"{ROWS}: {rows} do not match their digest."
            yield commit, content if is_right else None

    def _check_chains(self, journal: Journal, record: RunRecord, found: Look, num_left: int) -> str:
        """Look for the chains of the last two commits; return what does not belong to them."""
        opening = journal.opening
        for age, commit in enumerate(reversed(journal.commits[-2:])):
            if commit.chains is None or opening is None:
                continue
            name = SLOTS[commit.index % 2]
            try:
                chains = self.read_chains(opening, commit)
            except DamagedRunError as error:
                # The next commit writes rows, and then over the older chains; a resume leaves these empty.
                may_be_gone = age == 1 and (num_left > 0 or self._is_empty(name))
                (found.unfinished if may_be_gone else found.damage).append(str(error))
                continue
            newest = None
            if record.keep != "none" and not self._checked.get(commit.rows):
                where = RowLayout(opening.columns, record.keep).find_newest_log_density(commit)
                newest = read_bytes(self.path / ROWS, *where)
            if not _belong_together(chains, newest, record):
                return f"{name} holds chains of another run or row."
        return ""

    def _is_empty(self, name: str) -> bool:
        try:
            return (self.path / name).stat().st_size == 0
        except OSError:  # it is not there, which no resume leaves
            return False

    def _has_chains(self, opening: Opening | None, commit: Commit) -> bool:
        try:
            return opening is not None and bool(self.read_chains(opening, commit))
        except DamagedRunError:
            return False

    def _set_aside(self, tip: _Tip, *, is_clean: bool) -> None:
        """Keep a copy of everything after a commit, and cut it off."""
        tails = {ROWS: tip.commit.end if tip.commit else 0, lines.NAME: tip.journal_end}
        stale = SLOTS if tip.commit is None else (SLOTS[1 - tip.commit.index % 2],)
        with storing(self.path / QUARANTINE, 0):
            left = {name: read_tail(self.path / name, first) for name, first in tails.items()}
            is_clean = is_clean and not any(left.values())
            if not is_clean:
                self._copy_aside({**left, **{name: read_tail(self.path / name, 0) for name in stale}})
            for path in self.path.glob(f"*{TEMPORARY}"):
                path.rename(self._name_aside(path.name))
            # First what is acknowledged, so that what is cut off was not.
            if tip.commit is not None and tip.opening is not None:
                self._acknowledge(tip.commit, tip.opening)
            else:
                (self.path / ACKNOWLEDGED).unlink(missing_ok=True)
                sync_directory(self.path)
        if not is_clean:
            # Rows last: as long as there are some left over, chains are known to be doubtful.
            for name, first in (*((name, 0) for name in stale), *reversed(tails.items())):
                self._write_at(name, first, [])

    def _copy_aside(self, contents: Mapping[str, bytes]) -> None:
        (self.path / QUARANTINE).mkdir(exist_ok=True)
        for name, content in contents.items():
            if content:
                write_bytes(self._name_aside(name), content)
        sync_directory(self.path)

    def _name_aside(self, name: str) -> Path:
        folder = self.path / QUARANTINE
        folder.mkdir(exist_ok=True)
        return folder / f"{sum(1 for _ in folder.iterdir()):04d}-{name}"

    def _acknowledge(self, commit: Commit, opening: Opening) -> None:
        content = Acknowledged(index=commit.index, commit=commit.sha256, config=opening.previous)
        write_json(self.path / ACKNOWLEDGED, dump(content))

    def _write_at(self, name: str, first: int, pieces: Sequence[bytes | memoryview]) -> None:
        """Replace everything from a byte on, and wait for the disk."""
        path = self.path / name
        with storing(path, sum(map(len, pieces))), path.open("r+b") as file:
            file.seek(first)
            for piece in pieces:
                file.write(piece)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
            leave_the_cache(file.fileno())


def read_commits(path: Path, commits: Iterable[Commit]) -> Iterator[tuple[Commit, bytes]]:
    """Yield the bytes of commits, of which there may be many small ones."""
    try:
        with path.open("rb", buffering=READ_BYTES) as file:
            for commit in commits:
                file.seek(commit.offset)
                yield commit, file.read(commit.bytes)
    except OSError as error:
        raise DamagedRunError(f"{path.name} cannot be read: {error.strerror or error}.") from error


def read_tail(path: Path, first: int) -> bytes:
    """What is in a file from a byte on; nothing if there is no such file, which is made."""
    path.touch()
    return read_bytes(path, first)


def _name_conflict(acknowledged: Acknowledged | None, journal: Journal, config: str) -> str:
    """Say in which way the journal is not the one that was acknowledged."""
    if acknowledged is None:
        return ""
    count, index = journal.num_commits, acknowledged.index
    if acknowledged.config != config:
        return f"{ACKNOWLEDGED} does not belong to {RECORD}."
    place = index - 1 - journal.num_before
    if place >= 0 and index <= count and journal.commits[place].sha256 != acknowledged.commit:
        return f"Commit {index} in {lines.NAME} is not the one that {ACKNOWLEDGED} names."
    if index > count and not journal.damage:
        return f"{lines.NAME} ends with commit {count}, and {ACKNOWLEDGED} names commit {index}."
    return ""


def _belong_together(chains: Mapping[str, np.ndarray], newest: bytes | None, record: RunRecord) -> bool:
    """Whether chains are those of this run, where the log-densities of its newest row are."""
    plan = record.plan
    lanes = np.array(plan.own_blocks)[:, None] * plan.chain_block + np.arange(plan.chain_block)
    if not np.array_equal(chains["chain"], lanes):
        return False
    here = chains["state.log_density"]
    own = here.reshape((-1, *here.shape[2:]))[: len(plan.own_chains)]
    return newest is None or own.tobytes() == newest
