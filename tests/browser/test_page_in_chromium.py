"""The page in a real browser: it is quiet, it answers to mouse and keyboard, and it fits a phone."""

import csv
import io

import pytest
from chromium import PHONE

from page_examples import bernoulli
from steppe.report.page import write_page
from steppe.results import Column, Estimate, Table, Verdict

SORT = "#s1-t1 thead th:nth-child({}) button"
FIRST_CELLS = "#s1-t1 tbody td:nth-child({})"
ENTER, ESCAPE, TAB, RIGHT = "\ue007", "\ue00c", "\ue004", "\ue014"
TEXTS = [
    "main p",
    ".interval",
    "thead th",
    ".claim .outcome",
    ".tag",
    "figcaption",
    "dt",
    ".contents a",
    ".kicker",
]


def test_the_page_loads_without_a_word_on_the_console(page):
    assert page.one("h1").text == "What came out"
    assert all(image.get_property("naturalWidth") > 0 for image in page.all("figure img"))
    assert page.console() == []


def test_the_sliders_come_first_and_verdicts_before_every_experiment(page):
    heads = page.texts("main h2")
    assert heads[:2] == ["Explore: what each knob does", "Verdicts"]
    assert page.texts(".claim .outcome") == [
        "✗ does not hold",
        "✓ holds",
        "≈ not distinguishable",
        "≈ not distinguishable",
    ]


def test_damage_and_missing_figures_are_said(page):
    assert "tsp/results.json" in page.one(".problems").text
    assert "figures/lost.svg is missing" in page.one(".missing").text


def test_a_click_sorts_a_column_and_a_third_restores_the_order(page):
    before = page.texts(FIRST_CELLS.format(2))
    button = page.one(SORT.format(2))
    button.click()
    assert page.texts(FIRST_CELLS.format(2)) == ["0.0", "0.5", "1.0", "2.0", "4.0", "–"]
    assert page.one("#s1-t1 th:nth-child(2)").get_attribute("aria-sort") == "ascending"
    button.click()
    assert page.texts(FIRST_CELLS.format(2)) == ["4.0", "2.0", "1.0", "0.5", "0.0", "–"]
    assert page.one("#s1-t1 th:nth-child(2)").get_attribute("aria-sort") == "descending"
    button.click()
    assert page.texts(FIRST_CELLS.format(2)) == before
    assert page.one("#s1-t1 th:nth-child(2)").get_attribute("aria-sort") is None


def test_the_keyboard_sorts_too_and_estimates_sort_by_value(page):
    page.run("arguments[0].focus()", page.one(SORT.format(5)))
    page.press(ENTER)
    values = [float(text.split()[0].replace("−", "-")) for text in page.texts(FIRST_CELLS.format(5))]
    assert values == sorted(values)


def test_copied_csv_has_every_digit_and_the_ends_of_intervals_in_the_shown_order(page):
    page.one(SORT.format(2)).click()
    page.one('[data-copy="csv"]').click()
    rows = list(csv.reader(io.StringIO(page.clipboard())))
    assert rows[0][:5] == ["sampler", "λ", "flat mass", "flat mass low", "flat mass high"]
    assert [row[1] for row in rows[1:]] == ["0", "0.5", "1", "2", "4", ""]
    assert float(rows[1][2]) == 0.14482499999999998


def test_copied_markdown_is_a_table(page):
    page.one('[data-copy="markdown"]').click()
    lines = page.clipboard().splitlines()
    assert lines[0].startswith("| sampler | λ | flat mass |")
    assert lines[1] == "| :-- | --: | --: | --: | --: |"
    assert len(lines) == 2 + 6


def test_a_click_enlarges_a_figure_and_escape_closes_it(page):
    page.one(".enlarge").click()
    assert page.run("return document.getElementById('viewer').open")
    assert page.one("#viewer-title").text == "Samplers that samples π sit on the bars."
    assert page.run("return document.getElementById('viewer-image').naturalWidth") > 0
    page.press(ESCAPE)
    assert not page.run("return document.getElementById('viewer').open")


def test_enter_enlarges_arrows_turn_and_focus_returns(page):
    page.run("arguments[0].focus()", page.one(".enlarge"))
    page.press(ENTER)
    page.press(RIGHT)
    assert page.one("#viewer-title").text == "Flat and sharp modes."
    page.press(ESCAPE)
    assert page.run("return document.activeElement.className") == "enlarge"


