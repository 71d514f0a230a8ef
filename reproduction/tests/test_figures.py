"""What the figures show of the recorded results, read from what was drawn."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steppe.results import Array, read_results
from steppe_edlp.figures import draw
from steppe_edlp.tables import find_rows
from steppe_edlp.wording import say

DOCS = Path(__file__).parents[2] / "docs"


def read(name):
    return read_results(DOCS / "results" / f"reproduce_{name}.json")


def lines(axes, *, style="-") -> list[Any]:
    return [line for line in axes.get_lines() if line.get_linestyle() == style and len(line.get_xdata()) > 2]


def diamonds(axes):
    """Places of the paper's numbers."""
    found = [line for line in axes.get_lines() if line.get_marker() == "D" and line.get_linestyle() != "--"]
    return [tuple(point) for line in found for point in line.get_xydata() if line.get_markersize() == 6]


@pytest.mark.parametrize("name", ["eta", "eta_published"])
def test_distances_are_ten_curves_over_an_axis_with_a_few_plain_numbers(name):
    figure = draw(read(name))["distance"]
    figure.draw_without_rendering()
    for axes in figure.axes:
        curves = lines(axes)
        assert len(curves) == 10
        ends = [curve.get_xydata()[-1, 1] for curve in curves]
        assert np.all(np.diff(ends) > 0), "the distance grows with η"
        low, high = axes.get_ylim()
        shown = [tick for tick in axes.get_yticks() if low <= tick <= high]
        assert 3 <= len(shown) <= 6
        assert [label.get_text() for label in axes.get_ymajorticklabels()].count("") == 0


def test_the_paper_stands_beside_errors_of_its_own_table_only():
    sweep: list[Any] = find_rows(read("eta_published"), "sweep")
    printed = sorted((row["variance"], row["rmse_paper"]) for row in sweep)
    hollow: list[Any] = [
        line for line in draw(read("eta_published"))["rmse"].axes[0].get_lines()
        if "paper" in str(line.get_label())
    ]  # fmt: skip
    assert sorted(tuple(point) for line in hollow for point in line.get_xydata()) == printed
    assert not any("paper" in str(line.get_label()) for line in draw(read("eta"))["rmse"].axes[0].get_lines())


@pytest.mark.parametrize("name", ["runtime", "runtime_published"])
def test_labels_of_times_are_those_of_their_bars_and_no_bar_hides_the_others(name):
    results = read(name)
    axes: Any = draw(results)["timings"].axes[0]
    patches: Any = axes.patches
    bars = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in patches}
    said = {text.xy[1]: float(text.get_text().split()[0]) for text in axes.texts if "s" in text.get_text()}
    assert said == {place: pytest.approx(width, abs=0.005) for place, width in bars.items()}
    end = axes.get_xlim()[1]
    assert np.median(list(bars.values())) > 0.2 * end
    arrows = [line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() == ">"]
    assert arrows == [place for place, width in bars.items() if width > end]


def _find_panels(figure) -> tuple[Any, Any, Any]:
    return figure.axes[2], figure.axes[0], figure.axes[3]


@pytest.mark.parametrize("name", ["tsp", "tsp_published"])
def test_marginal_densities_stay_among_the_values(name):
    main, top, side = _find_panels(draw(read(name))["scatter"])
    dots = [line for line in main.get_lines() if line.get_marker() == "."]
    costs, mismatches = (np.concatenate([line.get_xydata()[:, axis] for line in dots]) for axis in (0, 1))
    mismatches = mismatches.round()  # dots are shaken by less than a half
    for line in top.get_lines():
        assert line.get_xdata().min() >= costs.min()
        assert line.get_xdata().max() <= costs.max()
    for line in side.get_lines():
        assert line.get_ydata().min() >= mismatches.min()
        assert line.get_ydata().max() <= mismatches.max()


def test_the_flat_tour_is_flatter_by_what_the_caption_names():
    results = read("tsp")
    flat, sharp = results.arrays["profiles"].numpy()
    assert abs(flat[0, 1] - sharp[0, 1]) < 0.1
    assert flat[1, 3] > 2 * sharp[1, 3]
    caption = next(figure.caption for figure in results.figures if figure.key == "landscape")
    assert f"{flat[1, 3]:.0%}" in caption
    assert f"{sharp[1, 3]:.0%}" in caption


def test_the_papers_heat_maps_stand_beside_time_in_modes():
    flat, sharp = draw(read("bernoulli_published"))["masses"].axes
    assert [mass for mass, _ in diamonds(flat)] == pytest.approx([0.07, 0.08, 0.16, 0.39])
    assert [mass for mass, _ in diamonds(sharp)] == pytest.approx([0.43, 0.36, 0.14, 0.16])


def test_one_auto_encoder_that_failed_does_not_stretch_the_axis():
    results = read("rbm")
    before = [axes.get_xlim() for axes in draw(results)["reconstruction"].axes]
    single = results.arrays["mse"].numpy().copy()
    single[0, 0] = 1.0
    broken = results.model_copy(update={"arrays": {**results.arrays, "mse": Array.of(single)}})
    after = [axes.get_xlim() for axes in draw(broken)["reconstruction"].axes]
    for (low, high), (_, new) in zip(before, after, strict=True):
        assert new - high < high - low


def test_numbers_beside_bars_have_a_minus_sign():
    texts = [text.get_text() for text in draw(read("flatness"))["test-error"].axes[0].texts]
    assert any("−" in text for text in texts)
    assert not any("-" in text for text in texts)


@pytest.mark.parametrize("page", ["claims", "tables"])
def test_pages_have_one_minus_sign(page):
    text = (DOCS / "explain" / f"{page}.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [row for row in rows if re.search(r"(?<![\w.−-])-[.\d]", row)] == []
    assert any("−" in row for row in rows)


def test_sentences_have_one_minus_sign_and_leave_names_alone():
    assert (
        say("{a} {a:.2f} {name}", {"a": -0.3385, "name": "breast-cancer"}, set())
        == "−0.3385 −0.34 breast-cancer"
    )
