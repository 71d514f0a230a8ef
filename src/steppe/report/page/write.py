"""Write the page of a directory: results in, one HTML file out."""

from pathlib import Path

from steppe.atomic import write_atomically
from steppe.errors import StorageError
from steppe.report.page.gather import gather
from steppe.report.page.render import TITLE, render_page
from steppe.report.page.view import Gathered

PAGE_NAME = "report.html"


def write_page(directory: Path, out: Path | None = None, *, title: str = TITLE, about: str = "") -> Path:
    """Write the page of a directory and return its path.

    Parameters
    ----------
    directory
        Holds a `results.json`, or subdirectories that do, or a run.
    out
        Where to write; `report.html` in the directory by default.
    title, about
        Heading of several results together, and what they are about.
    """
    path = directory / PAGE_NAME if out is None else out
    return save_page(gather(directory), path, title=title, about=about)


def save_page(gathered: Gathered, path: Path, *, title: str = TITLE, about: str = "") -> Path:
    """Put the page in place so that a reader never sees half of it."""
    if path.exists() and not path.is_file():  # a device, which would be replaced
        raise StorageError(f"Could not write {path}: it is no regular file. Name another with `--out`.")
    content = render_page(gathered, title, about).encode()
    try:
        write_atomically(path, content)
    except OSError as error:
        raise StorageError(
            f"Could not write {path}: {error.strerror or error}. Name another file with `--out`."
        ) from error
    return path