def test_what_has_the_focus_is_seen(page):
    seen = set()
    for _ in range(12):
        page.press(TAB)
        style = page.run("return getComputedStyle(document.activeElement).outlineStyle")
        seen.add(page.run("return document.activeElement.tagName"))
        assert style != "none"
    assert {"A", "BUTTON"} <= seen


def test_settings_and_provenance_are_folded(page):
    folded = page.all(".experiment details")
    assert folded
    assert not any(one.get_property("open") for one in folded)


def test_a_phone_scrolls_tables_inside_their_box_and_never_the_page(page):
    page.resize(PHONE)
    width = page.run("return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
    assert width <= PHONE[0]
    assert page.run("return innerWidth") == PHONE[0]
    assert page.run(
        "return [...document.querySelectorAll('.scroll')].some(box => box.scrollWidth > box.clientWidth)"
    )
    page.one(".enlarge").click()
    assert page.one("#viewer-close").rect["x"] + page.one("#viewer-close").rect["width"] <= PHONE[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(page, scheme):
    """WCAG AA asks for a contrast of 4.5."""
    page.color(scheme)
    weak = {text: page.run(CONTRAST, text) for text in TEXTS}
    assert {text: value for text, value in weak.items() if value < 4.5} == {}
    is_dark = page.run(CONTRAST, "body", "rgb(255, 255, 255)") > 10
    assert is_dark == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_follow_the_dark(page, scheme):
    page.color(scheme)
    grounds = ["rgb(255, 255, 255)", "rgb(32, 32, 32)"]
    for paper, drawing in ((".enlarge", ".enlarge img"), (".viewer-paper", "#viewer-image")):
        ground = page.run(f"return getComputedStyle(document.querySelector('{paper}')).backgroundColor")
        turned = page.run(f"return getComputedStyle(document.querySelector('{drawing}')).filter")
        assert ground == grounds[scheme == "dark"]
        assert ("invert" in turned) == (scheme == "dark")
    assert (page.run(CONTRAST, ".distributions", "rgb(255, 255, 255)") > 10) == (scheme == "dark")


def test_wide_tables_keep_the_log_density_in_sight(chromium, tmp_path):
    numbers = {f"n{place}": 0.123456 + place for place in range(12)}
    columns = [Column(key=key, label=f"a number of many words {key}") for key in numbers]
    table = Table(
        key="wide",
        title="Wide",
        columns=[Column(key="sampler", label="sampler"), *columns, Column(key="u", label="E[U]")],
        rows=[{"sampler": "dula", **numbers, "u": -2.5}],
    )
    bernoulli().model_copy(update={"tables": [table]}).save(tmp_path)
    chromium.open(write_page(tmp_path))
    box, cell = chromium.one(".table .scroll").rect, chromium.one(".table td:last-child").rect
    assert chromium.run(
        "const b = document.querySelector('.table .scroll'); return b.scrollWidth > b.clientWidth"
    )
    assert chromium.one(".table td:last-child").text == "−2.500"
    assert cell["x"] + cell["width"] <= box["x"] + box["width"] + 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_claims_with_a_margin_are_a_forest_over_folded_sentences(chromium, tmp_path, scheme):
    verdict = Verdict(
        claim="EDULA leaves sharp modes <b>.",
        outcome="shown",
        sentence="It does.",
        estimate=Estimate(value=0.11, low=0.1, high=0.12),
        margin=0.02,
    )
    bernoulli().model_copy(update={"verdicts": [verdict]}).save(tmp_path)
    chromium.open(write_page(tmp_path))
    chromium.color(scheme)
    assert chromium.one(".forest").is_displayed()
    assert "leaves sharp modes <b>: shown" in chromium.one(".forest").text
    fill = chromium.run("return getComputedStyle(document.querySelector('.forest text:last-of-type')).fill")
    assert chromium.run(CONTRAST, "main", fill) > 4.5
    assert not chromium.one(".claim").is_displayed()
    chromium.one(".sentences summary").click()
    assert chromium.one(".claim").is_displayed()
    assert chromium.console() == []


# Contrast of the text of a selector, or of a given colour, with the first opaque ground behind it.
CONTRAST = """
const numbers = color => color.match(/[\\d.]+/g).map(Number);
const luminance = color => {
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = numbers(color).map(v => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
let element = document.querySelector(arguments[0]);
const ink = arguments[1] ?? getComputedStyle(element).color;
const isClear = one => numbers(getComputedStyle(one).backgroundColor)[3] === 0;
while (element.parentElement && isClear(element)) element = element.parentElement;
const [low, high] = [ink, getComputedStyle(element).backgroundColor].map(luminance).sort((a, b) => a - b);
return (high + 0.05) / (low + 0.05);
"""
