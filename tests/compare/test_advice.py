"""What a comparison advises: who wins, whether that is more than noise, and a line of code that runs."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest

import steppe
from steppe.compare.advice import advise
from steppe.compare.measurement import Spending
from steppe.diagnostics.efficiency import Efficiency
from steppe.intervals import find_student_factor
from steppe.samplers.source_line import write_call, write_sample

SEEDS = 20


def measured(recipe, num_effective, error=0.0, seconds=1.0, cost=1.0, rhat=1.0):
    effective = Efficiency(num_effective, error, "log-density")
    spending = Spending(cost, 0, int(1000 / cost), 1)
    return SimpleNamespace(recipe=recipe, effective=effective, seconds=seconds, spending=spending, rhat=rhat)


def test_a_winner_beyond_noise_is_named_with_the_ratio_and_a_line_that_keeps_its_step_size():
    pool = {
        "gwg": measured(steppe.gwg(), 1000.0, 50.0),
        "dmala": measured(steppe.dmala(step_size=0.83), 4000.0, 200.0),
    }
    first, code = advise(pool, SEEDS)
    assert first.startswith("dmala wins: 200 effective draws per 1000 evaluations, 4 times as many [")
    assert first.endswith("as gwg, the next: more than noise.")
    assert (
        code == "Go on with: run = steppe.sample(target, steppe.dmala(step_size=0.83), key=key, adapt=False)"
    )


def test_a_difference_within_noise_makes_no_winner():
    pool = {"gwg": measured(steppe.gwg(), 1000.0, 200.0), "pas": measured(steppe.pas(), 1200.0, 200.0)}
    assert advise(pool, SEEDS)[0].startswith("No clear winner: pas has 60 effective draws")
    assert "not more than noise" in advise(pool, SEEDS)[0]


def test_samplers_that_are_alike_are_told_apart_in_five_percent_of_comparisons_at_most():
    """Of 200 comparisons of four that are alike, 5 % is 10 ± 3.1: 27 is over five deviations, one in 10⁶."""
    rng = np.random.default_rng(0)
    relative = 0.1 / find_student_factor(SEEDS)  # errors small enough for the delta method
    recipe, claims = steppe.gwg(), 0
    for _ in range(200):
        drawn = 1000 * np.exp(relative * rng.normal(size=4))
        scale = np.sqrt(rng.chisquare(SEEDS - 1, size=4) / (SEEDS - 1))
        pool = {
            str(index): measured(recipe, value, relative * factor * value)
            for index, (value, factor) in enumerate(zip(drawn, scale, strict=True))
        }
        claims += "wins" in advise(pool, SEEDS)[0]
    assert claims < 27


def test_being_ahead_per_second_alone_is_explained_by_the_time_of_an_evaluation():
    pool = {
        "dmala": measured(steppe.dmala(), 1000.0, 10.0, seconds=1.0),
        "gibbs": measured(steppe.gibbs(), 800.0, 10.0, seconds=0.1),
    }
    said = advise(pool, SEEDS)
    assert said[0].startswith("dmala wins")
    assert "Per second gibbs is ahead here, 8 times as many" in said[1]
    assert "5 µs with gibbs and 50 µs with dmala" in said[1]


def test_biased_samplers_do_not_win():
    pool = {"dula": measured(steppe.dula(), 9000.0, 10.0), "gwg": measured(steppe.gwg(), 10.0, 1.0)}
    said = advise(pool, SEEDS)
    assert said[0].startswith("gwg has 0.5 effective draws")
    assert "something else than π: dula" in said[1]


def test_what_never_moved_and_what_disagrees_is_said():
    none = {"gwg": measured(steppe.gwg(), 0.0), "pas": measured(steppe.pas(), 0.0)}
    assert advise(none, SEEDS)[0].startswith("No winner: no sampler has an effective draw.")
    apart = {"gwg": measured(steppe.gwg(), 10.0, 1.0, rhat=1.4), "pas": measured(steppe.pas(), 0.0)}
    said = advise(apart, SEEDS)
    assert said[0].endswith("the others have none.")
    assert "disagree (R-hat 1.40)" in said[1]


def read_call(text):
    """Carry out a call of a sampler with numbers for arguments."""
    call = ast.parse(text, mode="eval").body
    given = {argument.arg: ast.literal_eval(argument.value) for argument in call.keywords}
    return getattr(steppe, call.func.attr)(**given)


@pytest.mark.parametrize(
    ("recipe", "call"),
    [
        (steppe.dmala(), "steppe.dmala()"),
        (
            steppe.edmala(step_size=0.5, center_step_size=0.2, coupling_variance=2),
            "steppe.edmala(step_size=0.5, center_step_size=0.2, coupling_variance=2)",
        ),
        (steppe.gibbs(), "steppe.gibbs()"),
        (steppe.gibbs(num_updates=16), None),
        (steppe.robust_ensemble(replicas=3), None),
        (steppe.dmala(balancing="barker"), None),
        (steppe.targets.layerwise_gibbs(), None),
    ],
)
def test_a_recipe_is_written_as_the_call_that_makes_it_or_not_at_all(recipe, call):
    assert write_call(recipe) == call
    if call is not None:
        assert repr(read_call(call)) == repr(recipe)


def test_a_recipe_that_no_call_makes_is_referred_to():
    line = write_sample(steppe.gibbs(num_updates=16), "compared.recipes['sweeps']")
    assert line == "run = steppe.sample(target, compared.recipes['sweeps'], key=key)"
