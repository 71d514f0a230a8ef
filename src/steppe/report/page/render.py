"""HTML of results: a self-contained page, or a fragment for a notebook.

Nothing is loaded from anywhere, and no text in the results can start anything.
"""

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from steppe.errors import MissingPackageError
from steppe.optional import needed
from steppe.report.page.explore import KNOBS, LAWS, explore_data
from steppe.report.page.view import Gathered, Section, list_raw_tables, view_page, view_section
from steppe.results import Results

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = "templates"
SCRIPTS = ("tables.js", "figures.js", "laws.js", "explore.js")


def render_page(gathered: Gathered) -> str:
    """Return the page of everything gathered."""
    environment = _set_up()
    markupsafe = needed("markupsafe", "report", "The page")
    css, script, view = _read_packaged("page.css"), _join_scripts(), view_page(gathered)
    explored = {"explore": explore_data()} if view.is_explored else {}
    return environment.get_template("page.html").render(
        **view._asdict(),
        data={"tables": list_raw_tables(gathered), **explored},
        knobs=KNOBS,
        laws=LAWS,
        css=markupsafe.Markup(css),
        script=markupsafe.Markup(script),
        policy=_write_policy(css, script),
    )


def render_fragment(results: Results) -> str | None:
    """Return verdicts, facts, tables and notes for a notebook; nothing where jinja2 is missing."""
    try:
        environment = _set_up()
    except MissingPackageError:
        return None  # the notebook shows the text instead
    section = view_section(0, Section(results, {}))
    return environment.get_template("fragment.html").render(section=section)


def _set_up() -> "Environment":
    jinja2 = needed("jinja2", "report", "The page")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_packaged),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read_packaged(name: str) -> str:
    return (resources.files("steppe.report.page") / TEMPLATES / name).read_text(encoding="utf-8")


def _join_scripts() -> str:
    """All scripts as one block, so that the policy names one digest."""
    return "\n".join(["(() => {", '"use strict";', *map(_read_packaged, SCRIPTS), "})();"])


def _write_policy(css: str, script: str) -> str:
    """Nothing may be loaded or run but the style and the script of this package and embedded pictures."""
    return (
        f"default-src 'none'; style-src {_digest(css)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
