"""Verdicts point the right way: where one sampler is better by construction, its claim holds, and only then.

Every experiment is handed numbers made up so that one sampler is ahead by far more than the noise; with the
names of the two samplers exchanged the same claim must fail.
"""

from collections import defaultdict

import numpy as np
import pytest

from small_experiments import judge_rows
from steppe import samplers
from steppe.datasets import Split
from steppe.targets.bernoulli import paper_bernoulli
from steppe_edlp.bernoulli import run as bernoulli
from steppe_edlp.bnn import run as bnn
from steppe_edlp.bnn.tabular import Rows
from steppe_edlp.eta import run as eta
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.flatness import run as flatness
from steppe_edlp.occupancy import SmallTarget
from steppe_edlp.rbm import run as rbm
from steppe_edlp.rbm.images import CONDITIONS
from steppe_edlp.request import Request
from steppe_edlp.runtime import run as runtime
from steppe_edlp.tsp import run as tsp
from steppe_edlp.tsp.enumeration import enumerate_costs

NUM_SEEDS = 20
SOUND, PUBLISHED = Request(), Request(protocol="published")
KNOWN = SmallTarget(paper_bernoulli())
SIZES = {name: experiment.size(SOUND) for name, experiment in EXPERIMENTS.items()}


def about(level, size=1.0, seed=0):
    """Numbers of twenty seeds about a level; their noise is a hundredth of `size`."""
    return level + 0.01 * size * np.random.default_rng(seed).standard_normal(NUM_SEEDS)


def outcomes_of(verdicts):
    return [verdict.outcome for verdict in verdicts]


def decide_for(first, second, judge):
    """Outcomes when the first of two is handed in as the entropic sampler, and when the second is."""
    return [outcomes_of(judge(*pair)) for pair in ((first, second), (second, first))]


def make_probabilities(flat, sharp):
    made = np.full(16, (1 - flat - sharp) / 12)
    made[KNOWN.flat], made[KNOWN.sharp] = flat / 2, sharp / 2
    return made


def make_shares(probabilities):
    noisy = probabilities * (1 + 0.01 * np.random.default_rng(1).standard_normal((NUM_SEEDS, 16)))
    return noisy / noisy.sum(axis=1, keepdims=True)


def judge_four_bits(request, **given):
    """Verdicts if samplers have these distributions."""
    rows = {"occupancy": [], "spectrum": []}
    for name, probabilities in given.items():
        recipe = getattr(samplers, name)(step_size=0.1)
        fractions, ones = make_shares(probabilities), np.ones(NUM_SEEDS)
        answer = {
            "distribution": probabilities,
            "windows": fractions,
            "fractions": fractions,
            "acceptance": ones,
            "flips": ones,
        }
        rows["occupancy"].append(bernoulli._describe(name, recipe, answer, KNOWN, request))
        rows["spectrum"].append(
            bernoulli._describe_spectrum(name, answer, KNOWN, request, {"std": 2.0, "iqr": 2.0})
        )
    facts = {"target": {"flat": 0.1451, "sharp": 0.2926, "log_density": -2.5}, "num_windows": NUM_SEEDS}
    return judge_rows("bernoulli", request, rows, facts)


@pytest.mark.parametrize("request_", [SOUND, PUBLISHED])
def test_more_flat_and_less_sharp_mass_is_what_the_four_bits_claim(request_):
    flatter, sharper = make_probabilities(0.3, 0.1), make_probabilities(0.1, 0.4)
    assert KNOWN.spectrum_std(flatter) < KNOWN.spectrum_std(sharper) - 0.2

    def judge(entropic, plain):
        return judge_four_bits(request_, edula=entropic, dula=plain)

    right, reversed_ = decide_for(flatter, sharper, judge)
    # More time in flat modes, less in sharp ones, a narrower spectrum; neither distribution is π.
    assert right == ["shown"] * 3 + ["opposite"] + ["shown"] * (not request_.is_sound)
    assert set(reversed_) == {"opposite"}


def test_a_tilt_that_leaves_the_flat_modes_does_not_hold():
    for flat, outcome in ((0.3, "shown"), (0.05, "opposite")):
        assert outcomes_of(judge_four_bits(SOUND, roughness_tilted=make_probabilities(flat, 0.1))) == [
            outcome
        ]


