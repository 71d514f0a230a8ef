"""Where a data file is: the directory the user named, the cache, or the place it is downloaded from.

A file is used only if it has the digest it was published with. Files that nobody published in one fixed
form have no digest; what the user put in place is then taken, and the card says so.
"""

import gzip
import hashlib
import io
import lzma
import math
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from steppe.datasets.download import File, download
from steppe.errors import DataError, MissingDataError
from steppe.optional import require
from steppe.validation import shorten

DATA_VARIABLE = "STEPPE_DATA"
CACHE_VARIABLE = "STEPPE_CACHE"

# More than any file here holds once unpacked; a file that claims more is not one of ours.
MAX_UNPACKED_BYTES = 512 * 2**20


class Found(NamedTuple):
    """A file that is there: its place and the digest it really has."""

    file: File
    path: Path
    sha256: str

    @property
    def is_verified(self) -> bool:
        """Whether the digest was known beforehand."""
        return self.file.sha256 is not None


class Lookup(NamedTuple):
    """Where to look.

    Attributes
    ----------
    data
        A directory that takes the place of `STEPPE_DATA`.
    download
        Whether what is missing may be fetched.
    progress
        Whether downloads show a bar; `None` shows it when standard error is a terminal.
    """

    data: str | os.PathLike[str] | None = None
    download: bool = True
    progress: bool | None = None

    def find(self, what: str, alternatives: Sequence[File], advice: str = "") -> Found:
        """Return the first alternative that is present, downloading one if none is.

        Parameters
        ----------
        what
            The data set, as errors call it.
        alternatives
            Forms of the same file, in order of preference.
        advice
            What to fetch by hand when nothing can be downloaded.
        """
        for directory in self._directories():
            for file in alternatives:
                if (directory / file.path).is_file():
                    return _verify(what, file, directory / file.path)
        remote = next((file for file in alternatives if file.url and file.sha256), None)
        if remote is None or not self.download:
            raise MissingDataError(self._missing(what, alternatives, advice))
        return _verify(what, remote, download(what, remote, cache_directory(), self.progress))

    def _directories(self) -> list[Path]:
        named = self.data or os.environ.get(DATA_VARIABLE)
        if named is None:
            return [cache_directory()]
        if not Path(named).expanduser().is_dir():
            source = "data=" if self.data else f"{DATA_VARIABLE}="
            raise MissingDataError(
                f"`{source}{os.fspath(named)}` is not a directory; name the one with the data."
            )
        return [Path(named).expanduser(), cache_directory()]

    def _missing(self, what: str, alternatives: Sequence[File], advice: str) -> str:
        places = " or ".join(dict.fromkeys(file.path for file in alternatives))
        urls = [file.url for file in alternatives if file.url]
        fetch = f"Download {urls[0]}" if urls else advice or "Obtain it from its authors"
        looked = " and ".join(str(directory) for directory in self._directories())
        return (
            f"{what!r} was not found: looked for {places} in {looked}. {fetch} and put it there under that "
            f"name, in a directory given as `data=` or {DATA_VARIABLE}."
        )


def cache_directory() -> Path:
    """Where downloads are kept: `STEPPE_CACHE`, or the user's cache directory."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(require("pooch", "data", "Finding the cache of data sets").os_cache("steppe"))


def contents(what: str, found: Found) -> bytes:
    """Return what a file holds, unpacked by the ending of its name."""
    try:
        return _unpack(found)
    except (OSError, EOFError, lzma.LZMAError, tarfile.TarError, KeyError) as error:
        raise DataError(f"{what!r}: {found.path} cannot be unpacked: {error}.") from error


def text_of(what: str, found: Found) -> str:
    """Return what a file holds as text; a byte that is none becomes a mark that no parser takes."""
    return contents(what, found).decode("ascii", "replace")


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file the user named, as `text_of` does."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise OSError("it is not a file")
        if Path(path).stat().st_size > MAX_UNPACKED_BYTES:  # before `read` takes memory for it
            raise OSError(f"it holds more than {MAX_UNPACKED_BYTES} bytes")
        return Path(path).read_bytes().decode("ascii", "replace")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"{shorten(str(path))} cannot be read: {reason}.") from error


def read_number(where: str, word: str) -> float:
    """Return a finite number, or say which word of which line is none."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in word:
        raise DataError(f"{where}: {shorten(word)} is not a finite number.")
    return number


def _unpack(found: Found) -> bytes:
    if found.file.member is not None:
        with tarfile.open(found.path) as archive:
            member = archive.extractfile(found.file.member)  # read into memory; nothing is written
            if member is None:
                raise KeyError(f"{found.file.member} is not a file")
            return _bound_size(member)
    openers = {".gz": gzip.open, ".xz": lzma.open}
    opened = openers.get(found.path.suffix, io.open)(found.path, "rb")
    with cast("IO[bytes]", opened) as stream:
        return _bound_size(stream)


def _bound_size(stream: IO[bytes]) -> bytes:
    content = stream.read(MAX_UNPACKED_BYTES + 1)
    if len(content) > MAX_UNPACKED_BYTES:
        raise OSError(f"it holds more than {MAX_UNPACKED_BYTES} bytes")
    return content


def _verify(what: str, file: File, path: Path) -> Found:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if file.sha256 not in (None, digest):
        raise DataError(
            f"{what!r}: {path} has the SHA-256 {digest} instead of {file.sha256}. It is damaged or another "
            "version; delete it, so that it is found elsewhere or downloaded, or replace it."
        )
    return Found(file, path, digest)
