"""Whatever a call returns to be looked at prints itself, shows itself in a notebook, and becomes a page."""

import jax
import numpy as np
import pytest
import rich.console

import steppe
from steppe.modes import FlatModes, Mode, StrengthCurves
from steppe.presented import Presented
from steppe.report.page import write_page
from steppe.tune.tuned import Measured, Trial, Tuned

KEY = jax.random.key(0)
TARGET = steppe.targets.paper_bernoulli()


def found_modes() -> FlatModes:
    names = (
        "score",
        "value",
        "value_error",
        "gain",
        "gain_error",
        "broken_fraction",
        "roughness",
        "max_drop",
    )
    mode = Mode(
        position=np.zeros(3),
        levels=np.zeros(3, int),
        log_density=1.5,
        num_visits=1,
        found_by=("annealed",),
        is_best=True,
        is_robust=True,
        is_on_front=True,
        label="–",
        **dict.fromkeys(names, 0.0),
    )
    curves = StrengthCurves("flip rate", np.array([0.0, 0.1]), np.ones((1, 2)), np.zeros((1, 2)), 0.1)
    return FlatModes((mode,), "1 random change", "mean", 1.0, False, curves, (0,), 10, 1)


def tuned() -> Tuned:
    measured = Measured(0.5, 0.01)
    trials = tuple(
        Trial(value, value, measured, measured, measured, measured, 100.0, None, 10.0) for value in (0.1, 0.2)
    )
    return Tuned(steppe.dmala(), "ess", "step_size", trials, 1, "Most effective draws.", 20.0)


def annealed():
    cooling = steppe.parameter_schedule(inverse_temperature=steppe.geometric_schedule(0.5, 5.0))
    return steppe.anneal(TARGET, steppe.gibbs(), cooling, key=KEY, num_steps=20, num_chains=3)


def summary():
    run = steppe.sample(TARGET, steppe.gibbs(), key=KEY, num_draws=20, num_warmup=0)
    return run.summary()


SHOWN = {
    "modes": (found_modes, "1.50"),
    "tuned": (tuned, "→"),
    "annealed": (annealed, "best U"),
    "summary": (summary, "gibbs on Binary(4)"),
}


@pytest.fixture(scope="module", params=SHOWN)
def shown(request) -> tuple[Presented, str]:
    make, words = SHOWN[request.param]
    return make(), words


def test_printed_it_is_text_in_a_notebook_too(shown, monkeypatch):
    # There rich would display it and leave an empty line.
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    presented, words = shown
    assert words in str(presented)


def test_in_a_notebook_it_is_a_table(shown):
    presented, words = shown
    fragment = presented._repr_html_()
    assert "<table>" in fragment
    assert words in fragment


def test_its_results_become_a_page(shown, tmp_path):
    presented, words = shown
    presented.present().save(tmp_path)
    assert words in write_page(tmp_path).read_text(encoding="utf-8")


def test_annealing_marks_the_best_chain_and_says_when_it_met_its_best():
    found = annealed()
    table = found.present().table("chains")
    best = np.asarray(found.best_log_density)
    assert table.marked_rows == np.flatnonzero(best == best.max()).tolist()
    assert [row["best"] for row in table.rows] == pytest.approx(best.tolist())
    progress = np.array([row["progress"] for row in table.rows], float)
    assert ((progress >= 0) & (progress <= 100)).all()
