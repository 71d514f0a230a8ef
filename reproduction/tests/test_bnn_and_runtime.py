"""Networks of binary weights, and the time of an update."""

from typing import Any

import numpy as np
import pytest

import steppe
from small_experiments import shrink
from steppe.datasets import Split
from steppe.errors import RunError
from steppe.targets import binary_network
from steppe_edlp.bnn import run as protocol
from steppe_edlp.bnn.chains import Heat, Logged, log_chains
from steppe_edlp.bnn.tabular import Asked, Rows, find_requested, fit_baselines, load_rows
from steppe_edlp.engine import carry_out
from steppe_edlp.experiment import EXPERIMENTS
from steppe_edlp.figures import draw
from steppe_edlp.request import Request
from steppe_edlp.runtime import run as runtime

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.float32)
SIZES = {"num_hidden": 4, "num_chains": 3, "num_points": 4, "num_posed_chains": 3, "num_seeds": 2}
TINY = shrink("bnn", **SIZES, num_cooling=2, num_kept=2)


@pytest.mark.slow
def test_log_points_are_five_steps_apart_and_have_outputs_of_every_row():
    target = binary_network(X, Y, 4, preset="published")
    found = log_chains(target, steppe.dmala(step_size=0.1), X[:7], 0, num_chains=5, num_points=6)
    assert found.outputs.shape == (6, 7)
    assert found.likelihood.shape == (6,)
    assert ((found.outputs > 0) & (found.outputs < 1)).all()
    assert (found.likelihood < 0).all()


@pytest.mark.slow
def test_cooling_adapts_only_corrected_samplers_and_only_while_it_lasts():
    target = binary_network(X, Y, 4)
    hot = log_chains(
        target, steppe.dmala(step_size=5.0), X, 0, num_chains=5, num_points=60, heat=Heat(50, 0.5)
    )
    assert hot.acceptance[-10:].mean() > hot.acceptance[0]
    cold = log_chains(target, steppe.dula(step_size=0.1), X, 0, num_chains=5, num_points=4, heat=Heat(2, 0.5))
    np.testing.assert_allclose(cold.acceptance, 1)


def test_least_squares_beats_a_constant_where_y_is_linear():
    linear = Split(X, np.clip(0.5 + 0.1 * X[:, 1], 0, 1))
    found = fit_baselines(linear, linear)
    assert found["linear"][1] < 0.01 < found["constant"][1]


def test_tables_are_named_with_rows():
    full = Request(scale="full", instance="adult:5000, compas")
    assert find_requested(full) == [Asked("adult", 5000), Asked("compas")]
    assert find_requested(Request()) == [Asked("breast-cancer")]
    printed = Request(instance="compas,compas@printed", scale="full")
    assert find_requested(printed) == [Asked("compas"), Asked("compas", is_printed=True)]
    with pytest.raises(RunError, match="Did you mean compas"):
        find_requested(Request(instance="compass"))
    with pytest.raises(RunError, match="number of rows"):
        find_requested(Request(instance="compas:many"))
    with pytest.raises(RunError, match="only `@printed` may follow"):
        find_requested(Request(instance="compas@500"))


def test_validation_rows_are_neither_trained_nor_tested_on():
    rows = load_rows(Asked("breast-cancer"), Request())
    kept = {row.tobytes() for row in rows.validation.x}
    assert not kept & {row.tobytes() for row in rows.fitted.x}
    assert not kept & {row.tobytes() for row in rows.test.x}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", pytest.param("published", marks=pytest.mark.slow)])
def test_everything_is_reported(tmp_path, asked):
    request = Request(protocol=asked, samplers=("dula", "edula"))
    results = carry_out(TINY, request, tmp_path, progress=False)
    assert len(results.tables) == (2 if asked == "sound" else 1)
    named = [row["sampler"] for row in results.tables[0].rows]
    assert named == ["dula", "edula", "constant predictor", "linear predictor"]
    assert len(results.verdicts) == (3 if asked == "sound" else 2)
    assert set(draw(results)) == {figure.key for figure in results.figures}


@pytest.mark.parametrize("name", ["dula", "edmala_glu"])
def test_a_full_update_evaluates_the_model_once(name):
    recipes = EXPERIMENTS["runtime"].make_recipes(Request())
    assert runtime.count_evaluations(recipes[name]) == 1
    assert runtime.count_evaluations(recipes["gibbs"]) is None


