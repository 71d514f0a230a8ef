"""Verdicts point the right way: where one sampler is better by construction, its claim holds, and only then.

Every experiment is handed numbers made up so that one sampler is ahead by far more than the noise; with the
names of the two samplers exchanged the same claim must fail.
"""

import numpy as np
import pytest

from steppe import samplers
from steppe.datasets import Split
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.bernoulli import verdicts as bernoulli
from steppe_edlp.bernoulli.measured import Measured
from steppe_edlp.bnn import report as bnn
from steppe_edlp.bnn.published import recipes
from steppe_edlp.bnn.tables import Rows
from steppe_edlp.eta import verdicts as eta
from steppe_edlp.eta.report import Setting
from steppe_edlp.eta.run import CENTER_STEPS, VARIANCES
from steppe_edlp.flatness import verdicts as flatness
from steppe_edlp.flatness.report import Solutions
from steppe_edlp.judging import judged_together
from steppe_edlp.occupancy import Landscape
from steppe_edlp.rbm import report as rbm
from steppe_edlp.request import Request
from steppe_edlp.runtime import run as runtime
from steppe_edlp.tsp import report as tsp

NUM_SEEDS = 20
SOUND, PUBLISHED = Request(), Request(protocol="published")
LANDSCAPE = Landscape(paper_bernoulli())


def about(level, size=1.0, seed=0):
    """Numbers of twenty seeds about a level; their noise is a hundredth of `size`."""
    return level + 0.01 * size * np.random.default_rng(seed).standard_normal(NUM_SEEDS)


def outcomes(verdicts):
    return {verdict.claim: verdict.outcome for verdict in verdicts}


def decided_for(first, second, judge):
    """Outcomes when the first of two is handed in as the entropic sampler, and when the second is."""
    return [[verdict.outcome for verdict in judge(*pair)] for pair in ((first, second), (second, first))]


def law_with(flat, sharp):
    law = np.full(16, (1 - flat - sharp) / 12)
    law[LANDSCAPE.flat], law[LANDSCAPE.sharp] = flat / 2, sharp / 2
    return law


def on_four_bits(law, recipe):
    noisy = law * (1 + 0.01 * np.random.default_rng(1).standard_normal((NUM_SEEDS, 16)))
    shares = noisy / noisy.sum(axis=1, keepdims=True)
    return Measured(recipe, law, shares, shares, np.ones(NUM_SEEDS), np.ones(NUM_SEEDS))


@pytest.mark.parametrize("judge", [bernoulli.sound_verdicts, bernoulli.published_verdicts])
def test_more_flat_and_less_sharp_mass_is_what_the_four_bits_claim(judge):
    flatter, sharper = law_with(0.3, 0.1), law_with(0.1, 0.4)
    assert LANDSCAPE.spectrum_std(flatter) < LANDSCAPE.spectrum_std(sharper) - 0.2

    def judged(entropic, plain):
        return judge(
            LANDSCAPE,
            {
                "edula": on_four_bits(entropic, samplers.edula(0.2, 0.1, 0.1)),
                "dula": on_four_bits(plain, samplers.dula(0.1)),
            },
        )

    right, reversed_ = decided_for(flatter, sharper, judged)
    assert set(right) == {"holds"}
    assert set(reversed_) == {"does not hold"}


def test_sentences_on_the_four_bits_give_each_sampler_its_own_numbers():
    found = bernoulli.sound_verdicts(
        LANDSCAPE,
        {
            "edmala": on_four_bits(law_with(0.3, 0.1), samplers.edmala(0.4, 0.1, 0.1)),
            "dmala": on_four_bits(law_with(0.1, 0.4), samplers.dmala(0.4)),
        },
    )
    assert "edmala 0.300, dmala 0.100" in found[0].sentence
    assert "edmala 0.100, dmala 0.400" in found[1].sentence


def of_tours(spread, mean=16.4693):
    names = ("spread", "band", "overall", "law_mean", "moves")
    levels = (spread, 30 + spread, 30 + spread, mean, 50)
    return {
        name: about(level, seed=number)
        for number, (name, level) in enumerate(zip(names, levels, strict=True))
    }


