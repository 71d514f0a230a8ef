"""Results in, one self-contained HTML file out: no network, and no text in the results can start anything."""

import base64
import contextlib
import hashlib
import os
from importlib import resources
from pathlib import Path
from typing import Any

from steppe.errors import StorageError
from steppe.optional import needed
from steppe.report.page.explore import KNOBS, LAWS, explore_data
from steppe.report.page.gather import Gathered, gather
from steppe.report.page.view import page_view

PAGE_NAME = "report.html"
TEMPLATES = "templates"
SCRIPTS = ("tables.js", "figures.js", "laws.js", "explore.js")


def write_page(directory: Path, out: Path | None = None) -> Path:
    """Write the page of a directory and return its path.

    Parameters
    ----------
    directory
        Holds a `results.json`, or subdirectories that do, or a run.
    out
        Where to write; `report.html` in the directory by default.
    """
    return save_page(gather(directory), directory / PAGE_NAME if out is None else out)


def save_page(gathered: Gathered, path: Path) -> Path:
    """Put the page in place so that a reader never sees half of it."""
    content = render(gathered).encode()
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise StorageError(
            f"Could not write {path}: {error.strerror or error}. Name another file with `--out`."
        ) from error
    return path


def render(gathered: Gathered) -> str:
    """The page as text."""
    jinja2 = needed("jinja2", "report", "The page")
    markupsafe = needed("markupsafe", "report", "The page")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_packaged),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css, script = _packaged("page.css"), _script()
    view: dict[str, Any] = page_view(gathered)
    if any(section["is_explored"] for section in view["sections"]):
        view["data"]["explore"] = explore_data()
    return environment.get_template("page.html").render(
        **view,
        knobs=KNOBS,
        laws=LAWS,
        css=markupsafe.Markup(css),
        script=markupsafe.Markup(script),
        policy=_policy(css, script),
    )


def _packaged(name: str) -> str:
    return (resources.files("steppe.report.page") / TEMPLATES / name).read_text(encoding="utf-8")


def _script() -> str:
    """All scripts as one block, so that the policy names one digest."""
    return "\n".join(["(() => {", '"use strict";', *map(_packaged, SCRIPTS), "})();"])


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded or run but the style and the script of this package and embedded pictures."""
    return (
        f"default-src 'none'; style-src {_digest(css)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