def test_the_median_has_a_distribution_free_interval():
    # Of 9 values the second and the eighth enclose the median with probability 1 − 2·10/512 = 0.961.
    found = runtime.estimate_median(np.arange(9.0))
    assert (found.low, found.value, found.high) == (1, 4, 7)
    assert runtime.estimate_median(np.arange(5.0)).low is None


def test_the_interval_of_a_median_covers_it_as_often_as_it_should():
    values = RNG.exponential(size=(4000, 9))
    found = [runtime.estimate_median(row) for row in values]
    covered = np.mean([one.low <= np.log(2) <= one.high for one in found])
    assert covered == pytest.approx(0.961, abs=0.015)  # five standard errors


@pytest.mark.slow
def test_times_are_reported_per_full_update(tmp_path):
    experiment = shrink("runtime", num_hidden=2, num_chains=2, num_rounds=7, seconds=0.001)
    request = Request(samplers=("dula", "edula", "edula_glu"))
    results = carry_out(experiment, request, tmp_path, progress=False)
    rows: dict[Any, dict[str, Any]] = {row["sampler"]: row for row in results.tables[0].rows}
    assert rows["edula_glu"]["per_call"] == pytest.approx(rows["edula_glu"]["milliseconds"].value / 2)
    assert rows["edula_glu"]["paper"] == pytest.approx(1.38)
    assert len(results.verdicts) == 4  # one claim more is about dmala, which is not run
    assert set(draw(results)) == {"timings"}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", "published"])
def test_quick_scale_runs_to_the_end(tmp_path, asked):
    for name in ("bnn", "runtime"):
        assert carry_out(EXPERIMENTS[name], Request(protocol=asked), tmp_path, progress=False).verdicts


def constant_outputs(levels):
    """A stand-in for `log_chains`: every network puts out the level of the log point, whatever the row."""

    def log_chains(target, recipe, rows, seed, *, num_chains, num_points, heat=None, checkpoint=None):
        outputs = np.repeat(np.asarray(levels, float)[:, None], len(rows), axis=1)
        return Logged(np.arange(num_points, dtype=float), outputs, np.linspace(0, 1, num_points))

    return log_chains


def some_rows():
    train, test = Split(X, np.full(40, 0.5, np.float32)), Split(X[:6], np.zeros(6, np.float32))
    return Rows("compas", train, test, train, Split(X[:3], np.ones(3, np.float32)), (40, 6), {})


def test_errors_of_the_paper_s_network_are_of_the_test_rows_at_every_log_point(monkeypatch):
    monkeypatch.setattr(protocol, "log_chains", constant_outputs([0.8, 0.6, 0.4, 0.2]))
    found = protocol._run_published(some_rows(), 0, TINY.size(Request()), steppe.dula(step_size=0.1))
    # The test rows are all 0, so that an output is its own error.
    np.testing.assert_allclose(found["rmse_series"], [0.8, 0.6, 0.4, 0.2])
    assert found["rmse"] == pytest.approx(0.5)
    assert found["rmse_late"] == pytest.approx(0.3)
    assert found["rmse_sd"] == pytest.approx(np.std([0.8, 0.6, 0.4, 0.2]))
    assert (found["likelihood"], found["likelihood_late"]) == (1.5, 2.5)


def test_well_posed_networks_are_averaged_after_cooling_and_scored_on_the_right_rows(monkeypatch):
    monkeypatch.setattr(protocol, "log_chains", constant_outputs([9.0, 9.0, 0.2, 0.4]))
    found = protocol._run_posed(some_rows(), 0, TINY.size(Request()), steppe.dula(step_size=0.1), 50.0)
    assert found["rmse"] == pytest.approx(0.3)  # test rows are 0
    assert found["validation"] == pytest.approx(0.7)  # validation rows are 1
    assert found["likelihood"] == 2.5


def test_rows_that_are_left_out_are_counted():
    whole = load_rows(Asked("breast-cancer"), Request())
    part = load_rows(Asked("breast-cancer", 100), Request())
    assert whole.is_whole
    assert not part.is_whole
    assert part.num_published == (len(whole.train), len(whole.test))
    assert f"100 of {len(whole.train)} training rows" in protocol._say_rows_left_out(part)