def test_sentences_on_the_four_bits_give_each_sampler_its_own_numbers():
    given = {"edmala": make_probabilities(0.3, 0.1), "dmala": make_probabilities(0.1, 0.4)}
    found = judge_four_bits(SOUND, **given)
    assert "gives 0.3000 and 0.1000" in found[0].sentence
    assert "gives 0.1000 and 0.4000" in found[1].sentence


def make_tours(spread, mean=16.4693):
    names = ("spread", "band", "overall", "distribution_mean", "moves", *("paths", "cost", "best", "to_best"))
    levels = (spread, 30 + spread, 30 + spread, mean, 50, *[1.0] * 3, 30 + spread)
    found = {name: about(level, seed=n) for n, (name, level) in enumerate(zip(names, levels, strict=True))}
    return {**found, "mean_square": found["distribution_mean"] ** 2, "optimal_distribution": about(0.1)}


def judge_tours(request, **answers):
    rows = {
        "runs": [tsp._describe_run(name, answer, request, 1.0) for name, answer in answers.items()],
        "distribution": tsp._describe_distributions(answers),
    }
    return judge_rows("tsp", request, rows, {"num_seeds": NUM_SEEDS, "exact": enumerate_costs()})


@pytest.mark.parametrize("request_", [SOUND, PUBLISHED])
def test_smaller_spread_and_mismatch_are_what_the_tours_claim(request_):
    def judge(entropic, plain):
        found = judge_tours(request_, edmala=entropic, dmala=plain)
        return [verdict for verdict in found if "samples π" not in verdict.claim]

    right, reversed_ = decide_for(make_tours(1.0), make_tours(5.0), judge)
    assert right == ["shown"] * (4 if request_.is_sound else 3)
    assert reversed_ == ["opposite"] * len(right)


def test_similar_tours_are_what_the_unadjusted_samplers_claim():
    def judge(second):
        found = judge_tours(SOUND, edula=make_tours(5.0), dula=make_tours(second))
        return [verdict.outcome for verdict in found if "imilar" in verdict.claim or "same" in verdict.claim]

    assert judge(5.0) == ["shown"] * 2
    assert judge(1.0) == judge(9.0) == ["opposite"] * 2


@pytest.mark.parametrize(("mean", "outcome"), [(16.4693, "shown"), (16.9, "opposite"), (16.0, "opposite")])
def test_a_distribution_is_kept_only_with_the_enumerated_mean(mean, outcome):
    assert outcomes_of(judge_tours(SOUND, dmala=make_tours(1.0, mean))) == [outcome]


def make_images(error, seed=0):
    scores = np.stack([about(error, 0.01, seed + place) for place in range(12)], axis=-1).reshape(-1, 3, 4)
    scores[..., 1:] *= -1  # the other measures are better where they are higher
    return {"clean": scores, "itself": 1 - scores, "log_density": about(60)}


def judge_images(request, **found):
    rows = [
        rbm.describe_reconstruction(request, name, part, scored, place)
        for scored in ("clean", "itself")
        for name, part in found.items()
        for place in range(len(CONDITIONS))
    ]
    facts = {"num_sets": NUM_SEEDS, "num_missing": 0, "has_all_digits": True, "accuracy": 1.0}
    facts |= rbm.find_lead(found, [name for name in found if name != "edmala"])
    return judge_rows("rbm", request, {"reconstruction": rows}, facts, ["rivals", "all_digits"])[:-1]


def test_lower_error_against_the_clean_image_is_what_the_images_claim():
    def judge(entropic, plain):
        return judge_images(SOUND, dmala=make_images(plain), edmala=make_images(entropic, 100))

    # Three conditions and four measures, then the lowest error of all; 0.02 is nothing to a PSNR.
    right, reversed_ = decide_for(0.02, 0.04, judge)
    assert right == [*["shown"] * 3, *["negligible"] * 3, *["shown"] * 7]
    assert reversed_ == [*["opposite"] * 3, *["negligible"] * 3, *["opposite"] * 7]


def test_published_images_are_scored_against_the_spoiled_image_itself():
    found = judge_images(PUBLISHED, dmala=make_images(0.04), edmala=make_images(0.02, 100))
    assert set(outcomes_of(found)) == {"opposite", "negligible"}