@pytest.mark.parametrize("request_", [SOUND, PUBLISHED])
def test_smaller_spread_and_mismatch_are_what_the_tours_claim(request_):
    judge = tsp._sound_verdicts if request_.is_sound else tsp._published_verdicts

    def judged(entropic, plain):
        return judge({"edmala": entropic, "dmala": plain})[:3]

    right, reversed_ = decided_for(of_tours(1.0), of_tours(5.0), judged)
    assert right == ["holds"] * 3
    assert reversed_ == ["does not hold"] * 3


@pytest.mark.parametrize(
    ("mean", "outcome"), [(16.4693, "holds"), (16.9, "does not hold"), (16.0, "does not hold")]
)
def test_a_law_is_kept_only_with_the_enumerated_mean(mean, outcome):
    found = tsp._sound_verdicts({"dmala": of_tours(1.0, mean)})
    assert [verdict.outcome for verdict in found] == [outcome]


def of_images(error, seed=0):
    scores = np.stack([about(error, 0.01, seed + place) for place in range(12)], axis=-1).reshape(-1, 3, 4)
    # The other measures point the other way, so that a verdict on one of them is noticed.
    scores[..., 1:] *= -1
    return {"clean": scores, "itself": 1 - scores, "log_density": about(60)}


def test_lower_error_against_the_clean_image_is_what_the_images_claim():
    def judged(entropic, plain):
        found = {"dmala": of_images(plain), "edmala": of_images(entropic, 100)}
        return judged_together(rbm._questions(SOUND, found))

    right, reversed_ = decided_for(0.02, 0.04, judged)
    assert right == ["holds"] * 4
    assert reversed_ == ["does not hold"] * 4


def test_published_images_are_scored_against_the_spoiled_image_itself():
    found = {"dmala": of_images(0.04), "edmala": of_images(0.02, 100)}
    verdicts = judged_together(rbm._questions(PUBLISHED, found))
    assert [verdict.outcome for verdict in verdicts] == ["does not hold"] * 3


def test_best_of_all_means_better_than_each():
    found = {
        name: of_images(0.04, 20 * number) for number, name in enumerate(("dula", "dmala", "block_gibbs"))
    }
    found["edmala"] = of_images(0.03, 200)
    claim = "edmala has the lowest error on clean images of all samplers of the paper."
    assert outcomes(judged_together(rbm._questions(SOUND, found)))[claim] == "holds"
    found["block_gibbs"] = of_images(0.02, 300)
    verdict = judged_together(rbm._questions(SOUND, found))[-1]
    assert verdict.outcome == "does not hold"
    assert "best of the others is block_gibbs" in verdict.sentence


def of_networks(error):
    found = {"rmse": about(error, 0.1), "likelihood": about(-error, 0.1, 1)}
    return found | {f"{key}_sd": np.full(NUM_SEEDS, 1e-4) for key in tuple(found)}


@pytest.mark.parametrize("request_", [SOUND, PUBLISHED])
def test_lower_error_and_higher_likelihood_are_what_the_networks_claim(request_):
    some = Split(np.zeros((4, 1)), np.zeros(4))
    rows = Rows("compas", some, some, some, some, (4, 4), {})

    def judged(entropic, plain):
        part = {"edmala": of_networks(entropic), "dmala": of_networks(plain)}
        one = bnn.OnTable(
            rows, {"constant": (-0.3, 0.3), "linear": (-0.3, 0.3)}, part, part, {}, recipes("compas")
        )
        return bnn._sound_verdicts([one]) if request_.is_sound else bnn._published_verdicts([one])

    right, reversed_ = decided_for(0.2, 0.4, judged)
    assert set(right) == {"holds"}
    assert set(reversed_) == {"does not hold"}  # and 0.4 is worse than the constant's 0.3
    assert len(right) == (5 if request_.is_sound else 2)


