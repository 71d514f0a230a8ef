"""Figures on the pages of the documentation: in the dark, and on a phone."""

import shutil
from pathlib import Path

import pytest
from chromium import PHONE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = """<!doctype html><html data-theme="THEME"><link rel="stylesheet" href="steppe.css">
<article class="bd-article bd-content"><img src="theory_gap.svg" alt="Gaps" width="300">
<a href="other.html"><img src="theory_bias.svg" alt="A link" width="100"></a></article>
<script src="steppe.js"></script></html>"""


@pytest.fixture
def open_page(chromium, tmp_path):
    for source in (
        "_static/steppe.css",
        "_static/steppe.js",
        "figures/theory_gap.svg",
        "figures/theory_bias.svg",
    ):
        shutil.copy(DOCS / source, tmp_path)

    def write(theme):
        (tmp_path / "page.html").write_text(PAGE.replace("THEME", theme), encoding="utf-8")
        chromium.open(tmp_path / "page.html")
        return chromium

    return write


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_drawings_follow_the_theme(open_page, theme):
    turned = open_page(theme).run("return getComputedStyle(document.querySelector('img')).filter")
    assert ("invert" in turned) == (theme == "dark")


def test_a_tap_opens_a_figure_alone_and_leaves_other_links(open_page):
    page = open_page("light")
    page.resize(PHONE)
    links = page.run("return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert links[0].endswith("theory_gap.svg")
    assert links[1:] == ["other.html"]
    assert page.one("a").get_attribute("aria-label") == "Enlarge: Gaps"
    page.one("a").click()
    assert page.run("return document.documentElement.tagName") == "svg"
