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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steppe.atomic import leave_the_cache, make_directory, sync_directory
from steppe.errors import DamagedRunError, DamagedRunWarning, StorageError
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
    write_bytes,
    write_json,
)
from steppe.run.storage.identity import describe_software
from steppe.run.storage.journal import pack_rows, write_line
from steppe.run.storage.record import FORMAT, Acknowledged, Commit, Opening, RunRecord, dump
from steppe.run.storage.run_files import ACKNOWLEDGED, QUARANTINE, RECORD, REMEDY, ROWS, SLOTS, Look, RunFiles

STOP = "stop"


class _Tip(NamedTuple):
    """The end of a run, where the next commit begins."""

    opening: Opening | None = None
    commit: Commit | None = None
    journal_end: int = 0
    software: Mapping[str, str] | None = None


class RunDirectory(RunFiles):
    """One run on disk, and its writer."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._lock: contextlib.ExitStack | None = None
        self._found: Look | None = None
        self._tip: _Tip | None = None

    # ---- life cycle ----------------------------------------------------------------------------

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

    # ---- continuing ----------------------------------------------------------------------------

    def chains(self) -> dict[str, np.ndarray]:
        """Return the chains after the commit that the run is continued from."""
        assert self._tip is not None
        assert self._tip.commit is not None
        assert self._tip.opening is not None
        return self.read_chains(self._tip.opening, self._tip.commit)

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
            remedy = ", or pass `resume=True` to continue the run that is there" if self.exists else ""
            raise StorageError(
                f"{self.path} already holds {occupied[0]!r}. Choose an empty directory{remedy}."
            )

    def _is_beginning(self, path: Path) -> bool:
        """Whether a path is what a start leaves that was cut short before it described the run."""
        is_empty_file = path.name in (ROWS, lines.NAME, *SLOTS) and path.stat().st_size == 0
        return is_empty_file or path.name in ("lock", f"{RECORD}{TEMPORARY}")

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


def read_tail(path: Path, first: int) -> bytes:
    """What is in a file from a byte on; nothing if there is no such file, which is made."""
    path.touch()
    return read_bytes(path, first)