def of_sweep(errors, acceptance):
    """Numbers over η: one level below 0.05, another above."""
    low = np.asarray(VARIANCES) < 0.05

    def over(levels, seed):
        return np.stack([about(levels[0 if is_low else 1], 0.1, seed) for is_low in low])

    return {"rmse": over(errors, 0), "acceptance": over(acceptance, 1), "flips": over((400, 4), 2)}


def test_breakdown_freezing_and_plateau_are_read_at_the_right_places():
    setting = Setting(0.1, CENTER_STEPS, np.asarray(VARIANCES), 513, 200, 0.5, "")
    plain = {"rmse": about(0.6, 0.1)[None]}
    measured = {
        "dula": plain,
        "dmala": plain,
        "edula": of_sweep((0.9, 0.3), (1, 1)),
        "edmala": of_sweep((0.9, 0.3), (0.0, 0.8)),
    }
    found = list(outcomes(eta.all_verdicts(setting, measured)).values())
    # Near 0, on the plateau, broken down, in no need of tuning above 0.05, better than dula and dmala.
    assert found == ["holds", "holds", "holds", "does not hold", "holds", "holds"]
    measured["edmala"] = of_sweep((0.3, 0.9), (0.8, 0.8))
    measured["edula"] = of_sweep((0.3, 0.9), (1, 1))
    measured["edmala"]["acceptance"][VARIANCES.index(0.8)] /= 2
    found = list(outcomes(eta.all_verdicts(setting, measured)).values())
    assert found == ["does not hold"] * 6


def of_solutions(test_error, rise):
    def over(level, seed):
        return np.stack([about(level, 1.0, seed + schedule) for schedule in range(3)])

    after = np.stack([over(rise * number, 7 * number) for number in (1, 2, 5)], axis=-1)
    return Solutions(over(-1, 0), over(0, 1), over(test_error, 2), over(0.1, 3), over(0.5, 4), after)


def test_lower_test_error_and_slower_rise_are_what_the_perceptrons_claim():
    def judged(better, other):
        solutions = {"robust_ensemble": of_solutions(*better), "dmala": of_solutions(*other)}
        return judged_together(flatness.about_perceptrons(solutions, (1, 2, 5)))

    right, reversed_ = decided_for((0.2, 1.0), (0.4, 2.0), judged)
    assert right == ["holds"] * 2
    assert reversed_ == ["does not hold"] * 2


def test_time_moved_from_sharp_to_flat_modes_is_what_the_tilt_claims():
    def judged(tilted, tempered):
        shares = on_four_bits(tilted, samplers.dmala(0.4)).shares
        found = {"shares": [shares], "laws": [tilted], "tempered": [tempered]}
        return judged_together(flatness.about_four_bits(LANDSCAPE, found))

    right, reversed_ = decided_for(law_with(0.5, 0.1), law_with(0.1, 0.4), judged)
    assert right == ["holds"] * 2
    assert reversed_ == ["does not hold"] * 2


def test_height_kept_is_compared_with_tempering_at_equal_mass():
    tempered = np.array([[0.2, -1.0], [0.6, -3.0]])  # at mass 0.4 it keeps −2
    for height, outcome in ((-1.5, "holds"), (-2.5, "does not hold")):
        tilted = np.array([[0.2, -1.0]] * 3 + [[0.4, height]])
        assert flatness.of_mixture({"tilted": tilted, "tempered": tempered}).outcome == outcome


def test_half_the_time_hardly_longer_and_markedly_longer_are_ratios_of_the_right_pair():
    one = 1 + 0.001 * np.arange(9.0)
    seconds = {"dula": one, "edula": 1.01 * one, "edula_glu": 0.5 * one, "dmala": one, "edmala": 1.3 * one}
    seconds["edmala_glu"] = 1.3 * one
    found = [verdict.outcome for verdict in runtime._verdicts(seconds)]
    assert found == ["holds", "does not hold", "holds", "holds"]
    seconds |= {"edula": 1.3 * one, "edmala": 1.01 * one, "edula_glu": 1.3 * one, "edmala_glu": 0.5 * one}
    found = [verdict.outcome for verdict in runtime._verdicts(seconds)]
    assert found == ["does not hold", "holds", "does not hold", "does not hold"]
