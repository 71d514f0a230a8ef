"""The distributions the browser solves for are those of `steppe.diagnostics.exact`."""

import jax
import numpy as np
import pytest

import steppe
from steppe.diagnostics.exact import (
    stationary_distribution,
    target_distribution,
    total_variation,
    transition_matrix,
)
from steppe.targets.bernoulli import PAPER_MODES, paper_bernoulli
from steppe.theory import effective_step_size

# Places of the sliders: log10 of α, α_a and η, and λ itself.
PLACES = [
    (-1.2, -1.0, 0.0, 0.0),
    (-0.3, -0.5, -0.2, 1.0),
    (0.2, -1.5, 0.6, 2.5),
    (0.9, 0.3, 0.8, 5.0),
]
# The page adds up sixteen numbers in another order; it may not differ by more than rounding.
TOLERANCE = 1e-6


def move(page, alpha, center, eta, strength):
    for key, place in {"alpha": alpha, "center": center, "eta": eta, "lambda": strength}.items():
        page.run(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
            page.one(f"#knob-{key}"),
            place,
        )
    keys = ("alpha", "center", "eta", "lambda")
    return {key: float(page.one(f"#knob-{key}-value").get_attribute("data-value")) for key in keys}


def shown(page):
    """Numbers of every distribution by name."""
    return page.run(
        "return Object.fromEntries([...document.querySelectorAll('#distribution-numbers tbody tr')].map(row "
        "=> "
        "[row.dataset.distribution, [...row.cells].slice(1).map(cell => Number(cell.dataset.value))]))"
    )


def expected(distribution, target):
    states = np.asarray(target.domain.enumerate(), int).tolist()
    flat, sharp = ([states.index(list(mode)) for mode in modes] for modes in PAPER_MODES)
    values = np.asarray(jax.vmap(target.log_density)(target.domain.enumerate()))
    return [
        distribution[flat].sum(),
        distribution[sharp].sum(),
        distribution @ values,
        total_variation(distribution, target_distribution(target)),
    ]


@pytest.mark.usefixtures("float64")
def test_every_number_of_every_distribution_is_the_exact_one(page):
    target = paper_bernoulli()

    def dula_distribution(step_size):
        return stationary_distribution(transition_matrix(steppe.dula(step_size=step_size), target))

    for places in PLACES:
        knobs = move(page, *places)
        effective = effective_step_size(knobs["alpha"], knobs["eta"], knobs["center"])
        assert effective.is_proper
        tilt = steppe.roughness_tilted(strength=knobs["lambda"]).stationary(target)
        tilted = np.asarray(jax.nn.softmax(jax.vmap(tilt.log_prob)(target.domain.enumerate())))
        distributions = {
            "pi": target_distribution(target),
            "dula": dula_distribution(knobs["alpha"]),
            "edula": dula_distribution(effective.value),
            "tilt": tilted,
        }
        numbers = shown(page)
        for name, distribution in distributions.items():
            np.testing.assert_allclose(
                numbers[name], expected(distribution, target), atol=TOLERANCE, err_msg=name
            )


def test_bars_stand_for_sixteen_states_and_mark_the_modes(page):
    move(page, *PLACES[1])
    for distribution in ("dula", "edula", "tilt"):
        chart = f"#distribution-{distribution} .chart"
        assert len(page.all(f"{chart} rect")) == 32
        assert len(page.all(f"{chart} .sign.flat")) == 2
        assert len(page.all(f"{chart} .sign.sharp")) == 2


def test_a_center_that_runs_away_has_no_distribution_and_the_page_says_so(page):
    move(page, -0.3, 0.9, -1.0, 0.0)
    assert "4η ≤ αₐ" in page.one("#distribution-edula .distribution-warning").text
    assert page.all("#distribution-edula svg") == []
    assert page.texts("#distribution-numbers tr[data-distribution=edula] td")[1:] == ["–"] * 4


def test_an_effective_step_that_is_not_positive_is_named(page):
    move(page, 0.5, -1.0, -0.5, 0.0)
    assert "not positive" in page.one("#distribution-edula .distribution-warning").text


def test_arrow_keys_move_a_slider_and_the_numbers_follow(page):
    before = shown(page)["dula"]
    page.run("arguments[0].focus()", page.one("#knob-alpha"))
    page.press("\ue014" * 5)
    after = shown(page)["dula"]
    assert after != before
    page.one("#knobs-reset").click()
    assert shown(page)["dula"] == before
    assert page.console() == []
