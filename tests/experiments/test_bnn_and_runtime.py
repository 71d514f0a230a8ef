"""Networks of binary weights, and the time of an update."""

import numpy as np
import pytest

import steppe
from experiments.test_tsp_experiment import as_results
from steppe.datasets import Split
from steppe.errors import RunError
from steppe.experiments import runtime
from steppe.experiments.bnn import protocol
from steppe.experiments.bnn.chains import Heat, logged
from steppe.experiments.bnn.tables import baselines, load, requested_tables
from steppe.experiments.request import Request
from steppe.experiments.work import Work
from steppe.report.figures import draw
from steppe.targets import binary_network

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
