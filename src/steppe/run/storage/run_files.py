"""The files of a run directory, read and checked: what is there, what is damaged, what belongs elsewhere.

`directory` says what the files are and writes them.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from steppe.errors import DamagedRunError, RunError, StorageError
from steppe.run.storage import journal as lines
from steppe.run.storage.durable import (
    TEMPORARY,
    check_is_file,
    digest,
    read_bytes,
    read_json,
    seal_json,
    unpack,
)
from steppe.run.storage.journal import Journal, RowLayout, read_journal
from steppe.run.storage.record import Acknowledged, Commit, Opening, RunRecord, read_record, validate

RECORD, ROWS, ACKNOWLEDGED, QUARANTINE = "run.json", "rows.bin", "acknowledged.json", "quarantine"
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


class RunFiles:
    """One run on disk, as a reader sees it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        # What is wrong with the rows of each commit that was read, or an empty sentence.
        self._checked: dict[str, str] = {}

    @property
    def exists(self) -> bool:
        """Whether a run was ever started here."""
        try:
            return (self.path / RECORD).exists()
        except OSError:  # a path that cannot be, or may not be looked at
            return False

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

    # ---- inside --------------------------------------------------------------------------------

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
                begin, size = RowLayout(opening.columns, record.keep).find_newest_log_density(commit)
                content = read_bytes(self.path / ROWS, begin, size)
                newest = content if len(content) == size else None  # else rows are missing, which is named
            if not _belong_together(chains, newest, record):
                return f"{name} holds chains of another run or row."
        return ""

    def _is_empty(self, name: str) -> bool:
        try:
            return (self.path / name).stat().st_size == 0
        except OSError:  # it is not there, which no resume leaves
            return False


def read_commits(path: Path, commits: Iterable[Commit]) -> Iterator[tuple[Commit, bytes]]:
    """Yield the bytes of commits, of which there may be many small ones."""
    check_is_file(path)
    try:
        with path.open("rb", buffering=READ_BYTES) as file:
            for commit in commits:
                file.seek(commit.offset)
                yield commit, file.read(commit.bytes)
    except OSError as error:
        raise DamagedRunError(f"{path.name} cannot be read: {error.strerror or error}.") from error


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