def test_best_of_all_means_better_than_each():
    names = ("dula", "dmala", "block_gibbs")
    found = {name: make_images(0.04, 20 * number) for number, name in enumerate(names)}
    found["edmala"] = make_images(0.03, 200)
    assert judge_images(SOUND, **found)[-1].claim.startswith("edmala has the lowest error")
    assert judge_images(SOUND, **found)[-1].outcome == "shown"
    found["block_gibbs"] = make_images(0.02, 300)
    verdict = judge_images(SOUND, **found)[-1]
    assert verdict.outcome == "opposite"
    assert "best of the others is block_gibbs" in verdict.sentence


def make_networks(error):
    found = {"rmse": about(error, 0.1), "likelihood": about(-error, 0.1, 1), "acceptance": about(0.5)}
    found |= {f"{key}_late": found[key] for key in ("rmse", "likelihood")}
    return found | {f"{key}_sd": np.full(NUM_SEEDS, 1e-4) for key in ("rmse", "likelihood")}


@pytest.mark.parametrize("request_", [SOUND, PUBLISHED])
def test_lower_error_and_higher_likelihood_are_what_the_networks_claim(request_):
    # The mean of the training rows is 0.5, so that a constant has RMSE 0.3 on test rows of 0.2.
    train, test = Split(np.zeros((4, 1)), np.full(4, 0.5)), Split(np.zeros((4, 1)), np.full(4, 0.2))
    rows = Rows("compas", train, test, train, test, (4, 4), {})

    def judge(entropic, plain):
        part = {"edmala": make_networks(entropic), "dmala": make_networks(plain)}
        one = bnn.OnTable(rows, {}, part, part, defaultdict(lambda: {"steepness": 50.0}))
        described = {"published": bnn._describe_published(one), "posed": bnn._describe_posed(one)}
        return judge_rows("bnn", request_, described, {"num_seeds": NUM_SEEDS}, ["several"])

    right, reversed_ = decide_for(0.2, 0.4, judge)
    assert set(right) == {"shown"}
    assert set(reversed_) == {"opposite"}  # and 0.4 is worse than the constant's 0.3
    assert len(right) == 6
    assert "The paper has 0.4768 and 0.4773." in judge(0.2, 0.4)[0].sentence


def make_sweep(errors, acceptance, norms=(1, 30)):
    """Numbers over η: one level below 0.05, another above."""
    low = np.asarray(SIZES["eta"].variances) < 0.05

    def over(levels, seed):
        return np.stack([about(levels[0 if is_low else 1], 0.1, seed) for is_low in low])

    return {
        "rmse": over(errors, 0),
        "acceptance": over(acceptance, 1),
        "flips": over((400, 4), 2),
        "norm": over(norms, 3),
    }


def judge_sweep(**found):
    rows = []
    for name, part in found.items():
        variances = SIZES["eta"].variances if name in SIZES["eta"].center_steps else [None]
        for place, variance in enumerate(variances):
            row = eta._describe(name, {**part, "log_density": part["rmse"]}, place)
            rows.append(
                row if variance is None else {**row, "variance": variance, "norm": part["norm"][place]}
            )
    facts = {"num_bits": 513, "threshold": 0.0275, "num_steps": 1000}
    return {one.claim: one.outcome for one in judge_rows("eta", SOUND, {"sweep": rows}, facts, ["several"])}


def test_breakdown_freezing_and_plateau_are_read_at_the_right_places():
    plain = {key: about(0.6, 0.1)[None] for key in ("rmse", "acceptance", "flips")}
    entropic = {"edula": make_sweep((0.9, 0.3), (1, 1)), "edmala": make_sweep((0.9, 0.3), (0.0, 0.8))}
    entropic["edmala"]["norm"] = entropic["edmala"]["norm"] / 2
    found = judge_sweep(dula=plain, dmala=plain, **entropic)
    # At η = 0.05 and above all errors are alike here, so nothing is gained by tuning, and the distance has
    # grown before.
    other = ["η has to be tuned", "edmala has a stable", "The distance between"]
    expected = {one: "shown" for one in found if not one.startswith(tuple(other))}
    assert {one: found[one] for one in expected} == expected
    assert {found[one] for one in found if one.startswith("edmala has a stable")} == {"opposite"}
    entropic = {"edula": make_sweep((0.3, 0.9), (1, 1)), "edmala": make_sweep((0.3, 0.9), (0.8, 0.8))}
    entropic["edmala"]["acceptance"][SIZES["eta"].variances.index(0.8)] /= 2
    entropic["edula"]["norm"] = entropic["edula"]["norm"] / 2
    found = judge_sweep(dula=plain, dmala=plain, **entropic)
    assert {found[one] for one in expected} == {"opposite"}


