"""The page as text: self-contained, closed to every text in the results, and honest about what is missing."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hostile import HOSTILE, write_filled
from page_examples import bernoulli, digits, write_examples
from steppe.errors import RunError, StorageError
from steppe.report.cells import format_cell, format_decimals, format_significant, format_with_interval
from steppe.report.page import write_page
from steppe.report.page.view import write_tally
from steppe.results import Estimate, Verdict


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    return write_page(write_examples(tmp_path_factory.mktemp("examples"))).read_text(encoding="utf-8")


class Skeleton(HTMLParser):
    """Tags with the names of their attributes, without any text."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(name for name, _ in attrs)))


def test_nothing_is_loaded_from_anywhere(page):
    sources = re.findall(r'(?:src|href)="([^"]{1,40})', page)
    assert {source.split(":")[0].split("#")[0] for source in sources} == {"data", ""}
    assert "@import" not in page
    assert "url(" not in page


def test_the_policy_names_the_style_and_the_script_by_digest_and_nothing_else(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1].replace("&#39;", "'")
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in (style, script)]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_no_text_changes_the_structure_of_the_page(tmp_path):
    """Pages of harmless and of hostile texts have the same tags with the same attributes."""
    pages = []
    for name, texts in (("harmless", ["text"] * len(HOSTILE)), ("hostile", HOSTILE)):
        pages.append(write_page(write_filled(tmp_path / name, texts)).read_text(encoding="utf-8"))
    harmless, hostile = (Skeleton(page).tags for page in pages)
    assert harmless == hostile


def test_the_data_block_holds_unrounded_cells_and_cannot_be_left(page):
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert not set("<>&") & set(block)
    table = json.loads(block)["tables"][0]
    assert table["heads"] == ["sampler", "λ", "flat mass", "sharp mass", "E[U]"]
    assert table["cells"][1][2][0] == 0.14482499999999998


def test_damage_and_missing_figures_are_named_without_the_path_of_this_machine(page, tmp_path):
    assert "tsp/results.json is not a results file" in page
    assert "figures/lost.svg is missing" in page
    assert str(tmp_path.parent) not in page


def test_the_same_results_give_the_same_page(page, tmp_path):
    assert write_page(write_examples(tmp_path)).read_text(encoding="utf-8") == page


def test_explore_is_shown_for_bernoulli_once_and_for_nothing_else(tmp_path):
    digits().save(tmp_path / "rbm")
    assert 'class="explore"' not in write_page(tmp_path).read_text(encoding="utf-8")
    for name in ("one", "two"):
        bernoulli().save(tmp_path / name)
    assert write_page(tmp_path).read_text(encoding="utf-8").count('class="explore"') == 1


def test_results_in_the_directory_itself_are_found(tmp_path):
    digits().save(tmp_path)
    assert "Handwritten digits" in write_page(tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize("content", [b"", b"not a picture", b"\xff\xfe"])
def test_a_file_that_is_no_picture_is_said_to_be_none(tmp_path, content):
    digits().save(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "sheet.png").write_bytes(content)
    assert "figures/sheet.svg is missing or is not a picture" in write_page(tmp_path).read_text(
        encoding="utf-8"
    )


def test_nothing_to_report_is_one_sentence(tmp_path):
    with pytest.raises(RunError, match="nothing to report"):
        write_page(tmp_path)
    with pytest.raises(RunError, match="not a directory"):
        write_page(tmp_path / "nowhere")


def test_a_single_file_of_a_future_schema_is_refused(tmp_path):
    path = digits().save(tmp_path)
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(RunError, match="schema 2; this steppe reads schema 1"):
        write_page(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_page_that_cannot_be_written_is_a_storage_error_and_leaves_nothing(tmp_path):
    digits().save(tmp_path)
    (tmp_path / "taken").mkdir()
    for out in (tmp_path / "taken", tmp_path / "no" / "such" / "page.html", tmp_path / "results.json" / "x"):
        with pytest.raises(StorageError, match="Could not write"):
            write_page(tmp_path, out)
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "taken"}


def test_templates_are_part_of_the_wheel():
    wheel = pytest.importorskip("hatchling.builders.wheel")
    root = Path(__file__).parents[2]
    included = {file.distribution_path for file in wheel.WheelBuilder(str(root)).recurse_included_files()}
    folder = root / "src" / "steppe" / "report" / "page" / "templates"
    templates = {f"steppe/report/page/templates/{path.name}" for path in folder.iterdir()}
    assert len(templates) >= 8
    assert templates <= included


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (format_decimals(0.14482, 3), "0.145"),
        (format_decimals(-2.5726, 2), "−2.57"),
        (format_decimals(0.00001234, 3), "1.2×10⁻⁵"),
        (format_decimals(0.0, 3), "0.000"),
        (format_decimals(123456.78, 1), "123\u202f456.8"),
        (format_decimals(1.5, 10**9), "1.500000000000"),
        (format_decimals(1.5, -3), "2"),
        (format_significant(0.021), "0.021"),
        (format_significant(-1234.6), "−1235"),
        (format_significant(3e300), "3×10³⁰⁰"),
        (format_cell(None), "–"),
        (format_cell(True), "yes"),
        (format_cell(4_000_000), "4\u202f000\u202f000"),
        (format_cell(10**30), "\u202f".join(["1", *["000"] * 10])),
        (format_with_interval(Estimate(value=0.054, low=-0.01, high=0.118)), "0.054 [−0.010, 0.118]"),
        (format_with_interval(Estimate(value=12.3456)), "12.3"),
        (format_with_interval(Estimate(value=2.0, low=2.0, high=2.0)), "2 [2, 2]"),
    ],
)
def test_numbers_show_what_is_known(shown, text):
    assert shown == text


def test_the_tally_counts_outcomes_in_a_sentence():
    def verdicts(*outcomes):
        return [Verdict(claim="c", outcome=outcome, sentence="s") for outcome in outcomes]

    assert (
        write_tally(verdicts("holds", "holds", "does not hold")) == "Of 3 claims, 2 hold and 1 does not hold."
    )
    assert write_tally(verdicts("holds")) == write_tally([]) == ""
