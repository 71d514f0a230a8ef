"""The documented schema is the one in force."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_about_the_schema_is_what_its_script_writes():
    spec = importlib.util.spec_from_file_location("results_schema", DOCS / "results_schema.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.page() == script.PAGE.read_text(encoding="utf-8"), "run `python docs/results_schema.py`"
