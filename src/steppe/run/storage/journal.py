"""Journal of a run: a line of JSON for every commit, sealed, each with the seal of the line before it.

    {"sha256": seal of the rest, "previous": seal of run.json, "format": 2, "columns": […], "chains": […]}
    {"sha256": seal of the rest, "previous": seal of the line above, "index": 1, "first_row": 0, …}

A line is as long after a year as at the beginning. Every line can be checked by itself, so that the newest
can be read without the others.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from steppe.errors import DamagedRunError
from steppe.run.plan import MAX_STEPS
from steppe.run.storage.durable import Column, pack
from steppe.run.storage.record import Commit, Opening, RunRecord, explain, validate

NAME = "journal.jsonl"
# Bytes before the rows of a commit: its number. A commit that was cut short has left some, whatever it adds.
MARK_BYTES = 8
ROWS_COMPARED = 4096
_BEGINS, _GOES_ON = b'{"sha256":"', b'",'
_SEAL = slice(len(_BEGINS), len(_BEGINS) + 64)
_REST = _SEAL.stop + len(_GOES_ON)
_PREVIOUS = slice(_REST + len(b'"previous":"'), _REST + len(b'"previous":"') + 64)
_COMMITS = TypeAdapter(list[Commit])


class Journal(NamedTuple):
    """What a journal says, as far as its lines are sound.

    Attributes
    ----------
    opening
        Its first line, or `None` before the first commit.
    num_before
        Number of commits that were not read: their lines are sound and continue each other.
    commits, ends
        The others, and the byte after each line.
    conflict
        What does not fit together although every line is as it was written; empty if all does.
    damage
        What is wrong with the first line that is not as it was written; empty if all are.
    """

    opening: Opening | None = None
    num_before: int = 0
    commits: Sequence[Commit] = ()
    ends: Sequence[int] = ()
    conflict: str = ""
    damage: str = ""

    @property
    def num_commits(self) -> int:
        """Number of commits, read or not."""
        return self.num_before + len(self.commits)

    def cut(self, count: int) -> "Journal":
        """Return the journal as it was after so many commits."""
        kept = max(0, count - self.num_before)
        before = min(count, self.num_before)
        return self._replace(num_before=before, commits=self.commits[:kept], ends=self.ends[:kept])


def write_line(content: Mapping[str, object]) -> tuple[bytes, str]:
    """Return a line and its seal."""
    rest = json.dumps(content, separators=(",", ":")).encode()[1:]
    seal = hashlib.sha256(rest).hexdigest()
    return b"".join((_BEGINS, seal.encode(), _GOES_ON, rest, b"\n")), seal


def is_sound(line: bytes) -> bool:
    """Whether a line, without its end, is as it was written."""
    is_whole = line.startswith(_BEGINS) and line[_SEAL.stop : _REST] == _GOES_ON
    return is_whole and hashlib.sha256(line[_REST:]).hexdigest().encode() == line[_SEAL]


def read_journal(content: bytes, record: RunRecord, config: str, most: int | None = None) -> Journal:
    """Read a journal from its beginning.

    Parameters
    ----------
    content
        Its bytes.
    record, config
        The run it belongs to, and the seal of that.
    most
        Read the fields of so many of the newest lines, and only the seals of those before them.
    """
    *lines, unfinished = content.split(b"\n")
    sound = next((i for i, line in enumerate(lines) if not is_sound(line)), len(lines))
    damage = f"{NAME} ends in a line that is not finished." if unfinished else ""
    if sound < len(lines):
        damage = f"Line {sound + 1} of {NAME} does not match the digest it carries."
    lines, empty = lines[:sound], Journal(damage=damage)
    if not lines:
        return empty
    before = 0 if most is None else max(0, len(lines) - 1 - most)
    try:
        opening = read_opening(lines[0], record, config)
        if unlinked := _find_unlinked(lines[: before + 1]):
            return empty._replace(
                opening=opening, num_before=unlinked - 1, conflict=_name_line(unlinked, "previous")
            )
        commits = _read_commits(lines[before + 1 :])
    except DamagedRunError as error:
        return empty._replace(conflict=str(error))
    ends, end = [], sum(map(len, lines[: before + 1])) + before + 1
    for line in lines[before + 1 :]:
        end += len(line) + 1
        ends.append(end)
    seal = lines[before][_SEAL].decode()
    whole, conflict = _count_continued(opening, seal, before, commits, record)
    return Journal(opening, before, commits, ends, conflict, damage).cut(before + whole)


def read_newest(content: bytes) -> list[Commit]:
    """Return the commits in the last bytes of a journal, the first of which may begin in mid-line."""
    lines = content.split(b"\n")[1:-1]
    sound = [line for line in lines if is_sound(line) and b'"index":' in line]
    try:
        return _read_commits(sound)
    except DamagedRunError:
        return []


# ---- rows ------------------------------------------------------------------------------------------


class RowLayout:
    """Where the columns of the rows of a commit are.

    Parameters
    ----------
    columns
        What a row is.
    keep
        What is kept of it; of `"none"` nothing.
    """

    def __init__(self, columns: Iterable[Column], keep: str) -> None:
        self._is_kept = keep != "none"
        self._columns = [(c.name, np.dtype(c.dtype), tuple(c.shape), c.num_bytes) for c in columns]
        self._sizes = {name: size * self._is_kept for name, *_, size in self._columns}
        self._size = sum(self._sizes.values())

    def count_bytes(self, num_rows: int, constant: Iterable[str]) -> int:
        """Bytes of so many rows; constant columns are stored once."""
        saved = sum(self._sizes.get(name, 0) for name in constant)
        return MARK_BYTES + self._size * num_rows - saved * (num_rows - 1)

    def fits(self, commit: Commit) -> bool:
        """Whether a commit has the bytes for its rows; those of the log-density, each."""
        size = self.count_bytes(commit.num_rows, commit.constant)
        return commit.bytes == size and "log_density" not in commit.constant and commit.num_rows > 0

    def unpack(self, content: bytes, commit: Commit) -> dict[str, np.ndarray]:
        """Return the rows as they were, (row, chain, …)."""
        arrays, first = {}, MARK_BYTES
        num_rows = commit.num_rows * self._is_kept
        for name, dtype, shape, size in self._columns:
            if name in commit.constant:
                once = np.ndarray(shape, dtype, content, first)
                array = np.ndarray((num_rows, *shape), dtype, content, first, (0, *once.strides))
                first += size
            elif size * num_rows:
                array = np.ndarray((num_rows, *shape), dtype, content, first)
                first += size * num_rows
            else:
                array = np.empty((num_rows, *shape), dtype)
            arrays[name] = array
        return arrays

    def find_newest_log_density(self, commit: Commit) -> tuple[int, int]:
        """First byte of the log-densities of the newest row of a commit, and their number of bytes."""
        first = commit.offset + MARK_BYTES
        for name, size in self._sizes.items():
            if name == "log_density":
                return first + (commit.num_rows - 1) * size, size
            first += size * (1 if name in commit.constant else commit.num_rows)
        raise AssertionError("rows have a log-density")


def pack_rows(rows: Mapping[str, np.ndarray], index: int) -> tuple[list[str], list[memoryview]]:
    """Return the names of columns that are stored once, and the bytes of a commit of that number.

    The first axis of every array counts rows, as chains make them, in memory and in files. A statistic that
    is the same in every row is stored once: a frozen step size and a count of defects that is zero would
    fill half of the file, and what a commit costs is proportional to the bytes it writes and digests.
    """
    constant = [name for name, array in rows.items() if name != "log_density" and _is_constant(array)]
    arrays = [array[:1] if name in constant else array for name, array in rows.items()]
    return constant, pack([np.array([index], "<u8"), *arrays])


def _is_constant(array: np.ndarray) -> bool:
    if len(array) < 2:
        return False
    # Equal bits, not equal numbers: 0 and -0, and one NaN and another, are told apart. What is not constant
    # mostly shows it among its first rows.
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    pieces = (bits[first : first + ROWS_COMPARED] for first in range(0, len(bits), ROWS_COMPARED))
    return all((piece == bits[:1]).all() for piece in pieces)


# ---- lines -----------------------------------------------------------------------------------------


def _read_commits(lines: Sequence[bytes]) -> list[Commit]:
    try:
        return _COMMITS.validate_json(b"[" + b",".join(lines) + b"]")
    except ValidationError as error:
        raise DamagedRunError(explain(NAME, error)) from error


def read_opening(line: bytes, record: RunRecord, config: str) -> Opening:
    """Read the first line of a journal; refuse that of another run."""
    opening = validate(Opening, NAME, line)
    misfit = next(opening.name_misfits(record), "")
    if opening.previous != config:
        misfit = "it was written for another run.json, or that was changed since"
    if misfit:
        raise DamagedRunError(f"{NAME} does not belong to the run that run.json describes: {misfit}.")
    return opening


def _find_unlinked(lines: Sequence[bytes]) -> int:
    """Number of the first line that does not continue the line before it, or 0."""
    for number, (before, line) in enumerate(pairwise(lines), start=1):
        if line[_PREVIOUS] != before[_SEAL]:
            return number
    return 0


def _count_continued(
    opening: Opening, seal: str, before: int, commits: Sequence[Commit], record: RunRecord
) -> tuple[int, str]:
    """How many commits continue each other, after those before them, and what is wrong with the next."""
    row, end, seconds = 0, 0, 0.0
    if before and commits:
        row, end = commits[0].first_row, commits[0].offset
    layout = RowLayout(opening.columns, record.keep)
    # Whatever is claimed, the bytes of one column have to be there for every row.
    may_be_constant = {column.name for column in opening.columns} - {"log_density"}
    max_rows = MAX_STEPS // record.thinning
    for index, commit in enumerate(commits, start=before + 1):
        num_rows = commit.num_rows
        found = (commit.previous, commit.index, commit.first_row, commit.offset, commit.bytes)
        wanted = (seal, index, row, end, layout.count_bytes(num_rows, commit.constant))
        fits = 0 < num_rows <= max_rows - row and commit.seconds >= seconds
        if found != wanted or not fits or not may_be_constant.issuperset(commit.constant):
            names = ("previous", "index", "first_row", "offset", "bytes")
            pairs = zip(names, found, wanted, strict=True)
            wrong = next((name for name, a, b in pairs if a != b), "num_rows, seconds or constant")
            return index - 1 - before, _name_line(index, wrong)
        seal, row, end, seconds = commit.sha256, commit.next_row, commit.end, commit.seconds
    return len(commits), ""


def _name_line(number: int, wrong: str) -> str:
    return (
        f"Line {number + 1} of {NAME} does not continue the line before it: {wrong} does not fit. Lines were "
        "removed, moved or changed."
    )
