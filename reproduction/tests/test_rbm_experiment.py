"""Images from a machine: spoiling, measures, and the whole experiment at a small size."""

import numpy as np
import pytest

from steppe.report.cells import number
from steppe_edlp.figures import draw
from steppe_edlp.rbm import run as protocol
from steppe_edlp.rbm.drawing import Length
from steppe_edlp.rbm.images import compared, log_discrepancy, similarity, spoiled
from steppe_edlp.request import Request
from steppe_edlp.work import Work
from test_tsp_experiment import as_results

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(50, 784)).astype(np.float32)
TINY = protocol.Size(8, 20, Length(8, 5, 2, 8), 2, 1, 1000, 20, 10, 20, 30)


def test_spoiling_adds_the_stated_noise_and_one_black_square():
    grey = np.full((400, 784), 0.5, np.float32)
    noise = spoiled(grey, "noisy", 0) - grey
    assert noise.std() == pytest.approx(0.1, rel=0.02)  # 313 600 numbers: five standard errors are 0.6 %
    black = (spoiled(grey, "occluded", 0) == 0).reshape(400, 28, 28)
    sides = black.any(axis=1).sum(axis=1)
    np.testing.assert_array_equal(black.sum(axis=(1, 2)), sides**2)
    assert (sides.min(), sides.max()) == (5, 10)
    assert spoiled(grey, "clean", 0) is grey


def test_small_images_are_occluded_in_proportion():
    sides = (spoiled(np.ones((200, 64), np.float32), "occluded", 0) == 0).reshape(200, 8, 8).any(1).sum(1)
    assert set(sides.tolist()) == {1, 2, 3}


def test_a_perfect_reconstruction_scores_best():
    error, ratio, likeness, brightness = compared(IMAGES, IMAGES)
    assert (error, brightness) == (0, 0)
    assert likeness == pytest.approx(1)
    assert ratio > 100


def test_measures_have_their_definitions():
    error, ratio, _, brightness = compared(IMAGES + 0.1, IMAGES)
    assert error == pytest.approx(0.01, rel=1e-4)
    assert ratio == pytest.approx(20, rel=1e-4)
    assert brightness == pytest.approx(-0.1, rel=1e-4)


def test_similarity_is_that_of_the_formula_on_a_constant_pair():
    black, white = np.zeros((1, 784)), np.ones((1, 784))
    assert similarity(black, white)[0] == pytest.approx(1e-4 / (1 + 1e-4))


def test_discrepancy_is_small_for_one_law_and_large_for_two():
    first, second = (RNG.random((2, 300, 64)) < 0.3).astype(np.uint8)
    other = (RNG.random((300, 64)) < 0.6).astype(np.uint8)
    assert log_discrepancy(first, first) < -20
    assert log_discrepancy(first, other) > log_discrepancy(first, second) + 1


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", pytest.param("published", marks=pytest.mark.slow)])
def test_everything_is_reported(monkeypatch, tmp_path, asked):
    monkeypatch.setattr(protocol, "SIZES", dict.fromkeys(protocol.SIZES, TINY))
    monkeypatch.setattr(protocol, "NUM_CODERS", 2)
    names = ("dula",) if asked == "sound" else ("dula", "edula")
    request = Request(protocol=asked, samplers=names)
    findings = protocol.run(request, Work(tmp_path, "digest", "test", False))
    assert len(findings.verdicts) == (1 if asked == "sound" else 4)
    assert findings.data["digits"]
    drawn = draw(as_results(findings, request, "rbm"))
    assert set(drawn) == {figure.key for figure in findings.figures}
    monkeypatch.setattr(protocol, "train_rbm", None)  # finished pieces are not done again: these would fail
    monkeypatch.setattr(protocol, "drawn", None)
    assert protocol.run(request, Work(tmp_path, "digest", "test", False)).tables == findings.tables


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["sound", "published"])
def test_quick_scale_runs_to_the_end(tmp_path, asked):
    findings = protocol.run(Request(protocol=asked), Work(tmp_path, "digest", "test", False))
    machine = next(table for table in findings.tables if table.key == "machine")
    heights = {row["sampler"]: number(row["log_density"]) for row in machine.rows}
    # Layer-wise Gibbs and block Gibbs have one law; their means over hundreds of images agree within a nat.
    assert heights["block_gibbs"] == pytest.approx(heights["layer-wise Gibbs"], abs=1.5)


@pytest.fixture
def copying(monkeypatch):
    """Networks that put out what they are given, and see the digit that is their number of bits."""
    monkeypatch.setattr(protocol.networks, "train_auto_encoder", lambda images, **settings: "copier")
    monkeypatch.setattr(protocol.networks, "train_lenet", lambda x, y, **settings: "counter")
    monkeypatch.setattr(protocol.networks, "accuracy", lambda network, x, y: 1.0)

    def apply(network, x):
        return x if network == "copier" else np.eye(10)[np.asarray(x.sum(axis=1), int)]

    monkeypatch.setattr(protocol.networks, "apply", apply)
    return protocol.Setting(Request(), TINY, protocol.datasets.load("digits"), None)


def packed(bits):
    return {"images": np.packbits(np.asarray(bits, np.uint8), axis=1), "log_density": np.zeros(len(bits))}


def test_a_copier_is_perfect_against_the_spoiled_image_and_not_against_the_clean_one(copying):
    found = protocol._judged(copying, packed(np.ones((4, 64))), 0)
    np.testing.assert_allclose(found["itself"][:, 0], 0)
    assert found["clean"][0, 0] == 0
    assert (found["clean"][1:, 0] > 1e-3).all()


def test_digits_are_counted_for_the_sampler_that_drew_them(copying):
    def images(number):
        bits = np.zeros((30, 64))
        bits[:, :number] = 1
        return packed(bits)

    ground = np.zeros((5, 64), np.uint8)
    answers = {"reference": {"images": ground}, "images-dula-0": images(3), "images-dmala-0": images(7)}
    found = protocol._modes(copying, answers, {"dula": None, "dmala": None}, [0])
    assert found["counts_dula"].tolist() == [[0, 0, 0, 30, 0, 0, 0, 0, 0, 0]]
    assert found["counts_dmala"].tolist() == [[0, 0, 0, 0, 0, 0, 0, 30, 0, 0]]
    assert found["counts_reference"].tolist() == [[5, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert found["discrepancy_dula"] < found["discrepancy_dmala"]
    assert (found["shown_dula"].sum(axis=1) == 3).all()
