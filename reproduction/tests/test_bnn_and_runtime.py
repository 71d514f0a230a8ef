"""Networks of binary weights, and the time of an update."""

import numpy as np
import pytest

import steppe
from steppe.datasets import Split
from steppe.errors import RunError
from steppe.targets import binary_network
from steppe_edlp.bnn import captions
from steppe_edlp.bnn import run as protocol
from steppe_edlp.bnn.chains import Heat, Logged, logged
from steppe_edlp.bnn.tables import Rows, baselines, load, requested_tables
from steppe_edlp.figures import draw
from steppe_edlp.request import Request
from steppe_edlp.runtime import run as runtime
from steppe_edlp.work import Work
from test_tsp_experiment import as_results

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.float32)
TINY = protocol.Size(4, 3, 5, 3, 2, 2, 2)


@pytest.mark.slow
def test_log_points_are_five_steps_apart_and_have_outputs_of_every_row():
    target = binary_network(X, Y, 4, preset="published")
    found = logged(target, steppe.dmala(0.1), X[:7], 0, num_chains=5, num_points=6)
    assert found.outputs.shape == (6, 7)
    assert found.likelihood.shape == (6,)
    assert ((found.outputs > 0) & (found.outputs < 1)).all()
    assert (found.likelihood < 0).all()


@pytest.mark.slow
def test_cooling_adapts_only_corrected_samplers_and_only_while_it_lasts():
    target = binary_network(X, Y, 4)
    hot = logged(target, steppe.dmala(5.0), X, 0, num_chains=5, num_points=60, heat=Heat(50, 0.5))
    assert hot.acceptance[-10:].mean() > hot.acceptance[0]
    cold = logged(target, steppe.dula(0.1), X, 0, num_chains=5, num_points=4, heat=Heat(2, 0.5))
    np.testing.assert_allclose(cold.acceptance, 1)


def test_least_squares_beats_a_constant_where_y_is_linear():
    linear = Split(X, np.clip(0.5 + 0.1 * X[:, 1], 0, 1))
    found = baselines(linear, linear)
    assert found["linear"][1] < 0.01 < found["constant"][1]


def test_tables_are_named_with_rows():
    full = Request(scale="full", instance="adult:5000, compas")
    assert requested_tables(full) == {"adult": 5000, "compas": None}
    assert requested_tables(Request()) == {"breast-cancer": None}
    with pytest.raises(RunError, match="Did you mean compas"):
        requested_tables(Request(instance="compass"))
    with pytest.raises(RunError, match="number of rows"):
        requested_tables(Request(instance="compas:many"))


def test_validation_rows_are_neither_trained_nor_tested_on():
    rows = load("breast-cancer", None, Request())
    kept = {row.tobytes() for row in rows.validation.x}
    assert not kept & {row.tobytes() for row in rows.fitted.x}
    assert not kept & {row.tobytes() for row in rows.test.x}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", pytest.param("published", marks=pytest.mark.slow)])
def test_everything_is_reported(monkeypatch, tmp_path, asked):
    monkeypatch.setattr(protocol, "SIZES", dict.fromkeys(protocol.SIZES, TINY))
    request = Request(protocol=asked, samplers=("dula", "edula"))
    findings = protocol.run(request, Work(tmp_path, "digest", "test", False))
    assert len(findings.tables) == (2 if asked == "sound" else 1)
    assert [row["predictor"] for row in findings.tables[0].rows][-2:] == [
        "constant predictor",
        "linear predictor",
    ]
    assert len(findings.verdicts) == (3 if asked == "sound" else 2)
    assert set(draw(as_results(findings, request, "bnn"))) == {figure.key for figure in findings.figures}


@pytest.mark.parametrize("name", ["dula", "edmala_glu"])
def test_a_full_update_evaluates_the_model_once(name):
    assert runtime.evaluations(runtime.RECIPES[name]) == 1
    assert runtime.evaluations(runtime.RECIPES["gibbs"]) is None


