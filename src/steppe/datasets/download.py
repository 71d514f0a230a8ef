"""Fetch one file: https only, no larger than it should be, checked before it is put in place."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from steppe.errors import DownloadError
from steppe.optional import require

if TYPE_CHECKING:
    from requests import Response

LOOPBACK = ("localhost", "127.0.0.1", "::1")
TIMEOUT_SECONDS = 30
CHUNK_BYTES = 2**16
MAX_REDIRECTIONS = 5


class File(NamedTuple):
    """One form in which a file may be present.

    Attributes
    ----------
    path
        Below the data directory or the cache.
    sha256
        Digest of the file as it is stored, or `None` where no fixed form was ever published.
    size
        Bytes; also the most that is downloaded.
    url
        Where it is downloaded from; `None` if it has to be put in place by hand.
    member
        Name inside the archive, if the file is one.
    """

    path: str
    sha256: str | None
    size: int = 0
    url: str | None = None
    member: str | None = None


class Advance(Protocol):
    """Whoever wants to hear about bytes."""

    def __call__(self, num_bytes: int) -> None:
        """Take note of more bytes."""


def download(what: str, file: File, directory: Path, progress: bool | None) -> Path:
    """Download a file with a known digest below a directory; the name appears only once it is whole.

    Parameters
    ----------
    what
        The data set, as errors call it.
    file
        What to fetch.
    directory
        The cache.
    progress
        Whether to show a bar; `None` shows it when standard error is a terminal.
    """
    pooch = require("pooch", "data", f"Downloading {what!r}")
    import requests

    path = directory / file.path

    def fetch(url: str, output: str | IO[bytes], _: object) -> None:
        with Path(str(output)).open("wb") as stream, _bar(what, file.size, progress) as advance:
            _stream(url, file.size, stream, advance)

    try:
        with _quiet(pooch.get_logger()):
            digest = f"sha256:{file.sha256}"
            pooch.retrieve(file.url, digest, fname=path.name, path=path.parent, downloader=fetch)
    except DownloadError as error:
        raise DownloadError(f"{what!r} could not be downloaded from {file.url}: {error}") from error
    except (ValueError, OSError, requests.RequestException) as error:
        raise DownloadError(
            f"{what!r} could not be downloaded from {file.url}: {error}. Nothing was kept. Try again, or put "
            f"the file in place by hand as {path}."
        ) from error
    return path


def _stream(url: str, max_bytes: int, stream: IO[bytes], advance: Advance) -> None:
    received = 0
    with _response(url) as response:
        response.raise_for_status()
        for chunk in response.iter_content(CHUNK_BYTES):
            received += len(chunk)
            if received > max_bytes:
                raise DownloadError(f"it sends more than the {max_bytes} bytes of the published file.")
            stream.write(chunk)
            advance(len(chunk))
    if received < max_bytes:
        raise DownloadError(f"it ended after {received} of {max_bytes} bytes; try again.")


def _response(url: str) -> "Response":
    """Ask for a file, following redirections one by one, so that each is checked before it is followed."""
    import requests

    for _ in range(MAX_REDIRECTIONS):
        _check_scheme(url)
        response = requests.get(url, stream=True, timeout=TIMEOUT_SECONDS, allow_redirects=False)
        if not response.is_redirect:
            return response
        response.close()
        url = urljoin(url, response.headers["location"])
    raise DownloadError(f"it redirects more than {MAX_REDIRECTIONS} times.")


def _check_scheme(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise DownloadError(f"{url} is not https, and only https is followed.")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """The bar says what there is to say."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _bar(what: str, total: int, shown: bool | None) -> Iterator[Advance]:
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda num_bytes: None
        return
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

    columns = (*Progress.get_default_columns(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda num_bytes: bar.update(task, advance=num_bytes)
