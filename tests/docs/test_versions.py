"""Versions of the documentation beside each other: the first is the newest release."""

import json
import runpy
import sys

import pytest

from docs.pages import DOCS, ROOT


@pytest.fixture
def list_versions():
    return runpy.run_path(str(DOCS / "list_versions.py"))["main"]


def build(site, name, *pages):
    for page in ("objects.inv", "index.html", *pages):
        path = site / name / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_the_newest_release_comes_first_and_dev_last(list_versions, tmp_path):
    for name in ("dev", "0.9.0", "0.10.0"):
        build(tmp_path, name)
    build(tmp_path, "0.10.0", "howto/tempering.html")
    (tmp_path / "doctrees").mkdir()  # no version
    list_versions(tmp_path)
    written = (tmp_path / "versions.js").read_text().removeprefix("window.steppeVersions = ")
    versions = json.loads(written.rstrip(";\n"))
    assert list(versions) == ["0.10.0", "0.9.0", "dev"]
    assert versions["0.10.0"] == ["howto/tempering.html", "index.html"]
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()


def test_a_site_without_versions_is_refused(list_versions, tmp_path):
    with pytest.raises(SystemExit, match="no folder with a built version"):
        list_versions(tmp_path)


def test_inventories_of_other_projects_are_at_hand_without_a_network(monkeypatch):
    monkeypatch.setenv("STEPPE_PROGRESS", "")  # both are changed by what is run, and set back
    monkeypatch.setattr(sys, "path", [*sys.path])
    configured = runpy.run_path(str(DOCS / "conf.py"))
    for name, (_, place) in configured["intersphinx_mapping"].items():
        first, project, *_ = (DOCS / place).read_text().splitlines()
        assert (first, project) == ("# Sphinx inventory version 1", f"# Project: {name}")
    assert (ROOT / "docs" / "_templates" / "versions.html").exists()
