"""HTML of results: a self-contained page, or a fragment for a notebook.

Nothing is loaded from anywhere, and no text in the results can start anything.
"""

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from steppe.errors import MissingPackageError
from steppe.optional import require
from steppe.report import cells
from steppe.report.page import view
from steppe.report.page.explore import DISTRIBUTIONS, KNOBS, list_explore_data
from steppe.report.page.forest import draw_forest
from steppe.report.terminal import OUTCOME_MARKS
from steppe.results import Results

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = "templates"
TITLE = "What came out"
SCRIPTS = ("tables.js", "figures.js", "distributions.js", "explore.js")


def render_page(gathered: view.Gathered, title: str = TITLE, about: str = "") -> str:
    """Return the page of everything gathered, under a heading where there are several results."""
    environment = _set_up()
    markupsafe = require("markupsafe", "report", "The page")
    css, script, explored = _read_packaged("page.css"), _join_scripts(), view.find_explored(gathered)
    all_results = [section.results for section in gathered.sections]
    verdicts = [verdict for results in all_results for verdict in results.verdicts]
    data = {
        "tables": view.list_raw_tables(gathered),
        **({"explore": list_explore_data()} if explored else {}),
    }
    return environment.get_template("page.html").render(
        title=all_results[0].title if len(all_results) == 1 else title,
        sections=[(f"s{place}", section) for place, section in enumerate(gathered.sections, start=1)],
        problems=gathered.problems,
        tally=view.write_tally(verdicts),
        has_verdicts=bool(verdicts),
        forest=markupsafe.Markup(_draw_forest(all_results)),
        about=about,
        has_intervals=any(
            verdict.estimate and cells.format_interval(verdict.estimate) for verdict in verdicts
        ),
        explored=explored,
        data=data,
        knobs=KNOBS,
        distributions=DISTRIBUTIONS,
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
    return environment.get_template("fragment.html").render(results=results)


def _draw_forest(all_results: list[Results]) -> str:
    """The forest plot of all results, where some verdict has a margin; its texts are escaped."""
    groups = [
        (" · ".join([one.title, *(word for word, _ in view.list_tags(one))]), one.verdicts)
        for one in all_results
        if any(verdict.margin and verdict.estimate for verdict in one.verdicts)
    ]
    return draw_forest(groups) if groups else ""


def _set_up() -> "Environment":
    jinja2 = require("jinja2", "report", "The page")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_packaged),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        plain=cells.format_cell,
        full=cells.format_with_interval,
        interval=cells.format_interval,
        is_number=cells.is_number,
        has_numbers=view.has_numbers,
        class_cell=view.class_cell,
        find_kept=view.find_kept,
        list_tags=view.list_tags,
        list_provenance=view.list_provenance,
        end=view.end_sentence,
        missing=view.MISSING,
        outcome_marks=OUTCOME_MARKS,
        outcome_classes=view.OUTCOME_CLASSES,
    )
    return environment


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
