"""Intervals and verdicts say what they mean."""

import numpy as np
import pytest

from steppe import samplers
from steppe.errors import RunError
from steppe.intervals import estimate_fraction, estimate_mean, estimate_smallest, split_level
from steppe.results import Estimate
from steppe_edlp.claims import classify, describe_joint_level, find_power, judge_claims
from steppe_edlp.experiment import ClaimSpec, Phrase, expand_cases
from steppe_edlp.flatness.perceptron import choose_by_others
from steppe_edlp.wording import describe_recipe, say
from steppe_edlp.work import decoded, encoded


def test_interval_of_a_mean_is_students():
    found = estimate_mean(np.array([1.0, 2.0, 3.0, 4.0]))
    # t(0.975, 3) = 3.18245, standard error 0.6455
    assert found.value == 2.5
    assert found.high == pytest.approx(2.5 + 3.18245 * 0.645497, abs=1e-4)
    assert found.low == pytest.approx(2.5 - 3.18245 * 0.645497, abs=1e-4)


def test_mean_of_one_number_has_no_interval():
    assert estimate_mean(np.array([1.5])) == Estimate(value=1.5)


def test_mean_of_diverged_chains_is_refused():
    with pytest.raises(RunError, match="diverged"):
        estimate_mean(np.array([1.0, np.inf]))


def test_interval_of_a_share_is_wilsons():
    found = estimate_fraction(8, 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "margin", "outcome"),
    [
        (0.1, 0.2, 0.0, "shown"),
        (-0.1, 0.2, 0.0, "undecided"),
        (-0.2, -0.1, 0.0, "opposite"),
        (0.03, 0.1, 0.02, "shown"),
        (0.0001, 0.0182, 0.005, "there, maybe negligible"),
        (0.001, 0.003, 0.02, "negligible"),
        (-0.003, -0.001, 0.02, "negligible"),
        (-0.1, -0.001, 0.02, "opposite"),
        (-0.1, 0.01, 0.02, "undecided"),
        (-0.1, 0.1, 0.02, "undecided"),
    ],
)
def test_verdict_follows_from_the_interval_and_the_margin(low, high, margin, outcome):
    assert classify(low, high, margin) == outcome


@pytest.mark.parametrize(("mixed", "outcome"), [("yes", "shown"), ("no", "undecided")])
def test_nothing_is_decided_about_samplers_that_lack_what_is_needed(mixed, outcome):
    rows = [{"sampler": name, "all": np.array([0.0, 0.1]) + shift, "mixed": how}
            for name, shift, how in (("edula", 5.0, "yes"), ("dula", 0.0, mixed))]  # fmt: skip
    spec = ClaimSpec(claim="c", sentence="s", table="t", about=[["edula", "dula"]], margin=0.1, needs="mixed",
                     difference=["first.all", "second.all"])  # fmt: skip
    (verdict,), _ = judge_claims([spec], {"t": rows}, {}, set())
    assert verdict.outcome == outcome
    assert ("dula is not mixed" in verdict.sentence) == (mixed == "no")


@pytest.mark.parametrize(("value", "outcome"), [(1.0, "shown"), (0.0, "negligible"), (-1.0, "opposite")])
def test_exact_difference_needs_no_interval(value, outcome):
    spec = ClaimSpec(claim="c", sentence="s", difference=[value, 0.0], is_exact=True)
    (found,), _ = judge_claims([spec], {}, {}, set())
    assert found.outcome == outcome


def test_power_is_that_of_the_test_and_the_seeds_are_those_of_80_percent():
    # Of 4000 repetitions with the difference of the margin, those whose interval excludes zero; five standard
    # errors are 0.04.
    rng = np.random.default_rng(0)
    power, needed = find_power(0.5, 1.0, 20, 0.95)
    found = [estimate_mean(values).low > 0 for values in 0.5 + rng.standard_normal((4000, 20))]
    assert np.mean(found) == pytest.approx(power, abs=0.04)
    assert needed == 32  # (1.960 + 0.842)² / 0.5²
    assert find_power(0.5, 1.0, needed + 2, 0.95)[0] == pytest.approx(0.8, abs=0.02)


def test_an_undecided_claim_says_its_power_and_the_seeds_it_would_need():
    values = np.array([-1.0, 1.0, 0.5, -0.4])
    spec = ClaimSpec(claim="c", sentence="s.", estimate="values", margin=0.5)
    (found,), _ = judge_claims([spec], {}, {"values": values}, set())
    assert found.outcome == "undecided"
    power, needed = find_power(0.5, values.std(ddof=1), 4, 0.95)
    assert (found.power, found.seeds_needed) == (power, needed)
    assert f"Power {100 * power:.0f} %" in found.sentence
    assert f"about {needed} seeds" in found.sentence
    assert "Less than 0.5 would not count." in found.sentence


def test_cases_of_a_claim_are_claims_of_their_own():
    claim = {
        "claim": "@what",
        "sentence": "{first.@key}",
        "cases": [{"what": "a", "key": "b", "margin": 1.0}],
    }
    assert list(expand_cases(claim)) == [{"claim": "a", "sentence": "{first.b}", "margin": 1.0}]


