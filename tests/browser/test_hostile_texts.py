"""Two hundred texts that try to become code, in every field: none runs, none becomes an element."""

import csv
import io

import pytest
from chromium import DESKTOP, PHONE

from hostile import HOSTILE

# Elements of our own templates and charts.
ALLOWED = {
    *("html", "head", "meta", "title", "style", "script", "body", "main", "nav", "header", "section", "div"),
    *("h1", "h2", "h3", "p", "a", "b", "em", "strong", "span", "ul", "ol", "li", "dl", "dt", "dd", "details"),
    *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img", "dialog", "button"),
    *("summary", "label", "input", "output", "svg", "rect", "text", "line"),
}
HANDLERS = (
    "return [...document.all].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith('on')).length"
)


@pytest.fixture(scope="module")
def hostile(chromium, hostile_page):
    """Opened once for all tests here: it is a long page."""
    chromium.open(hostile_page)
    return chromium


def test_there_are_two_hundred_different_texts():
    assert len(set(HOSTILE)) == 200


def test_hostile_texts_stay_text(hostile):
    from selenium.common.exceptions import NoAlertPresentException

    hostile.run("document.querySelectorAll('.table th button').forEach(button => button.click())")
    hostile.run("document.querySelectorAll('.enlarge').forEach(b => { b.click(); viewer.close(); })")
    hostile.run("document.querySelectorAll('summary').forEach(summary => summary.click())")
    assert hostile.run("return window.broken") is None
    assert hostile.run("return document.scripts.length") == 2
    assert set(hostile.run("return [...document.all].map(e => e.localName)")) <= ALLOWED
    assert hostile.run(HANDLERS) == 0
    with pytest.raises(NoAlertPresentException):
        hostile.driver.switch_to.alert.accept()
    assert hostile.console() == []


def test_hostile_texts_are_shown_as_they_are(hostile):
    claims = hostile.run("return [...document.querySelectorAll('.said')].map(e => e.textContent)")
    # The parser of HTML drops NUL, which no text can hold; the rest is the same.
    assert claims == [text.replace("\x00", "") for text in HOSTILE]
    cells = hostile.run(
        "return JSON.parse(document.getElementById('data').textContent).tables.map(t => t.cells[0][0])"
    )
    assert cells == HOSTILE


def test_copies_of_hostile_texts_cannot_start_a_formula(hostile):
    number = next(i for i, text in enumerate(HOSTILE) if text.startswith("="))
    hostile.all('[data-copy="csv"]')[number].click()
    cells = [row[0] for row in csv.reader(io.StringIO(hostile.clipboard()))]
    assert all(cell.startswith("'=HYPERLINK") for cell in cells)


def test_no_text_makes_a_phone_scroll_sideways(hostile):
    hostile.resize(PHONE)
    assert hostile.run("return document.documentElement.scrollWidth") <= PHONE[0]
    hostile.resize(DESKTOP)


def test_the_policy_stops_a_script_that_got_in(hostile):
    hostile.run(
        "const script = document.createElement('script'); script.textContent = 'window.broken = 1';"
        "document.body.append(script)"
    )
    assert hostile.run("return window.broken") is None
    assert any("Content Security Policy" in message for message in hostile.console())
