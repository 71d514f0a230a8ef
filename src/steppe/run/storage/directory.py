"""A run directory: append-only segments of rows, the chains they lead to, and a manifest per commit.

    run.json             what is run; written once
    segments/000003.npz  rows of the third commit
    chains/000003.npz    every chain after them, exactly
    manifest-000003.json which files count, with their digests; renaming it into place is the commit
    lock                 held by the one process that writes

A kill between any two system calls leaves the newest manifest whole and everything it names in place.
"""

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from steppe.errors import DamagedRunError, RunError, StorageError
from steppe.run.storage.durable import (
    TEMPORARY,
    check_bytes,
    read_arrays,
    read_json,
    take_lock,
    write_arrays,
    write_json,
)
from steppe.run.storage.record import (
    FileRecord,
    Manifest,
    RunRecord,
    SegmentRecord,
    dump,
    read_manifest,
    read_record,
)
from steppe.run.storage.segments import read_rows, write_rows
from steppe.run.storage.software import describe_software

KEPT_MANIFESTS = 2
_MANIFEST = re.compile(r"manifest-([0-9]{6,18})\.json")
_NUMBERED = re.compile(r"(?:manifest-)?([0-9]{6,18})\.(?:npz|json)")
_SEGMENT = re.compile(r"([0-9]{6,18})\.npz")