def test_numbers_are_spoken_with_their_interval():
    facts = {"one": {"x": Estimate(value=-0.5, low=-1.0, high=0.25), "y": Estimate(value=0.5)}}
    assert say("{one.x:+.2f}; {one.y:.1f}", facts, set()) == "−0.50 [−1.00, +0.25]; 0.5"
    values = {"many": np.array([1.0, 2.0, 3.0])}
    assert say("{many:.1f}", values, set()) == "2.0"
    assert say("{many:i.1f}", values, set()) == "2.0 [−0.5, 4.5]"


def test_parts_of_a_text_are_said_when_all_their_words_hold():
    text = ["Always.", Phrase(text="Quickly.", when="quick"), Phrase(text="Never.", when="quick !sound")]
    assert say(text, {}, {"quick", "sound"}) == "Always. Quickly."
    assert say(text, {}, set()) == "Always."


def test_settings_are_named_by_the_symbols_of_the_paper():
    assert (
        describe_recipe(samplers.edula(step_size=0.2, center_step_size=0.1, coupling_variance=0.1))
        == "η = 0.1, α = 0.2, α_a = 0.1"
    )
    assert describe_recipe(
        samplers.robust_ensemble(replicas=3, coupling_variance=0.5, step_size=0.4)
    ).startswith("y = 3, ")


def test_schedule_of_an_instance_is_chosen_by_the_other_instances():
    # The first schedule is best on the first instance only, the second on all others.
    errors = np.array([[0.0, 1.0, 1.0], [0.9, 0.5, 0.5]])
    np.testing.assert_array_equal(choose_by_others(errors), [1, 0, 0])
    np.testing.assert_array_equal(choose_by_others(errors[:, :1]), [0])


def test_answers_survive_their_file_exactly():
    content = {"a": np.arange(6.0).reshape(2, 3) / 7, "b": [1, {"c": np.float64(0.1)}], "d": "e", "f": None}
    again = decoded(encoded(content))
    np.testing.assert_array_equal(again["a"], content["a"])
    assert again["b"] == [1, {"c": 0.1}]
    assert (again["d"], again["f"]) == ("e", None)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.1, 0.1, "shown"),
        (-0.1, 0.0, "shown"),
        (-0.3, 0.1, "undecided"),
        (0.1, 0.3, "undecided"),
        (0.21, 0.3, "opposite"),
        (-0.3, -0.21, "opposite"),
    ],
)
def test_equality_needs_the_whole_interval_within_the_margin(low, high, outcome):
    assert classify(low, high, 0.2, same=True) == outcome


def test_claims_judged_together_are_all_right_in_95_of_100_experiments():
    # 10 claims without any truth in them, over 20 seeds, in 1500 experiments. Each of independent intervals
    # misses with 0.005, so a fraction of 1 − 0.995¹⁰ = 0.0489 of the experiments has a wrong verdict; five
    # standard errors are 0.028. Intervals of 95 % each would have one in 0.40 of them.
    rng = np.random.default_rng(0)
    wrong = 0
    for values in rng.standard_normal((1500, 10, 20)):
        found, _ = judge_nothing(values)
        wrong += any(verdict.outcome != "undecided" for verdict in found)
    assert wrong / 1500 == pytest.approx(0.0489, abs=0.028)


def judge_nothing(values, *others):
    """Verdicts and notes on the claim that numbers, one row per claim, are positive."""
    spec = ClaimSpec(claim="c", sentence="s", table="t", each="number", about=[[{}]], estimate="first.values")
    rows = [{"number": number, "values": row} for number, row in enumerate(values)]
    return judge_claims([spec, *others], {"t": rows}, {}, set())


def test_a_single_claim_keeps_the_level_of_95_percent():
    (verdict,), notes = judge_nothing([np.arange(3.0)])
    assert verdict.estimate == estimate_mean(np.arange(3.0), split_level(1))
    assert notes == []


def test_a_single_run_decides_nothing():
    (found,), _ = judge_nothing([np.array([7.0])])
    assert found.outcome == "undecided"
    assert "no interval" in found.sentence


def test_the_note_counts_the_claims_that_have_an_interval():
    exact = ClaimSpec(claim="c", sentence="s", difference=[1.0, 0.0], is_exact=True)
    verdicts, notes = judge_nothing([np.arange(5.0)] * 4, exact)
    assert "98.75 %" in notes[0]
    assert verdicts[-1].outcome == "shown"
    assert describe_joint_level(1) == []


def covers_zero(estimate):
    return estimate.low <= 0 <= estimate.high


def test_the_smallest_of_several_means_is_covered_although_it_was_picked():
    # Six equal means over 5 seeds, 2000 times: at least 0.95 of the intervals cover, five standard errors are
    # 0.024. The interval of the picked group alone covers 0.84 of the time.
    rng = np.random.default_rng(0)
    found = [estimate_smallest(list(groups)) for groups in rng.standard_normal((2000, 6, 5))]
    assert np.mean([covers_zero(one) for one in found]) > 0.95 - 0.024
    alone = [
        estimate_mean(groups[groups.mean(axis=1).argmin()]) for groups in rng.standard_normal((2000, 6, 5))
    ]
    assert np.mean([covers_zero(one) for one in alone]) < 0.95 - 0.024
