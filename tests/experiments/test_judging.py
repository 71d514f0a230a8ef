"""Intervals and verdicts say what they mean."""

import numpy as np
import pytest

from steppe import samplers
from steppe.errors import RunError
from steppe.experiments.flatness.perceptron import left_out_choice
from steppe.experiments.judging import judged
from steppe.experiments.wording import settings_of, spoken
from steppe.experiments.work import decoded, encoded
from steppe.intervals import mean_estimate, share_estimate
from steppe.results import Estimate


def test_interval_of_a_mean_is_students():
    found = mean_estimate(np.array([1.0, 2.0, 3.0, 4.0]))
    # t(0.975, 3) = 3.18245, standard error 0.6455
    assert found.value == 2.5
    assert found.high == pytest.approx(2.5 + 3.18245 * 0.645497, abs=1e-4)
    assert found.low == pytest.approx(5 - found.high)


def test_mean_of_one_number_has_no_interval():
    assert mean_estimate(np.array([1.5])) == Estimate(value=1.5)


def test_mean_of_diverged_chains_is_refused():
    with pytest.raises(RunError, match="diverged"):
        mean_estimate(np.array([1.0, np.inf]))


def test_interval_of_a_share_is_wilsons():
    found = share_estimate(8, 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "margin", "outcome"),
    [
        (0.1, 0.2, 0.0, "holds"),
        (-0.1, 0.2, 0.0, "not distinguishable"),
        (-0.2, -0.1, 0.0, "does not hold"),
        (-0.1, 0.01, 0.02, "does not hold"),
        (0.001, 0.01, 0.02, "does not hold"),
        (0.001, 0.1, 0.02, "holds"),
        (-0.1, 0.1, 0.02, "not distinguishable"),
    ],
)
def test_verdict_follows_from_the_interval_and_the_margin(low, high, margin, outcome):
    difference = Estimate(value=(low + high) / 2, low=low, high=high)
    assert judged("c", difference, "s", margin).outcome == outcome


@pytest.mark.parametrize(
    ("value", "outcome"), [(1.0, "holds"), (0.0, "does not hold"), (-1.0, "does not hold")]
)
def test_exact_difference_needs_no_interval(value, outcome):
    assert judged("c", Estimate(value=value), "s").outcome == outcome


def test_numbers_are_spoken_with_their_interval():
    assert spoken(Estimate(value=-0.5, low=-1.0, high=0.25), 2, signed=True) == "−0.50 [−1.00, +0.25]"
    assert spoken(Estimate(value=0.5), 1) == "0.5"


def test_settings_are_named_by_the_symbols_of_the_paper():
    assert settings_of(samplers.edula(0.2, 0.1, 0.1)) == "η = 0.1, α = 0.2, α_a = 0.1"
    assert settings_of(samplers.robust_ensemble(3, 0.5, 0.4)).startswith("y = 3, ")


def test_schedule_of_an_instance_is_chosen_by_the_other_instances():
    # The first schedule is best on the first instance only, the second on all others.
    errors = np.array([[0.0, 1.0, 1.0], [0.9, 0.5, 0.5]])
    np.testing.assert_array_equal(left_out_choice(errors), [1, 0, 0])
    np.testing.assert_array_equal(left_out_choice(errors[:, :1]), [0])


def test_answers_survive_their_file_exactly():
    content = {"a": np.arange(6.0).reshape(2, 3) / 7, "b": [1, {"c": np.float64(0.1)}], "d": "e", "f": None}
    again = decoded(encoded(content))
    np.testing.assert_array_equal(again["a"], content["a"])
    assert again["b"] == [1, {"c": 0.1}]
    assert (again["d"], again["f"]) == ("e", None)