class RunDirectory:
    """One run on disk.

    Parameters
    ----------
    path
        The directory.
    keeps_rows
        Keep the rows of a segment in memory when it is verified, so that who needs both reads it once.
    """

    def __init__(self, path: Path | str, *, keeps_rows: bool = False) -> None:
        self.path = Path(path)
        self._keeps_rows = keeps_rows
        self._rows: dict[str, dict[str, np.ndarray]] = {}
        # What is wrong with each file that was read, or an empty sentence.
        self._verified: dict[tuple[str, str, str], str] = {}
        self._lock: contextlib.ExitStack | None = None
        self._manifest: Manifest | None = None
        self._is_manifest_known = False
        self.quarantined: list[str] = []
        self._scratch = io.BytesIO()

    # ---- life cycle ----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether a run was ever started here."""
        try:
            return (self.path / "run.json").exists()
        except OSError:  # a path that cannot be, or may not be looked at
            return False

    def create(self, record: RunRecord) -> None:
        """Start a run in an empty or new directory."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            occupied = sorted(p.name for p in self.path.rglob("*") if not self._is_beginning(p))
            if occupied:
                raise StorageError(
                    f"{self.path} already holds {occupied[0]!r}. Choose an empty directory, or pass "
                    "`resume=True` to continue the run that is there."
                )
            for name in ("segments", "chains"):
                (self.path / name).mkdir(exist_ok=True)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"Could not start a run in {self.path}: {error.strerror or error}. Choose a directory that "
                "can be written."
            ) from error
        self.lock()
        write_json(self.path / "run.json", dump(record))

    def lock(self) -> None:
        """Become the one writer. The system drops the lock when the process ends, however it ends."""
        self._lock = take_lock(self.path)

    def release(self) -> None:
        """Stop being the writer."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # ---- reading -------------------------------------------------------------------------------

    def record(self) -> RunRecord:
        """Return what is run."""
        return read_record(str(self.path), read_json(self.path / "run.json"))

    def manifest(self) -> Manifest | None:
        """Return the newest manifest that verifies with everything it names, or `None` before the first."""
        if not self._is_manifest_known:
            self._take(next(self._sound_manifests(), None))
        return self._manifest

    def rewind(self, next_row: int) -> None:
        """Take the commit that ends at a row for the newest, so that processes continue from the same."""
        found = next((m for m in self._sound_manifests() if m.next_row == next_row), None)
        if found is None and next_row > 0:
            raise DamagedRunError(
                f"{self.path} has no sound commit of row {next_row}, where another process of the run is."
            )
        self._take(found)

    def newest(self) -> Manifest:
        """Return the newest sound manifest, of a run that has one."""
        manifest = self.manifest()
        if manifest is not None:
            return manifest
        if self._manifest_paths():
            raise DamagedRunError(
                f"{self.path} has no commit that verifies: {self.problems()[0]} `steppe verify` names "
                "everything that is damaged; restore the files from a copy."
            )
        raise RunError(f"{self.path} holds no committed draws yet. Resume the run, or wait for it.")

    def segments(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the rows of every commit, in order."""
        manifest = self.manifest()
        for segment in manifest.segments if manifest else ():
            kept = self._rows.pop(segment.file, None)
            yield read_rows(self.path / "segments" / segment.file, segment) if kept is None else kept

    def chains(self) -> dict[str, np.ndarray]:
        """Return the chains after the last commit."""
        manifest = self.manifest()
        assert manifest is not None
        return read_arrays(self.path / "chains" / manifest.chains.file, dump(manifest.chains))

    def problems(self) -> list[str]:
        """Read every byte and name everything that is damaged, missing or left over."""
        found: list[str] = []
        self._verified.clear()
        try:
            self.record()
        except StorageError as error:
            found.append(str(error))
        for manifest_path in self._manifest_paths():
            try:
                manifest = read_manifest(manifest_path.name, read_json(manifest_path))
            except DamagedRunError as error:
                found.append(str(error))
                continue
            found.extend(self._damage(manifest))
        if self.exists and self._manifest_paths() and self.manifest() is None:
            found.append(f"{self.path} has no manifest that verifies.")
        found.extend(self._missing_manifests())
        unfinished = self._outside_quarantine(f"*{TEMPORARY}")
        found.extend(f"{path.relative_to(self.path)} is an unfinished write." for path in unfinished)
        return list(dict.fromkeys(found))

    # ---- writing -------------------------------------------------------------------------------

    def commit(
        self, rows: Mapping[str, np.ndarray], chains: Mapping[str, np.ndarray], next_row: int, seconds: float
    ) -> None:
        """Make rows, and the chains they lead to, permanent."""
        previous = self.manifest()
        index = previous.index + 1 if previous else 1
        name = f"{index:06d}.npz"
        first_row = previous.next_row if previous else 0
        segment = write_rows(
            self.path / "segments" / name, rows, first_row, next_row - first_row, self._scratch
        )
        manifest = Manifest(
            index=index,
            next_row=next_row,
            seconds=seconds + (previous.seconds if previous else 0.0),
            segments=[*(previous.segments if previous else ()), segment],
            chains=FileRecord.model_validate(write_arrays(self.path / "chains" / name, chains)),
            config=_read_seal(self.path / "run.json"),
            previous=_read_seal(self._manifest_path(index - 1)) if previous else None,
            software=describe_software(),
        )
        write_json(self._manifest_path(index), dump(manifest))
        self._take(manifest)
        self._drop_old(index - KEPT_MANIFESTS)

    def quarantine_newer(self) -> list[str]:
        """Move aside, never delete, whatever is newer than the newest sound manifest."""
        manifest = self.manifest()
        newest = manifest.index if manifest else 0
        for path in sorted(self._outside_quarantine("*")):
            numbered = _NUMBERED.fullmatch(path.name.removesuffix(TEMPORARY))
            is_newer = numbered is not None and int(numbered[1]) > newest
            is_unfinished = path.name.endswith(TEMPORARY)
            if path.is_file() and (is_newer or is_unfinished):
                self.quarantined.append(self._move_aside(path))
        return self.quarantined

    # ---- inside --------------------------------------------------------------------------------

    def _take(self, manifest: Manifest | None) -> None:
        self._manifest, self._is_manifest_known = manifest, True

    def _is_beginning(self, path: Path) -> bool:
        """Whether a path is what a start leaves that was cut short before it described the run."""
        name = str(path.relative_to(self.path))
        return name in ("lock", "segments", "chains", f"run.json{TEMPORARY}")

    def _outside_quarantine(self, pattern: str) -> Iterator[Path]:
        quarantine = self.path / "quarantine"
        return (path for path in self.path.rglob(pattern) if quarantine not in path.parents)

    def _sound_manifests(self) -> Iterator[Manifest]:
        for path in self._manifest_paths():
            try:
                manifest = read_manifest(path.name, read_json(path))
            except DamagedRunError:
                continue
            if not self._damage(manifest):
                yield manifest

    def _manifest_paths(self) -> Sequence[Path]:
        """Newest first."""
        paths = [p for p in self.path.glob("manifest-*.json") if _MANIFEST.fullmatch(p.name)]
        return sorted(paths, key=lambda p: int(_MANIFEST.fullmatch(p.name)[1]), reverse=True)  # type: ignore[index]

    def _manifest_path(self, index: int) -> Path:
        return self.path / f"manifest-{index:06d}.json"

    def _missing_manifests(self) -> list[str]:
        """Commits that left files but no manifest: cut short, or the manifest was deleted."""
        names = [_SEGMENT.fullmatch(p.name) for p in (self.path / "segments").glob("*.npz")]
        committed = [int(name[1]) for name in names if name]
        newest = max(committed, default=0)
        wanted = range(max(1, newest - KEPT_MANIFESTS + 1), newest + 1)
        missing = [f"manifest-{n:06d}.json" for n in wanted if not self._manifest_path(n).exists()]
        return [f"{name} is missing: its commit was cut short, or it was deleted." for name in missing]

    def _damage(self, manifest: Manifest) -> list[str]:
        segments = [self._verify("segments", segment) for segment in manifest.segments]
        return [sentence for sentence in (*segments, self._verify("chains", manifest.chains)) if sentence]

    def _verify(self, folder: str, record: FileRecord) -> str:
        """What is wrong with a file; it is read once, however many manifests name it."""
        known = folder, record.file, record.sha256
        if known not in self._verified:
            self._verified[known] = ""
            try:
                self._read(self.path / folder / record.file, record)
            except DamagedRunError as error:
                self._verified[known] = f"{folder}/{error}"
        return self._verified[known]

    def _read(self, path: Path, record: FileRecord) -> None:
        if isinstance(record, SegmentRecord) and self._keeps_rows:
            self._rows[record.file] = read_rows(path, record)
        else:
            check_bytes(path, dump(record))

    def _drop_old(self, newest_dropped: int) -> None:
        for path in self._manifest_paths():
            index = int(_MANIFEST.fullmatch(path.name)[1])  # type: ignore[index]
            if index <= newest_dropped:
                # What cannot be removed now is tried again after the next commit.
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                    (self.path / "chains" / f"{index:06d}.npz").unlink(missing_ok=True)

    def _move_aside(self, path: Path) -> str:
        folder = self.path / "quarantine"
        try:
            folder.mkdir(exist_ok=True)
            count = sum(1 for _ in folder.iterdir())
            moved = folder / f"{count:04d}-{path.parent.name}-{path.name}"
            path.rename(moved)
        except OSError as error:
            raise StorageError(
                f"Could not move {path.name} into {folder}: {error.strerror or error}. Free space or "
                "permissions and resume."
            ) from error
        return str(moved.relative_to(self.path))


def _read_seal(path: Path) -> str:
    """Return the digest a sealed JSON file carries."""
    try:
        return json.loads(path.read_bytes())["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedRunError(f"{path.name} has changed while the run was written: {error}.") from error