def make_solutions(test_error, rise):
    names = ("log_density", "train_errors", "test_error", "vote_error", "acceptance")
    levels = (-1, 0, test_error, 0.1, 0.5)
    found = {
        name: about(level, 1.0, seed) for seed, (name, level) in enumerate(zip(names, levels, strict=True))
    }
    after = np.stack([about(rise * number, 1.0, 7 * number) for number in SIZES["flatness"].flips], axis=-1)
    return {**found, "errors_after_flips": after}


def test_lower_test_error_and_slower_rise_are_what_the_perceptrons_claim():
    def judge(better, other):
        given = {"robust_ensemble": make_solutions(*better), "dmala": make_solutions(*other)}
        rows = [flatness._describe(name, one, SIZES["flatness"]) for name, one in given.items()]
        return judge_rows("flatness", SOUND, {"perceptron": rows}, {"middle": 5})

    right, reversed_ = decide_for((0.2, 1.0), (0.4, 2.0), judge)
    assert right == ["shown"] * 2
    assert reversed_ == ["opposite"] * 2


def test_time_moved_from_sharp_to_flat_modes_is_what_the_tilt_claims():
    def judge(tilted, tempered):
        parts = {"fractions": make_shares(tilted), "distributions": tilted, "tempered": tempered}
        rows = flatness._describe_tilt({key: [one] * 5 for key, one in parts.items()}, SIZES["flatness"])
        return judge_rows("flatness", SOUND, {"tilt": rows})

    right, reversed_ = decide_for(make_probabilities(0.5, 0.1), make_probabilities(0.1, 0.4), judge)
    assert right == ["shown"] * 2
    assert reversed_ == ["opposite"] * 2


def test_log_density_kept_is_compared_with_tempering_at_equal_mass():
    tempered = np.array([[0.2, -1.0], [0.6, -3.0]])  # at mass 0.4 it keeps −2
    for kept, outcome in ((-1.5, "shown"), (-2.5, "opposite")):
        found = {"tilted": np.array([[0.4, kept]] * 6), "tempered": tempered}
        rows = flatness._describe_mixture(found, SIZES["flatness"])
        assert outcomes_of(judge_rows("flatness", SOUND, {"mixture": rows})) == [outcome]


def judge_times(**seconds):
    recipes = EXPERIMENTS["runtime"].make_recipes(Request(samplers=tuple(seconds)))
    rows = [runtime._describe(name, recipes[name], seconds, SIZES["runtime"]) for name in recipes]
    return outcomes_of(judge_rows("runtime", SOUND, {"timings": rows}))


def test_half_the_time_hardly_longer_and_markedly_longer_are_ratios_of_the_right_pair(monkeypatch):
    monkeypatch.setattr(runtime, "count_evaluations", lambda recipe: 1)
    one = 1 + 0.001 * np.arange(9.0)
    seconds = {"dula": one, "edula": 1.01 * one, "edula_glu": 0.5 * one, "dmala": one, "edmala": 1.3 * one}
    # Spreads relative to the median are the same, and a state is half as large again, not twice as large.
    others = ["negligible", "negligible", "opposite", "opposite"]
    assert judge_times(**seconds, edmala_glu=1.3 * one) == ["shown", "opposite", "shown", "shown", *others]
    seconds |= {"edula": 1.3 * one, "edmala": 1.01 * one, "edula_glu": 1.3 * one}
    found = judge_times(**seconds, edmala_glu=0.5 * one)
    assert found == ["opposite", "shown", "opposite", "negligible", *others]
    wide = 1 + 0.5 * np.arange(9.0)
    assert judge_times(edula=one, edula_glu=wide)[1] == "shown"


def test_the_percentile_of_a_printed_number_counts_those_that_print_alike_half():
    values = np.array([1.0, 2.0, 2.3451, 2.3459, 3.0])
    assert bernoulli.find_percentile(values, 2.345) == pytest.approx(100 * (2 + 4) / 2 / 5)
    assert bernoulli.find_percentile(values, 4.0) == 100