def test_the_median_has_a_distribution_free_interval():
    # Of 9 values the second and the eighth enclose the median with probability 1 − 2·10/512 = 0.961.
    found = runtime.median_estimate(np.arange(9.0))
    assert (found.low, found.value, found.high) == (1, 4, 7)
    assert runtime.median_estimate(np.arange(5.0)).low is None


def test_the_interval_of_a_median_covers_it_as_often_as_it_should():
    values = RNG.exponential(size=(4000, 9))
    found = [runtime.median_estimate(row) for row in values]
    covered = np.mean([one.low <= np.log(2) <= one.high for one in found])
    assert covered == pytest.approx(0.961, abs=0.015)  # five standard errors


@pytest.mark.slow
def test_times_are_reported_per_full_update(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "SIZES", dict.fromkeys(runtime.SIZES, runtime.Size(2, 2, 7, 0.001)))
    request = Request(samplers=("dula", "edula", "edula_glu"))
    findings = runtime.run(request, Work(tmp_path, "digest", "test", False))
    rows = {row["sampler"]: row for row in findings.tables[0].rows}
    assert rows["edula_glu"]["per_call"] == pytest.approx(rows["edula_glu"]["milliseconds"].value / 2)
    assert rows["edula_glu"]["paper"] == pytest.approx(1.38)
    assert len(findings.verdicts) == 2
    assert set(draw(as_results(findings, request, "runtime"))) == {"timings"}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", "published"])
def test_quick_scale_runs_to_the_end(tmp_path, asked):
    findings = protocol.run(Request(protocol=asked), Work(tmp_path, "digest", "test", False))
    assert findings.verdicts
    assert runtime.run(Request(protocol=asked), Work(tmp_path, "other", "test", False)).verdicts


def constant_outputs(levels):
    """A stand-in for `logged`: every network puts out the level of the log point, whatever the row."""

    def logged(target, recipe, rows, seed, *, num_chains, num_points, heat=None):
        outputs = np.repeat(np.asarray(levels, float)[:, None], len(rows), axis=1)
        return Logged(np.arange(num_points, dtype=float), outputs, np.linspace(0, 1, num_points))

    return logged


def some_rows():
    train, test = Split(X, np.full(40, 0.5, np.float32)), Split(X[:6], np.zeros(6, np.float32))
    return Rows("compas", train, test, train, Split(X[:3], np.ones(3, np.float32)), (40, 6), {})


def test_errors_of_the_paper_s_network_are_of_the_test_rows_at_every_log_point(monkeypatch):
    monkeypatch.setattr(protocol, "logged", constant_outputs([0.8, 0.6, 0.4, 0.2]))
    size = TINY._replace(num_points=4)
    found = protocol._as_published(some_rows(), steppe.dula(0.1), 0, size)
    # The test rows are all 0, so that an output is its own error.
    np.testing.assert_allclose(found["rmse_series"], [0.8, 0.6, 0.4, 0.2])
    assert found["rmse"] == pytest.approx(0.5)
    assert found["rmse_late"] == pytest.approx(0.3)
    assert found["rmse_sd"] == pytest.approx(np.std([0.8, 0.6, 0.4, 0.2]))
    assert (found["likelihood"], found["likelihood_late"]) == (1.5, 2.5)


def test_well_posed_networks_are_averaged_after_cooling_and_scored_on_the_right_rows(monkeypatch):
    monkeypatch.setattr(protocol, "logged", constant_outputs([9.0, 9.0, 0.2, 0.4]))
    found = protocol._posed(some_rows(), steppe.dula(0.1), 0, TINY, 50.0)
    assert found["rmse"] == pytest.approx(0.3)  # test rows are 0
    assert found["validation"] == pytest.approx(0.7)  # validation rows are 1
    assert found["likelihood"] == 2.5


def test_rows_that_are_left_out_are_counted():
    whole = load("breast-cancer", None, Request())
    part = load("breast-cancer", 100, Request())
    assert whole.is_whole
    assert not part.is_whole
    assert part.num_published == (len(whole.train), len(whole.test))
    said = captions.notes(Request(scale="full"), [part])
    assert any(f"100 of {len(whole.train)} training rows" in note for note in said)
    assert not any("training rows of" in note for note in captions.notes(Request(scale="full"), [whole]))
